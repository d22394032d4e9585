"""The launches of a block Cholesky factor: ranges of panels with levels above them, or levels of rows.

Ranges are for a processor: few items that each do much, and blocks used again while they are in cache. Levels of rows
are for a GPU: many threads per block, and launches that know nothing of the pattern. Both stand for one `Elimination`, which
says which of them it is made for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import Device, Pool
from abd.backends.linear.elimination import Elimination, starts_of
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear import factor_levels as level_kernels
from cuda_kernels.linear import factor_ranges as kernels
from cuda_kernels.linear.factor_levels import Levels
from cuda_kernels.linear.factor_panels import Panels
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources

WORTH_A_THREAD = 400.0
"""Products of two blocks in the smallest slice of a launch that is worth a thread."""

THREADS = 1 << 17
"""Of a launch over a level on CUDA, about as many as run at once."""
THREADS_EMULATED = 64
"""The same where one thread runs them all."""
WARP = 32
SHARE = 4
"""Products that a thread does before others take a share."""
MOST_THREADS = 1 << 30
"""Items of a level times their lanes: what is left to 32 bits."""
AT_ONCE = 4
"""Levels between two looks of the device at whether there are more."""
TRIANGLES = 11 / 144 + 1 / 12 + 2 * 11 / 144
"""Per level, of products of blocks or of vectors with blocks: eleven rows of a diagonal block, half a column of the other blocks,
and two triangles by twelve threads."""

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
    """Levels of rows that do not depend on each other, one after another, by launches that are the same for any pattern.

    Attributes:
        levels: data of the kernels; arrays that the next elimination finds room in.
        count: levels of the present elimination.
    """

    def __init__(self, device: Device):
        self.device, self.levels, self.count = device, Levels(), 0
        self._pool = Pool(device)
        for name in ("count", "at", "going"):
            setattr(self.levels, name, device.zeros(1, wp.int32))
        self._threads = device.lanes(THREADS) if not device.is_cpu else THREADS_EMULATED

    def follow(self, elimination: Elimination, pattern: Arrays, products: Arrays) -> None:
        """Stand for an elimination, whose arrays `Elimination.fill` has returned."""
        levels, write = self.levels, self.device.write
        arrays = {"rows": elimination.levels, **products, **lanes_of(elimination.levels, pattern, products)}
        for name, values in arrays.items():
            array = self._pool.get(name, len(values), wp.int32)
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
            launch(level_kernels.sum_forward, threads, threads, ahead, l, p, f, scale, rhs, x)
            launch(level_kernels.solve_forward, threads, threads, ahead, l, p, f, x)

        def backward(ahead: int) -> None:
            launch(level_kernels.sum_backward, threads, threads, ahead, l, p, f, x)
            launch(level_kernels.solve_backward, threads, threads, ahead, l, p, f, rhs, x, dots)

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


def lanes_of(bounds: np.ndarray, pattern: Arrays, products: Arrays) -> Arrays:
    """Lanes (m,) of `factor_levels.Levels` for levels that begin with rows `bounds` (m + 1,)."""
    starts, begins = pattern["starts"], bounds[:-1]
    rows = np.diff(bounds).astype(np.int64)
    slots = np.diff(starts[bounds]).astype(np.int64)

    def lanes(longest: np.ndarray, items: np.ndarray) -> np.ndarray:
        wanted = 1 << np.ceil(np.log2(np.maximum(longest / SHARE, 1))).astype(np.int64)
        room = 1 << np.floor(np.log2(np.maximum(MOST_THREADS // (12 * items), 1))).astype(np.int64)
        return np.minimum(np.minimum(wanted, WARP), room).astype(np.int32)

    if not len(begins):
        return {name: np.zeros(0, dtype=np.int32) for name in ("products", "ups", "rights")}
    return {
        "products": lanes(np.maximum.reduceat(np.diff(products["starts"]), starts[begins]), slots),
        "ups": lanes(np.maximum.reduceat(np.diff(pattern["ups"]), begins), rows),
        "rights": lanes(np.maximum.reduceat(np.diff(starts) - 1, begins), rows),
    }


def longest_chain(elimination: Elimination) -> float:
    """Products of blocks that single threads of a GPU do one after another in a factorisation and a solve, over all levels of
    rows; of a product that several share, each does its part.

    Per level: a row of twelve of the products of a slot, by its lanes; a twelfth of two products of vectors with blocks, by
    their lanes; what the triangles of the diagonal blocks take, twelve threads each.
    """
    pattern, products = elimination.fill()
    lanes = lanes_of(elimination.levels, pattern, products)
    begins, starts = elimination.levels[:-1], pattern["starts"]
    longest = {
        "products": np.maximum.reduceat(np.diff(products["starts"]), starts[begins]),
        "ups": np.maximum.reduceat(np.diff(pattern["ups"]), begins),
        "rights": np.maximum.reduceat(np.diff(starts) - 1, begins),
    }
    rows, slots = np.diff(elimination.levels), np.diff(starts[elimination.levels])
    items = {"products": slots, "ups": rows, "rights": rows}
    # threads that are fewer than items times lanes take more than one
    turns = {name: -(-12 * items[name].astype(np.int64) * lanes[name] // THREADS) for name in longest}
    sums = sum(float((turns[name] * -(-longest[name] // lanes[name])).sum()) for name in longest) / 12.0
    return sums + len(begins) * TRIANGLES
