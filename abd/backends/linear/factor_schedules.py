"""The launches of a block Cholesky factor: ranges of panels with levels above them, or levels of rows. Both have the same calls.

Ranges are for a processor: few items that each do much, and blocks used again while they are in cache. Levels of rows
are for a GPU: many threads per block, and launches that know nothing of the pattern. Both stand for one `Elimination`, which
says which of them it is made for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import WARP
from abd.backends.linear.elimination import Elimination, starts_of
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear import factor_levels as level_kernels
from cuda_kernels.linear import factor_ranges as kernels
from cuda_kernels.linear import level_solves
from cuda_kernels.linear.factor_levels import Levels
from cuda_kernels.linear.factor_panels import Panels
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources

WORTH_A_THREAD = 400.0
"""Products of two blocks in the smallest slice of a launch that is worth a thread."""

THREADS = 1 << 17
"""Of a launch over a level on CUDA, about as many as run at once."""
THREADS_EMULATED = 64
"""The same where one thread runs them all."""
RESERVED = 1 << 20
"""Products of blocks, and whatever else there is less of, that capacity is set aside for."""
SHARE = 4
"""Products that a thread does before others take a share."""
MOST_THREADS = 1 << 30
"""Items of a level times their lanes: what is left to 32 bits."""
AT_ONCE = 4
"""Levels between two looks of the device at whether there are more."""

Arrays = dict[str, np.ndarray]


class RangesOfPanels:
    """Ranges first, one item each, then levels of panels, an item per piece.

    Attributes:
        ranges, count: numbers of ranges and of levels; levels: (piece, pieces, grain, panel, panels) of each.
    """

    def __init__(self, device: Device):
        self.device, self.panels, self.ranges, self.count = device, Panels(), 0, 0
        self._pool, self._none = Pool(device), device.empty(0, vec12)
        self.levels: list[tuple[int, int, int, int, int]] = []

    def follow(self, elimination: Elimination, pattern: Arrays, panels: Arrays) -> None:
        """Stand for an elimination, whose arrays `Elimination.fill` has returned; what was recorded serves on where the launches
        are the same, as those of one range are for any pattern."""
        first, ups = panels["panels"], panels["ups"]
        rows = np.diff(first)
        taken = starts_of(rows[panels["up_panel"]] * panels["up_reach"], np.int64)
        work = starts_of((taken[ups[1:]] - taken[ups[:-1]]) * rows, np.int64)
        heads = np.searchsorted(panels["heads"], pattern["starts"][elimination.levels]).tolist()
        starts = np.searchsorted(first, elimination.levels).tolist()
        levels = []
        for k in range(len(starts) - 1):
            pieces, products = heads[k + 1] - heads[k], float(work[starts[k + 1]] - work[starts[k]])
            grain = max(1, int(WORTH_A_THREAD * pieces / (products + pieces)))
            levels.append((heads[k], pieces, grain, starts[k], starts[k + 1] - starts[k]))
        ranges = len(elimination.ranges) - 1
        if (ranges, levels) != (self.ranges, self.levels):
            self.device.generation += 1
        for name, values in panels.items():
            array = self._pool.get(name, len(values), wp.int32)
            self.device.write(array, values)
            setattr(self.panels, name, array)
        self.ranges, self.count, self.levels = ranges, len(levels), levels

    def factor(self, p: Pattern, a: Sources, f: Factor) -> None:
        """Factor the matrix."""
        self._factor_ranges(p, a, f, 0, 0.0, self._none, self._none)

    def factor_and_solve(self, p: Pattern, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """The same, and solve for x = scale H^-1 rhs (n, 12) and the bodies' rhs . x; forward within the ranges on the way."""
        rhs, x = self.device.rows(rhs), self.device.rows(x)
        self._factor_ranges(p, a, f, 1, scale, rhs, x)
        self._solve_levels(p, f, scale, rhs, x, dots)

    def solve(self, p: Pattern, f: Factor, scale: float, rhs, x, dots) -> None:
        """Solve with the last factor."""
        rhs, x = self.device.rows(rhs), self.device.rows(x)
        self.device.launch(kernels.forward_ranges, self.ranges, p, self.panels, f, scale, rhs, x, grain=1)
        self._solve_levels(p, f, scale, rhs, x, dots)

    def _factor_ranges(self, p: Pattern, a: Sources, f: Factor, solving: int, scale: float, rhs, x) -> None:
        launch, g = self.device.launch, self.panels
        launch(kernels.factor_ranges, self.ranges, p, g, a, f, solving, scale, rhs, x, grain=1)
        for piece, pieces, grain, panel, panels in self.levels:
            launch(kernels.gather_pieces, pieces, p, g, a, f, begin=piece, grain=grain)
            launch(kernels.factor_corners, panels, p, g, f, begin=panel, grain=8)
            launch(kernels.divide_pieces, pieces, p, g, f, begin=piece, grain=8)

    def _solve_levels(self, p: Pattern, f: Factor, scale: float, rhs, x, dots) -> None:
        launch, g = self.device.launch, self.panels
        for _, _, _, panel, panels in self.levels:
            launch(kernels.forward_panels, panels, p, g, f, scale, rhs, x, begin=panel, grain=64)
        for _, _, _, panel, panels in reversed(self.levels):
            launch(kernels.backward_panels, panels, p, g, f, rhs, x, dots, begin=panel, grain=64)
        launch(kernels.backward_ranges, self.ranges, p, g, f, rhs, x, dots, grain=1)


