"""Launches of a block Cholesky factor, with two schedules that have the same methods.

`RangesOfPanels` is for the CPU: few threads with much work each, and blocks reused in cache. `LevelsOfRows` is for a GPU: many
threads per block, and launches that do not depend on the pattern. `Elimination.in_ranges` selects the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import WARP
from abd.backends.linear.elimination import Elimination, starts_of
from cuda_kernels.linear import factor_levels as level_kernels
from cuda_kernels.linear import factor_ranges as kernels
from cuda_kernels.linear import level_solves
from cuda_kernels.linear.factor_levels import Levels
from cuda_kernels.linear.factor_panels import Panels
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources

WORTH_A_THREAD = 400.0
"""Minimum number of products of two blocks per CPU thread."""

THREADS = 1 << 17
"""Threads of a launch over a level on CUDA, about the number that run concurrently."""
THREADS_EMULATED = 64
"""Threads of such a launch if CUDA is emulated on one CPU thread."""
RESERVED = 1 << 20
"""Initial capacity of the arrays, in products of blocks."""
SHARE = 4
"""Products per thread above which a sum is divided among lanes."""
MOST_THREADS = 1 << 30
"""Maximum number of items of a level times their lanes, within 32 bits."""
AT_ONCE = 4
"""Levels between two checks on the device whether levels remain."""

Arrays = dict[str, np.ndarray]


class RangesOfPanels:
    """Ranges, one thread each, then levels of panels, one item per piece.

    Attributes:
        ranges, count: numbers of ranges and of levels; levels: (piece, pieces, grain, panel, panels) per level. In solves, panel
            k of a level is range k + `_shift`.
    """

    def __init__(self, device: Device):
        self.device, self.panels, self.ranges, self.count = device, Panels(), 0, 0
        self._pool, self._shift = Pool(device), 0
        self.levels: list[tuple[int, int, int, int, int]] = []

    def set_elimination(self, elimination: Elimination, pattern: Arrays, panels: Arrays) -> None:
        """Set the elimination and its arrays from `Elimination.fill`.

        Recorded launches stay valid if the launches are the same, as they are for one range and any pattern."""
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
        self.ranges, self.count, self.levels, self._shift = ranges, len(levels), levels, ranges - starts[0]

    def factor(self, p: Pattern, a: Sources, f: Factor) -> None:
        launch, g = self.device.launch, self.panels
        launch(kernels.factor_ranges, self.ranges, p, g, a, f, grain=1)
        for piece, pieces, grain, panel, panels in self.levels:
            launch(kernels.gather_pieces, pieces, p, g, a, f, begin=piece, grain=grain)
            launch(kernels.factor_corners, panels, p, g, f, begin=panel, grain=8)
            launch(kernels.divide_pieces, pieces, p, g, f, begin=piece, grain=8)

    def solve(self, p: Pattern, f: Factor, scale: float, rhs, x, dots) -> None:
        launch, g, rhs, x = self.device.launch, self.panels, self.device.rows(rhs), self.device.rows(x)
        launch(kernels.forward_ranges, self.ranges, p, g, f, scale, rhs, x, grain=1)
        for _, _, _, panel, panels in self.levels:
            launch(kernels.forward_ranges, panels, p, g, f, scale, rhs, x, begin=panel + self._shift, grain=64)
        for _, _, _, panel, panels in reversed(self.levels):
            launch(kernels.backward_ranges, panels, p, g, f, rhs, x, dots, begin=panel + self._shift, grain=64)
        launch(kernels.backward_ranges, self.ranges, p, g, f, rhs, x, dots, grain=1)


class LevelsOfRows:
    """Levels of independent rows; the launches are the same for any pattern.

    Attributes:
        levels: kernel data, in arrays with capacity for other eliminations.
        ranges, count: 0, and the number of levels of the current elimination.
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

    def set_elimination(self, elimination: Elimination, pattern: Arrays, products: Arrays) -> None:
        """Set the elimination and its arrays from `Elimination.fill`."""
        levels, write = self.levels, self.device.write
        arrays = {"rows": elimination.levels, **products, **lanes_of(elimination)}
        for name, values in arrays.items():
            array = self._pool.get(name, max(len(values), RESERVED), wp.int32)
            write(array, values)
            setattr(levels, name, array)
        self.count = len(elimination.levels) - 1
        write(levels.count, np.array([self.count], dtype=np.int32))

    def factor(self, p: Pattern, a: Sources, f: Factor) -> None:
        launch, l, threads = self.device.launch, self.levels, self._threads

        def level(ahead: int) -> None:
            launch(level_kernels.gather_level, threads, threads, ahead, l, p, a, f)
            launch(level_kernels.factor_level, threads, threads, ahead, l, p, f)
            launch(level_kernels.divide_level, threads, threads, ahead, l, p, f)

        self._through(level)

    def solve(self, p: Pattern, f: Factor, scale: float, rhs, x, dots) -> None:
        launch, l, threads = self.device.launch, self.levels, self._threads

        def level(backward: int, ahead: int) -> None:
            launch(level_solves.sum_row, threads, threads, ahead, backward, l, p, f, scale, rhs, x)
            launch(level_solves.solve_row, threads, threads, ahead, backward, l, p, f, rhs, x, dots)

        for backward in (0, 1):
            self._through(partial(level, backward))

    def _through(self, level: Callable[[int], None]) -> None:
        """Run all levels in order; in a record the device counts them."""
        device, l = self.device, self.levels

        def run(levels: int) -> None:
            for ahead in range(levels):
                level(ahead)
            device.launch(level_kernels.pass_levels, 1, l, levels)

        device.launch(level_kernels.begin_levels, 1, l)
        if device.recording:
            device.repeat(l.going, lambda: run(AT_ONCE))
        else:
            for k in range(0, self.count, AT_ONCE):
                run(min(AT_ONCE, self.count - k))


def lanes_of(elimination: Elimination) -> Arrays:
    """Lanes (m,) of `factor_levels.Levels` for the levels of an elimination."""

    def lanes(longest: np.ndarray, items: np.ndarray) -> np.ndarray:
        wanted = 1 << np.ceil(np.log2(np.maximum(longest / SHARE, 1))).astype(np.int64)
        capacity = 1 << np.floor(np.log2(np.maximum(MOST_THREADS // (12 * items), 1))).astype(np.int64)
        return np.minimum(np.minimum(wanted, WARP), capacity).astype(np.int32)

    return {name: lanes(*of) for name, of in sums_of(elimination).items()}


def sums_of(elimination: Elimination) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Longest sum (m,) and number of sums (m,) of every level, per kind: products of slots, updates of rows, blocks right of
    the diagonal. The diagonal slot of a row has the most products, one per update."""
    bounds, rights, ups = elimination.levels, elimination.rights, elimination.ups
    begins, rows = bounds[:-1], np.diff(bounds).astype(np.int64)
    blocks = np.concatenate([[0], np.cumsum(rights + 1, dtype=np.int64)])
    slots = np.diff(blocks[bounds])

    def longest(lengths: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(lengths, begins) if len(begins) else np.zeros(0, dtype=np.int64)

    return {"products": (longest(ups), slots), "ups": (longest(ups), rows), "rights": (longest(rights), rows)}
