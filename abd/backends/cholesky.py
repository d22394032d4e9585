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
BLOCK_BYTES = 12 * 12 * 8


class Cholesky:
    """Factor of the blocks of an `Elimination`, filled anew for every matrix.

    Args:
        bodies: (N,) body of every block row; n: bodies in all, those without a row are left alone.
        room: where the blocks of the factor live; factors that are never needed at once may share it.
    """

    def __init__(self, device: Device, elimination: Elimination, bodies: np.ndarray, n: int, room: Pool):
        self.device, self.elimination = device, elimination
        arrays = elimination.fill()
        upload = device.upload
        self.pattern = kernels.Pattern()
        for name, values in arrays.items():
            setattr(self.pattern, name, upload(values, wp.int32))
        self.body = bodies[elimination.order]
        self.pattern.body = upload(self.body, wp.int32)
        place = np.full(n, -1, dtype=np.int32)
        place[self.body] = np.arange(elimination.size)
        self.place = upload(place, wp.int32)
        self.factor = kernels.Factor()
        self.factor.entries = room.get("factor", elimination.slots, wp.float64, (12, 12))
        self.factor.rows = device.rows(self.factor.entries)
        self.factor.failed = device.zeros(elimination.size, wp.int32)
        self.sources = kernels.Sources()
        self.nothing = device.empty(elimination.slots, wp.int32)
        self.nothing.fill_(-1)
        self.found = [self.nothing] * 3
        self.missed = device.zeros(1, wp.int32)
        self._use_slots()
        self._empty = device.rows(device.zeros((0, 12, 12), wp.float64))
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

    def _use_slots(self) -> None:
        s = self.sources
        s.slot_a, s.slot_b, s.slot_c = self.found

    def take(self, diagonal, couplings: list[tuple[Coupling, int]], done) -> None:
        """Say where the blocks are: the bodies' (n, 12, 12), and those of three couplings with their numbers of pairs."""
        rows = self.device.rows
        s, self.factor.done = self.sources, done
        s.diagonal = rows(diagonal)
        s.a, s.b, s.c = (rows(c.blocks) if pairs else self._empty for c, pairs in couplings)

    def find(self, which: int, coupling: Coupling, pairs: int) -> bool:
        """Look up the slots of a coupling's pairs; False if the pattern does not hold them all."""
        if pairs == 0:
            self.found[which] = self.nothing
            self._use_slots()
            return True
        if self.found[which] is self.nothing:
            self.found[which] = self.device.empty(self.elimination.slots, wp.int32)
            self._use_slots()
        found = self.found[which]
        found.fill_(-1)
        self.missed.zero_()
        self.device.launch(
            kernels.find_slots, pairs, self.pattern, self.place, coupling.row, coupling.column, found, self.missed,
            grain=16384,
        )  # fmt: skip
        return int(self.device.read(self.missed)[0]) == 0

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
        failed = np.flatnonzero(self.device.read(self.factor.failed))
        return int(self.body[failed[0]]) if len(failed) else None
