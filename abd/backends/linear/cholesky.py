"""Block Cholesky factor on a device: memory and sources of the blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import SMALLEST_CAPACITY, Pool
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.factor_schedules import LevelsOfRows, RangesOfPanels
from cuda_kernels.linear import factor as kernels
from cuda_kernels.linear.couplings import COLUMNS, Coupling
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources

RESERVED = 1 << 15
"""Initial capacity for blocks of a factor on CUDA: records stay valid while patterns of contacts grow within it."""


class Cholesky:
    """Factor with the pattern of an `Elimination`, computed for every matrix.

    The elimination can be replaced: arrays are reused, and records with levels of rows stay valid within the capacity.

    Args:
        bodies: (N,) body of every block row; n: number of all bodies. Bodies without a row are skipped.
        couplings: number of couplings; addresses: tables of their arrays, which factors may share.
    """

    def __init__(self, device: Device, bodies: np.ndarray, n: int, couplings: int, addresses: Addresses):
        self.device, self.bodies, self.n = device, bodies, n
        self.pattern, self.sources, self.factor = Pattern(), Sources(), Factor()
        self.place = device.zeros(n, wp.int32)
        self.factor.any_failed = device.zeros(1, wp.int32)
        self._pool, self._capacity, self._least = Pool(device), 0, RESERVED if device.wide else SMALLEST_CAPACITY
        self._couplings, self._addresses = couplings, addresses
        self._schedule: RangesOfPanels | LevelsOfRows | None = None

    def set_elimination(self, elimination: Elimination) -> None:
        """Set the elimination; call `launch_find` for every coupling afterwards."""
        self.elimination = elimination
        get, write = self._pool.get, self.device.write
        pattern, rest = elimination.fill
        self.body = pattern["body"] = self.bodies[elimination.order].astype(np.int32)
        for name, values in pattern.items():
            array = get(name, max(len(values), self._least), wp.int32)
            write(array, values)
            setattr(self.pattern, name, array)
        place = np.full(self.n, -1, dtype=np.int32)
        place[self.body] = np.arange(elimination.size)
        write(self.place, place)
        if self._capacity < elimination.slots:
            # exact capacity for the first pattern, a quarter more for later ones, which change
            self._capacity = max(elimination.slots + (elimination.slots // 4 if self._capacity else 0), self._least)
            self.factor.entries = self.device.empty((self._capacity, 12, 12), wp.float64)
        self.factor.rows = self.device.rows(self.factor.entries)
        self.factor.failed = get("failed", elimination.size, wp.int32)
        self.device.fill(self.factor.failed)
        # full capacity, so that records stay valid for another pattern
        number, stride = self._couplings, self._capacity
        s, found = self.sources, get("slot", number * stride, wp.int32)
        self.device.fill(found, -1)
        s.slot, s.number, s.stride = found, number, stride
        self._found = [found[k * stride : (k + 1) * stride] for k in range(number)]
        kind = RangesOfPanels if elimination.in_ranges else LevelsOfRows
        if not isinstance(self._schedule, kind):
            self._schedule = kind(self.device)
        self._schedule.set_elimination(elimination, pattern, rest)
        self.ranges, self.levels = self._schedule.ranges, self._schedule.count

    def set_sources(self, diagonal, couplings: list[tuple[Coupling, int]], done) -> None:
        """Set the sources: diagonal blocks (n, 12, 12), couplings with their pair counts, and `done` (n,).

        Recorded launches hold these arrays.
        """
        self.factor.done, self.sources.diagonal = done, self.device.rows(diagonal)
        self.sources.addresses = self._addresses.table([c for c, _ in couplings])
        self.device.fill(self.factor.any_failed)

    def launch_find(self, which: int, coupling: Coupling, pairs: int) -> None:
        """Find the slots of the pairs of a coupling, which the pattern contains; launches cover `pairs` pairs."""
        found = self._found[which]
        self.device.fill(found, -1)
        self.device.launch(
            kernels.find_slots, pairs, self.pattern, self.place, coupling.count, coupling.row, coupling.column, found,
            grain=16384,
        )  # fmt: skip

    def compute(self) -> None:
        self._schedule.factor(self.pattern, self.sources, self.factor)

    def solve(self, scale: float, rhs, x, dots) -> None:
        """Solve for x = scale H^-1 rhs (n, 12) and dots (n,) = rhs . x with the last factor."""
        self._schedule.solve(self.pattern, self.factor, scale, rhs, x, dots)

    @property
    def is_diagonal(self) -> bool:
        """Whether the factor has diagonal blocks only."""
        return self.elimination.slots == self.elimination.size

    def invert(self, capacity, inverse) -> None:
        """Compute the inverse blocks (n, 12, 12) of a diagonal factor, zero for bodies without a row.

        `capacity` is a scratch array (n, 12, 12)."""
        rows = self.device.rows
        arrays = self.pattern, self.factor, rows(capacity), rows(inverse)
        self.device.launch(kernels.invert_pivots, self.elimination.size, *arrays, grain=256)

    def failed_bodies(self) -> np.ndarray:
        """(k,) bodies, in the order of elimination, with a pivot that was not positive in the last factorisation."""
        if self.device.read(self.factor.any_failed)[0] == 0:
            return self.body[:0]
        failed = np.flatnonzero(self.device.read(self.factor.failed, self.elimination.size))
        # bodies that are done by the next factorisation must not report this one
        self.device.fill(self.factor.failed)
        return self.body[failed]


class Addresses:
    """Tables of addresses of the arrays of couplings, (number, `COLUMNS`) on the device.

    A table does not change, so that records may contain it; there is one for each combination of arrays since `clear`."""

    def __init__(self, device: Device):
        self.device = device
        self._tables: dict[tuple[int, ...], wp.array] = {}

    def clear(self) -> None:
        """Forget the tables, when records of them are invalid."""
        self._tables.clear()

    def table(
        self, couplings: Sequence[Coupling], blocks: Sequence[wp.array] | None = None,
        merged: Sequence[wp.array | None] | None = None, parts: Sequence[wp.array | None] | None = None,
    ) -> wp.array:  # fmt: skip
        """Return the table of the current arrays.

        Args:
            blocks: blocks of every coupling, by default its own; merged: flags (k,) of blocks that are in another coupling;
            parts: arrays for products.
        """
        blocks = [c.blocks for c in couplings] if blocks is None else blocks
        merged, parts = ([None] * len(couplings) if given is None else given for given in (merged, parts))
        key = tuple(
            _address(one)
            for c, *rest in zip(couplings, blocks, merged, parts, strict=True)
            for one in (c.starts, c.entries, c.column, *rest)
        )
        if key not in self._tables:
            self._tables[key] = self.device.upload(np.array(key, dtype=np.uint64).reshape(-1, COLUMNS), wp.uint64)
        return self._tables[key]


def _address(array: wp.array | None) -> int:
    return 0 if array is None or array.ptr is None else array.ptr
