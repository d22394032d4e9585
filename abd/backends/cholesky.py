"""Block Cholesky factor on a device: memory, launches of the schedule, and where the blocks of the matrix come from."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device, Pool
from abd.backends.elimination import Elimination
from cuda_kernels import factor as kernels
from cuda_kernels.krylov import Coupling

WORTH_A_THREAD = 400.0
"""Products of two blocks in the smallest slice of a launch that is worth a thread."""
SLOTS = ("slot_a", "slot_b", "slot_c")


class Cholesky:
    """Factor of the blocks of an `Elimination`, filled anew for every matrix.

    Another elimination may take the place of the one before: arrays and recorded launches are used again.

    Args:
        bodies: (N,) body of every block row; n: bodies in all, those without a row are left alone.
    """

    def __init__(self, device: Device, bodies: np.ndarray, n: int):
        self.device, self.bodies, self.n = device, bodies, n
        self.pattern, self.sources, self.factor = kernels.Pattern(), kernels.Sources(), kernels.Factor()
        self.place = device.zeros(n, wp.int32)
        self.missed, self.factor.any_failed = device.zeros(1, wp.int32), device.zeros(1, wp.int32)
        self._pool, self._room = Pool(device), 0
        self._empty = device.rows(device.zeros((0, 12, 12), wp.float64))

    def adopt(self, elimination: Elimination) -> None:
        """Take over an elimination; `find` has to look up the pairs of every coupling afterwards."""
        self.elimination = elimination
        arrays, get, write = elimination.fill(), self._pool.get, self.device.write
        self.body = arrays["body"] = self.bodies[elimination.order].astype(np.int32)
        for name, values in arrays.items():
            array = get(name, len(values), wp.int32)
            write(array, values)
            setattr(self.pattern, name, array)
        place = np.full(self.n, -1, dtype=np.int32)
        place[self.body] = np.arange(elimination.size)
        write(self.place, place)
        if self._room < elimination.slots:
            # the first pattern gets what it needs, those that change some more
            self._room = elimination.slots + (elimination.slots // 4 if self._room else 0)
            self.factor.entries = self.device.empty((self._room, 12, 12), wp.float64)
        self.factor.rows = self.device.rows(self.factor.entries)
        self.factor.failed = get("failed", elimination.size, wp.int32)
        self.factor.failed.zero_()
        for name in SLOTS:
            found = get(name, elimination.slots, wp.int32)
            found.fill_(-1)
            setattr(self.sources, name, found)
        self._filled = [False] * len(SLOTS)
        self._plan(arrays["starts"], arrays["ups"])

    def _plan(self, starts: np.ndarray, ups: np.ndarray) -> None:
        """Slots, rows and grain of every level."""
        levels = self.elimination.levels
        self.levels = []
        for begin, end in zip(levels[:-1].tolist(), levels[1:].tolist(), strict=True):
            slots = int(starts[end] - starts[begin])
            work = float((ups[begin + 1 : end + 1] - ups[begin:end]).sum()) * slots / (end - begin)
            grain = max(1, int(WORTH_A_THREAD * slots / (work + slots)))
            self.levels.append((int(starts[begin]), slots, grain, begin, end - begin))
        self.ranges = len(self.elimination.ranges) - 1

    def take(self, diagonal, couplings: list[tuple[Coupling, int]], done) -> None:
        """Say where the blocks are: the bodies' (n, 12, 12), and those of three couplings with their pair counts."""
        rows = self.device.rows
        s, self.factor.done = self.sources, done
        self.factor.any_failed.zero_()
        s.diagonal = rows(diagonal)
        s.a, s.b, s.c = (rows(c.blocks) if pairs else self._empty for c, pairs in couplings)

    def find(self, which: int, coupling: Coupling, pairs: int) -> bool:
        """Look up the slots of a coupling's pairs; False if the pattern does not hold them all."""
        if pairs > 0:
            self.launch_find(which, coupling, pairs)
        elif self._filled[which]:
            getattr(self.sources, SLOTS[which]).fill_(-1)
        self._filled[which] = pairs > 0
        return pairs == 0 or int(self.device.read(self.missed)[0]) == 0

    def launch_find(self, which: int, coupling: Coupling, pairs: int) -> None:
        """The same by launches only, for a room of as many pairs; `missed` tells of a pair without a slot."""
        found = getattr(self.sources, SLOTS[which])
        found.fill_(-1)
        self.missed.zero_()
        self.device.launch(
            kernels.find_slots, pairs, self.pattern, self.place, coupling.count, coupling.row, coupling.column, found,
            self.missed, grain=16384,
        )  # fmt: skip

    def compute(self) -> None:
        """Factor the matrix."""
        self.device.launch(kernels.factor_ranges, self.ranges, self.pattern, self.sources, self.factor, grain=1)
        self._compute_levels()

    def compute_and_solve(self, scale: float, rhs, x, dots) -> None:
        """Factor the matrix and solve for (n, 12) x = scale H^-1 rhs; dots (n,) the bodies' rhs . x."""
        rows = self.device.rows
        self.device.launch(
            kernels.factor_and_forward_ranges, self.ranges, self.pattern, self.sources, self.factor, scale,
            rows(rhs), rows(x), grain=1,
        )  # fmt: skip
        self._compute_levels()
        self._solve_above(scale, rows(rhs), rows(x), dots)

    def solve(self, scale: float, rhs, x, dots) -> None:
        """The same with the last factor."""
        rows = self.device.rows
        self.device.launch(
            kernels.forward_ranges, self.ranges, self.pattern, self.factor, scale, rows(rhs), rows(x), grain=1
        )
        self._solve_above(scale, rows(rhs), rows(x), dots)

    @property
    def is_diagonal(self) -> bool:
        """Whether the blocks on the diagonal are all there is."""
        return self.elimination.slots == self.elimination.size

    def invert(self, room, inverse) -> None:
        """Inverse blocks (n, 12, 12) of a diagonal factor, as large as `room`; zero where a body has no row."""
        rows = self.device.rows
        self.device.launch(
            kernels.invert_pivots,
            self.elimination.size,
            self.pattern,
            self.factor,
            rows(room),
            rows(inverse),
            grain=256,
        )

    def _compute_levels(self) -> None:
        launch, p, f = self.device.launch, self.pattern, self.factor
        for slot, slots, grain, row, rows in self.levels:
            launch(kernels.gather_slots, slots, p, self.sources, f, begin=slot, grain=grain)
            launch(kernels.factor_pivots, rows, p, f, begin=row, grain=512)
            launch(kernels.divide_slots, slots, p, f, begin=slot, grain=1024)

    def _solve_above(self, scale: float, rhs, x, dots) -> None:
        """Forward and backward through the levels, then backward through the ranges."""
        launch, p, f = self.device.launch, self.pattern, self.factor
        for _, _, _, row, rows in self.levels:
            launch(kernels.forward_rows, rows, p, f, scale, rhs, x, begin=row, grain=256)
        for _, _, _, row, rows in reversed(self.levels):
            launch(kernels.backward_rows, rows, p, f, rhs, x, dots, begin=row, grain=256)
        launch(kernels.backward_ranges, self.ranges, p, f, rhs, x, dots, grain=1)

    def failed_body(self) -> int | None:
        """The first body, in the order of elimination, with a pivot that was not positive in the last factorisation."""
        if self.device.read(self.factor.any_failed)[0] == 0:
            return None
        failed = np.flatnonzero(self.device.read(self.factor.failed, self.elimination.size))
        # bodies that are done by the next factorisation must not report this one
        self.factor.failed.zero_()
        return int(self.body[failed[0]])