class LevelsOfRows:
    """Levels of rows that do not depend on each other, one after another, by launches that are the same for any pattern.

    Attributes:
        levels: data of the kernels; arrays that the next elimination finds capacity in.
        ranges, count: no ranges, and the levels of the present elimination.
    """

    ranges = 0

    def __init__(self, device: Device):
        self.device, self.levels, self.count = device, Levels(), 0
        self._pool = Pool(device)
        for name in ("count", "at", "going"):
            setattr(self.levels, name, device.zeros(1, wp.int32))
        self._threads = THREADS_EMULATED if device.is_cpu else THREADS
        if self._threads % WARP:
            raise ValueError(f"lanes of one row take {self._threads} threads in turns of {WARP}, which does not divide them")

    def follow(self, elimination: Elimination, pattern: Arrays, products: Arrays) -> None:
        """Stand for an elimination, whose arrays `Elimination.fill` has returned."""
        levels, write = self.levels, self.device.write
        arrays = {"rows": elimination.levels, **products, **lanes_of(elimination)}
        for name, values in arrays.items():
            array = self._pool.get(name, max(len(values), RESERVED), wp.int32)
            write(array, values)
            setattr(levels, name, array)
        self.count = len(elimination.levels) - 1
        write(levels.count, np.array([self.count], dtype=np.int32))

    def factor(self, p: Pattern, a: Sources, f: Factor) -> None:
        """Factor the matrix."""
        launch, l, threads = self.device.launch, self.levels, self._threads

        def level(ahead: int) -> None:
            launch(level_kernels.gather_level, threads, threads, ahead, l, p, a, f)
            launch(level_kernels.factor_level, threads, threads, ahead, l, p, f)
            launch(level_kernels.divide_level, threads, threads, ahead, l, p, f)

        self._through(level)

    def factor_and_solve(self, p: Pattern, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """The same, and solve for x = scale H^-1 rhs (n, 12) and the bodies' rhs . x."""
        self.factor(p, a, f)
        self.solve(p, f, scale, rhs, x, dots)

    def solve(self, p: Pattern, f: Factor, scale: float, rhs, x, dots) -> None:
        """Solve with the last factor."""
        launch, l, threads = self.device.launch, self.levels, self._threads

        def forward(ahead: int) -> None:
            launch(level_solves.sum_forward, threads, threads, ahead, l, p, f, scale, rhs, x)
            launch(level_solves.solve_forward, threads, threads, ahead, l, p, f, x)

        def backward(ahead: int) -> None:
            launch(level_solves.sum_backward, threads, threads, ahead, l, p, f, x)
            launch(level_solves.solve_backward, threads, threads, ahead, l, p, f, rhs, x, dots)

        self._through(forward)
        self._through(backward)

    def _through(self, level: Callable[[int], None]) -> None:
        """All levels, one after another; in a record the device counts them."""
        device, l = self.device, self.levels

        def some(levels: int) -> None:
            for ahead in range(levels):
                level(ahead)
            device.launch(level_kernels.pass_levels, 1, l, levels)

        device.launch(level_kernels.begin_levels, 1, l)
        if device.recording:
            device.repeat(l.going, lambda: some(AT_ONCE))
        else:
            for k in range(0, self.count, AT_ONCE):
                some(min(AT_ONCE, self.count - k))


def lanes_of(elimination: Elimination) -> Arrays:
    """Lanes (m,) of `factor_levels.Levels` for the levels of an elimination."""

    def lanes(longest: np.ndarray, items: np.ndarray) -> np.ndarray:
        wanted = 1 << np.ceil(np.log2(np.maximum(longest / SHARE, 1))).astype(np.int64)
        capacity = 1 << np.floor(np.log2(np.maximum(MOST_THREADS // (12 * items), 1))).astype(np.int64)
        return np.minimum(np.minimum(wanted, WARP), capacity).astype(np.int32)

    return {name: lanes(*of) for name, of in sums_of(elimination).items()}


def sums_of(elimination: Elimination) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By kinds of sums, products of slots, updates of rows and blocks right of their diagonals: the longest sum (m,) of every
    level, and how many there are (m,). Of the slots of a row that on the diagonal has most products, as many as updates."""
    bounds, rights, ups = elimination.levels, elimination.rights, elimination.ups
    begins, rows = bounds[:-1], np.diff(bounds).astype(np.int64)
    blocks = np.concatenate([[0], np.cumsum(rights + 1, dtype=np.int64)])
    slots = np.diff(blocks[bounds])

    def longest(lengths: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(lengths, begins) if len(begins) else np.zeros(0, dtype=np.int64)

    return {"products": (longest(ups), slots), "ups": (longest(ups), rows), "rights": (longest(rights), rows)}
