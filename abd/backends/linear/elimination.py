"""Symbolic block Cholesky factorisation: order, fill and schedule from the graph of the blocks.

Rows are eliminated in an order of `abd.backends.linear.orders`. Consecutive rows with the same blocks to their right form
*panels* (supernodes). The schedule has two stages. A *range* of panels is a set of whole subtrees of the elimination tree,
processed by one thread. The panels above the ranges, whose subtrees have a large fraction of the work, form *levels* of
independent panels. The division does not depend on time measurements or the number of threads.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse

from abd.backends.linear.orders import in_rounds, minimum_degree, permuted, run
from abd.errors import StepFailure
from cuda_kernels.linear import elimination as kernels
from cuda_kernels.linear.factor_panels import PIECE as _PIECE

ROW_COST = 4.0
"""Cost of the diagonal block and the divisions of a row, in products of two blocks."""
WORTH_CUTTING = 6000.0
"""Total work below which there is one range and no level, in products of two blocks."""
LARGE = 1 / 8, 1 / 4, 1 / 2
"""Fractions of the total work above which a subtree is divided: the first one whose levels cost less than the work."""
LEVEL_COST = 1000.0
"""Cost of the launches of a level, in products of two blocks."""
WORTH_DISTRIBUTING = 1500.0
"""Work below which independent subtrees share one range."""
RANGES = 64
"""Maximum number of ranges."""
PIECE = int(_PIECE)
PANEL = 8
"""Maximum number of rows of a panel; a block of another panel stays in cache while it updates these rows."""


class Elimination:
    """Pattern and schedule of the factor of a symmetric matrix of 12x12 blocks.

    Args:
        size: number N of block rows.
        rows, columns: (k,) coordinates of the blocks off the diagonal, one triangle or both, repeats allowed.
        in_ranges: whether to form ranges of panels; otherwise all rows are in levels.
        worlds: (N,) world of every block row, by default one. There are no blocks between worlds, and the elimination order of
            a world does not depend on other worlds.

    Attributes:
        order: (N,) block row at every position of the elimination.
        products: number of products of two blocks in a factorisation; slots: number K of blocks of the factor.
        rights, ups: (N,) number of blocks of the factor right of the diagonal in every row, and above it in every column.
        panels: (P + 1,) positions; ranges: (t + 1,) positions; levels: (m + 1,) positions after them.
    """

    def __init__(
        self, size: int, rows: np.ndarray, columns: np.ndarray, in_ranges: bool = True, worlds: np.ndarray | None = None
    ):
        self.size, self.in_ranges = size, in_ranges
        worlds = np.zeros(size, dtype=int) if worlds is None else worlds
        is_coupled = rows != columns
        ends = np.concatenate([rows[is_coupled], columns[is_coupled]]), np.concatenate([columns[is_coupled], rows[is_coupled]])
        self._graph = scipy.sparse.csr_matrix((np.ones(len(ends[0]), dtype=bool), ends), shape=(size, size))
        order = minimum_degree(self._graph, worlds) if in_ranges else in_rounds(self._graph, worlds)
        starts, neighbours = permuted(self._graph, order)
        parent = np.empty(size, dtype=np.int32)
        run(kernels.find_tree, starts, neighbours, parent, np.empty_like(parent))
        rights, ups = np.empty_like(parent), np.empty_like(parent)
        run(kernels.count_fill, starts, neighbours, parent, np.empty_like(parent), rights, ups)
        self.slots = size + int(rights.sum(dtype=np.int64))
        self.products = int((rights.astype(np.int64) * (rights + 1) // 2).sum())
        post = np.empty_like(parent)
        run(kernels.find_postorder, parent, rights, *(np.empty_like(parent) for _ in range(3)), post)
        parent, rights = relabelled(parent, post), rights[post]
        panels = panels_of(parent, rights, PANEL if in_ranges else 1)
        work = np.add.reduceat(0.5 * rights * (rights + 1.0) + ROW_COST, panels[:-1])
        arranged = self._schedule(parents_of(panels, parent), work, in_ranges)
        rows = rearranged(panels, arranged)
        self.panels = starts_of(np.diff(panels)[arranged])
        self.ranges, self.levels = self.panels[self._panel_ranges], self.panels[self._panel_levels]
        self._parent = relabelled(parent, rows)
        self.rights, self.ups = rights[rows], ups[post[rows]]
        self.order = order[post[rows]]

    def _schedule(self, parent: np.ndarray, work: np.ndarray, in_ranges: bool) -> np.ndarray:
        """Divide the tree of the panels into ranges and levels; returns the order of the panels, levels last."""
        size, whole, total = len(parent), work.copy(), work.sum()
        run(kernels.add_to_parents, parent, whole)
        top = np.full(size, not in_ranges)
        for fraction in LARGE if in_ranges and total >= WORTH_CUTTING else ():
            is_large = whole > fraction * total
            if LEVEL_COST * np.count_nonzero(is_large) < total:
                top = is_large
                break
        outer = np.where(parent >= 0, top[parent], True)
        heads = np.flatnonzero(~top & outer)
        load = whole[heads]
        lengths = np.diff(np.concatenate([[-1], heads]))
        # a subtree is contiguous in the postorder; subtract the top panels between two subtrees
        count = np.cumsum(top)
        lengths = lengths - np.diff(np.concatenate([[0], count[heads]]))
        bins = distributed(load)
        of_panel = np.repeat(bins, lengths)
        inner = np.flatnonzero(~top)
        height = np.zeros(size, dtype=np.int32)
        above = np.where(top, parent, -1)
        run(kernels.find_heights, above.astype(np.int32), height)
        upper = np.flatnonzero(top)
        arranged = np.concatenate(
            [inner[np.argsort(of_panel, kind="stable")], upper[np.argsort(height[upper], kind="stable")]]
        )
        self._panel_ranges = starts_of(np.bincount(of_panel)) if len(inner) else np.zeros(1, dtype=np.int32)
        self._panel_levels = len(inner) + starts_of(np.bincount(height[upper]))
        return arranged

    @cached_property
    def fill(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Arrays of `factor_rows.Pattern` and of `factor_panels.Panels` in `cuda_kernels.linear`.

        If all rows are in levels, the latter are the products of `factor_levels.Levels`. All are int32 positions in the order of
        elimination."""
        size, count = self.size, self.slots
        starts, neighbours = permuted(self._graph, self.order)
        mark, rights = np.empty(size, dtype=np.int32), self.rights
        first = starts_of(rights + 1)
        row, column = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
        run(kernels.fill_rows, starts, neighbours, self._parent, mark, first[:-1].copy(), row, column)
        pattern = {"starts": first, "row": row, "column": column}
        if self.in_ranges:
            none = np.zeros(0, dtype=np.int32)
            # in solves, every panel of a level is a range
            ends = np.arange(self._panel_levels[0] + 1, len(self.panels), dtype=np.int32)
            lists = {"ups": none, "up_row": none, "up_slot": none, "ranges": np.append(self._panel_ranges, ends)}
            return pattern | lists, self._fill_panels(first, column, rights)
        above = np.flatnonzero(row < column).astype(np.int32)
        up_slot = above[np.argsort(column[above], kind="stable")]
        ups, up_row = starts_of(self.ups), row[up_slot]
        lists = {"ups": ups, "up_row": up_row, "up_slot": up_slot, "ranges": self._panel_ranges}
        return pattern | lists, self._list_products(first, column, ups, up_row, up_slot)

    def _list_products(self, *lists: np.ndarray) -> dict[str, np.ndarray]:
        mark = np.empty(self.size, dtype=np.int32)
        starts, left, right = list_entries(self.slots, kernels.list_products, *lists, mark)
        return {"starts": starts, "left": left, "right": right}

    def _fill_panels(self, first: np.ndarray, column: np.ndarray, rights: np.ndarray) -> dict[str, np.ndarray]:
        panels = self.panels
        panel = np.repeat(np.arange(len(panels) - 1, dtype=np.int32), np.diff(panels))
        ups, up_panel, up_reach = list_entries(len(panels) - 1, kernels.list_updates, panels, panel, first, column)
        upper = panels[self._panel_levels[0] : -1]
        pieces = -(-(rights[upper] + 1) // PIECE)
        within = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        return {
            "panels": panels, "panel": panel, "ups": ups, "up_panel": up_panel, "up_reach": up_reach,
            "heads": (np.repeat(first[upper], pieces) + PIECE * within).astype(np.int32),
        }  # fmt: skip


def relabelled(parent: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Parents (N,) after the rows are reordered and renumbered."""
    place = np.empty_like(parent)
    place[order] = np.arange(len(order), dtype=parent.dtype)
    moved = parent[order]
    return np.where(moved >= 0, place[moved], -1).astype(np.int32)


def starts_of(lengths: np.ndarray, dtype=np.int32) -> np.ndarray:
    """(k + 1,) start of every piece of the given lengths, and the end of the last one."""
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if starts[-1] > np.iinfo(dtype).max:
        raise StepFailure("linear_solver", f"the factor has {starts[-1]:,} entries to list; use solver.linear_solver = 'pcg'")
    return starts.astype(dtype)


def list_entries(count: int, kernel, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts (count + 1,) of lists and their two columns, by a kernel that counts and lists their entries."""
    counts, none = np.zeros(count, dtype=np.int32), np.zeros(0, dtype=np.int32)
    run(kernel, 1, *inputs, counts, none, none)
    starts = starts_of(counts)
    one, other = (np.empty(starts[-1], dtype=np.int32) for _ in range(2))
    run(kernel, 0, *inputs, starts[:-1].copy(), one, other)
    return starts, one, other


def panels_of(parent: np.ndarray, rights: np.ndarray, largest: int) -> np.ndarray:
    """(P + 1,) starts of panels: runs of at most `largest` rows with the same blocks to their right (counts `rights` (N,))."""
    size = len(parent)
    if size == 0:
        return np.zeros(1, dtype=np.int32)
    below = np.arange(size - 1)
    is_continued = (parent[:-1] == below + 1) & (rights[:-1] == rights[1:] + 1)
    runs = np.concatenate([[0], 1 + np.flatnonzero(~is_continued)])
    within = np.arange(size) - np.repeat(runs, np.diff(np.append(runs, size)))
    return np.append(np.flatnonzero(within % largest == 0), size).astype(np.int32)


def parents_of(panels: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """(P,) parents of panels, from the parents of their rows."""
    above = parent[panels[1:] - 1]
    panel = np.repeat(np.arange(len(panels) - 1), np.diff(panels))
    return np.where(above >= 0, panel[above], -1).astype(np.int32)


def rearranged(starts: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Indices of the entries after consecutive pieces are reordered."""
    lengths = np.diff(starts)[order]
    shift = starts[:-1][order] - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(starts[-1])


def distributed(load: np.ndarray) -> np.ndarray:
    """(s,) range of every subtree: distributed back and forth in descending order of load, so that any half of the ranges
    has about half of the load."""
    count = min(RANGES, len(load)) if load.sum() >= WORTH_DISTRIBUTING else min(1, len(load))
    bins = np.empty(len(load), dtype=np.int64)
    if count == 0:
        return bins
    turn = np.arange(len(load)) % (2 * count)
    bins[np.argsort(-load, kind="stable")] = np.minimum(turn, 2 * count - 1 - turn)
    # even ranges ascending, then odd ones descending
    spread = np.concatenate([np.arange(0, count, 2), np.arange(1, count, 2)[::-1]])
    place = np.empty(count, dtype=np.int64)
    place[spread] = np.arange(count)
    return place[bins]
