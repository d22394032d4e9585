"""The launches of a block Cholesky factor: ranges of panels with levels above them, or levels of rows.

Ranges are for a processor: few items that each do much, and blocks used again while they are in cache. Levels of rows
are for a GPU: an item per block. Both stand for one `Elimination`, which says which of them it is made for.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.linear.elimination import Elimination, starts_of
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear import factor as row_kernels
from cuda_kernels.linear import factor_ranges as kernels
from cuda_kernels.linear.factor_panels import Panels
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources
from cuda_kernels.linear.factor_top import work_on_top

WORTH_A_THREAD = 400.0
"""Products of two blocks in the smallest slice of a launch that is worth a thread."""

TOP_SLOTS, TOP_PRODUCTS = 128, 1000.0
"""Blocks of a level, and bound of the products that it takes, up to which one block of threads is not slower than five
launches: these take some 10 us, a block 1 us per hundred products. Estimated, not measured."""
TOP_THREADS = 256
"""Of a block, as Warp launches them."""

Arrays = dict[str, np.ndarray]


class RangesOfPanels:
    """Ranges first, one item each, then levels of panels, an item per piece.

    Args:
        pattern, panels: arrays of the elimination, as `Elimination.fill` returns them.

    Attributes:
        ranges: number of them; levels: (piece, pieces, grain, panel, panels) of each.
    """

    def __init__(self, device: Device, elimination: Elimination, pattern: Arrays, panels: Arrays):
        self.device, self.ranges = device, len(elimination.ranges) - 1
        self._none = device.empty(0, vec12)
        first, ups = panels["panels"], panels["ups"]
        rows = np.diff(first)
        taken = starts_of(rows[panels["up_panel"]] * panels["up_reach"], np.int64)
        work = starts_of((taken[ups[1:]] - taken[ups[:-1]]) * rows, np.int64)
        heads = np.searchsorted(panels["heads"], pattern["starts"][elimination.levels]).tolist()
        levels = np.searchsorted(first, elimination.levels).tolist()
        self.levels = []
        for k in range(len(levels) - 1):
            pieces, products = heads[k + 1] - heads[k], float(work[levels[k + 1]] - work[levels[k]])
            grain = max(1, int(WORTH_A_THREAD * pieces / (products + pieces)))
            self.levels.append((heads[k], pieces, grain, levels[k], levels[k + 1] - levels[k]))

    def factor(self, p: Pattern, g: Panels, a: Sources, f: Factor) -> None:
        """Factor the matrix."""
        self.device.launch(kernels.factor_ranges, self.ranges, p, g, a, f, 0, 0.0, self._none, self._none, grain=1)
        self._factor_levels(p, g, a, f)

    def factor_and_solve(self, p: Pattern, g: Panels, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """The same, and solve for x = scale H^-1 rhs and the bodies' rhs . x; forward within the ranges on the way."""
        self.device.launch(kernels.factor_ranges, self.ranges, p, g, a, f, 1, scale, rhs, x, grain=1)
        self._factor_levels(p, g, a, f)
        self._solve_levels(p, g, f, scale, rhs, x, dots)

    def solve(self, p: Pattern, g: Panels, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """Solve with the last factor."""
        self.device.launch(kernels.forward_ranges, self.ranges, p, g, f, scale, rhs, x, grain=1)
        self._solve_levels(p, g, f, scale, rhs, x, dots)

    def _factor_levels(self, p: Pattern, g: Panels, a: Sources, f: Factor) -> None:
        launch = self.device.launch
        for piece, pieces, grain, panel, panels in self.levels:
            launch(kernels.gather_pieces, pieces, p, g, a, f, begin=piece, grain=grain)
            launch(kernels.factor_corners, panels, p, g, f, begin=panel, grain=8)
            launch(kernels.divide_pieces, pieces, p, g, f, begin=piece, grain=8)

    def _solve_levels(self, p: Pattern, g: Panels, f: Factor, scale: float, rhs, x, dots) -> None:
        launch = self.device.launch
        for _, _, _, panel, panels in self.levels:
            launch(kernels.forward_panels, panels, p, g, f, scale, rhs, x, begin=panel, grain=64)
        for _, _, _, panel, panels in reversed(self.levels):
            launch(kernels.backward_panels, panels, p, g, f, rhs, x, dots, begin=panel, grain=64)
        launch(kernels.backward_ranges, self.ranges, p, g, f, rhs, x, dots, grain=1)


class LevelsOfRows:
    """Levels of rows that do not depend on each other, an item per row of U or of a block; the last ones, with little
    work each, in one launch.

    Attributes:
        ranges: none of them; levels: (slot, slots, grain, row, rows) of each; top: number of levels in one launch.
    """

    def __init__(self, device: Device, elimination: Elimination, pattern: Arrays):
        self.device, self.ranges, self.levels = device, 0, []
        starts, ups, bounds = pattern["starts"], pattern["ups"], elimination.levels
        small = []
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            slots = int(starts[end] - starts[begin])
            work = float(ups[end] - ups[begin]) * slots / (end - begin)
            grain = max(1, int(WORTH_A_THREAD * slots / (work + slots)))
            self.levels.append((int(starts[begin]), slots, grain, begin, end - begin))
            small.append(slots <= TOP_SLOTS and work <= TOP_PRODUCTS)
        if device.raw is not None:
            # hand-written kernels do single levels
            small = [False] * len(small)
        self.top = len(small) if all(small) else small[::-1].index(False)
        self._wide = self.levels[: len(self.levels) - self.top]
        self._bounds = device.upload(bounds[len(self._wide) :], wp.int32)
        self._lanes = device.lanes(TOP_THREADS)
        self._none, self._no_dots = device.empty(0, vec12), device.empty(0, wp.float64)

    def factor(self, p: Pattern, g: Panels, a: Sources, f: Factor) -> None:
        """Factor the matrix."""
        self._factor_wide(p, a, f)
        self._work_on_top(1, 0, p, a, f, 0.0, self._none, self._none, self._no_dots)

    def factor_and_solve(self, p: Pattern, g: Panels, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """The same, and solve for x = scale H^-1 rhs and the bodies' rhs . x."""
        self._factor_wide(p, a, f)
        self._solve(1, p, a, f, scale, rhs, x, dots)

    def solve(self, p: Pattern, g: Panels, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """Solve with the last factor."""
        self._solve(0, p, a, f, scale, rhs, x, dots)

    def _factor_wide(self, p: Pattern, a: Sources, f: Factor) -> None:
        """Levels below the top: rows and columns of blocks side by side, or blocks for hand-written kernels."""
        launch = self.device.launch
        for slot, slots, grain, row, rows in self._wide:
            if self.device.raw is None:
                launch(row_kernels.gather_rows, 12 * slots, p, a, f, begin=12 * slot, grain=12 * grain)
                launch(row_kernels.factor_pivots, rows, p, f, begin=row, grain=512)
                launch(row_kernels.divide_columns, 12 * slots, p, f, begin=12 * slot, grain=12288)
            else:
                launch(row_kernels.gather_slots, slots, p, a, f, begin=slot, grain=grain)
                launch(row_kernels.factor_pivots, rows, p, f, begin=row, grain=512)
                launch(row_kernels.divide_slots, slots, p, f, begin=slot, grain=1024)

    def _solve(self, factoring: int, p: Pattern, a: Sources, f: Factor, scale: float, rhs, x, dots) -> None:
        """Forward through the wide levels, all that is left of the top, backward through the wide levels."""
        launch = self.device.launch
        for _, _, _, row, rows in self._wide:
            launch(row_kernels.forward_rows, rows, p, f, scale, rhs, x, begin=row, grain=256)
        self._work_on_top(factoring, 1, p, a, f, scale, rhs, x, dots)
        for _, _, _, row, rows in reversed(self._wide):
            launch(row_kernels.backward_rows, rows, p, f, rhs, x, dots, begin=row, grain=256)

    def _work_on_top(self, factoring: int, solving: int, p: Pattern, a: Sources, f: Factor, *solution) -> None:
        if self.top:
            # as many items as one block has threads
            self.device.launch(
                work_on_top, self._lanes, self._lanes, self._bounds, factoring, solving, p, a, f, *solution,
                grain=TOP_THREADS,
            )  # fmt: skip
