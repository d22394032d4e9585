"""Sums over the candidates of body pairs, in a fixed order, to gradients and 12x12 blocks."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device, Pool
from cuda_kernels import blocks
from cuda_kernels.krylov import Coupling
from cuda_kernels.vector12 import vec12


class Reduction:
    """Blocks of the body pairs with active candidates.

    `prepare` finds the pairs and cuts their candidates into runs; a kernel then fills `sums` run by run (`run_count`
    threads); `reduce` joins the runs and adds the bodies' shares.

    Attributes:
        coupling: off-diagonal blocks with every body's list of entries, for the solvers.
        pairs: number of active body pairs; run_count: number of runs; runs, sums: what the kernel takes.
        changes: how often the pairs have changed: the same number, the same places of the blocks.
    """

    def __init__(self, device: Device, n: int):
        self.device, self.n, self.pool = device, n, Pool(device)
        self.pairs = self.run_count = self.changes = 0
        self.version, self._found = -1, np.zeros(0, dtype=np.int32)
        self.coupling, self.runs, self.sums = Coupling(), blocks.Runs(), blocks.PairSums()
        self.coupling.starts = device.zeros(n + 1, wp.int32)
        self._views: dict[str, tuple[wp.array, wp.array]] = {}
        self._resize(0, 0)

    def _resize(self, pairs: int, runs: int) -> None:
        get, c = self.pool.get, self.coupling
        c.row, c.column = get("row", pairs, wp.int32), get("column", pairs, wp.int32)
        c.entries = get("entries", 4 * pairs, wp.int32)
        c.blocks = get("H_ij", runs, wp.float64, (12, 12))
        self.keys = get("keys", 4 * pairs, wp.int32)
        self.rest = get("rest", pairs + 1, wp.int32)
        for name in ("pair", "begin", "end"):
            setattr(self.runs, name, get(name, runs, wp.int32))
        self.sums.g_i, self.sums.g_j = get("g_i", runs, vec12), get("g_j", runs, vec12)
        self.sums.H_ii, self.sums.H_jj = get("H_ii", runs, vec12, (12,)), get("H_jj", runs, vec12, (12,))
        self.sums.H_ij = self._rows("H_ij", c.blocks)

    def active_pairs(self, pair_count: int, segment, values, within: float) -> np.ndarray:
        """(pair_count,) whether each pair has a candidate whose value lies below `within`."""
        active = self.pool.get("marks", pair_count, wp.int32)
        self.device.launch(blocks.mark_pairs, pair_count, segment, values, within, active, grain=512)
        return self.device.read(active, pair_count) != 0

    def prepare(self, version: int, pairs, pair_count: int, done, segment, values, within: float) -> None:
        """Find the pairs with a candidate whose value lies below `within`, and a body that is not done.

        Args:
            version: number of the list that the other arguments describe: where neither it nor the pairs found have
                changed since the last call, everything else stays.
            pairs: (pair_count,) vec2i; done: (n,); segment: (pair_count + 1,) first candidate of every pair;
            values: of all candidates.
        """
        launch, get, count = self.device.launch, self.pool.get, pair_count + 1
        active, further = get("active", count, wp.int32), get("further", count, wp.int32)
        slot, behind = get("slot", count, wp.int32), get("behind", count, wp.int32)
        launch(blocks.count_runs, pair_count, pairs, done, segment, values, within, active, further, grain=512)
        found = self.device.read(active, pair_count)
        if version == self.version and np.array_equal(found, self._found):
            return
        self.version, self._found = version, found
        self.changes += 1
        self.pairs = self.device.scan(active, slot, pair_count) if pair_count else 0
        if self.pairs == 0:
            self.run_count = 0
            self.coupling.starts.zero_()
            return
        self.run_count = self.pairs + self.device.scan(further, behind, pair_count)
        self._resize(self.pairs, self.run_count)
        c = self.coupling
        launch(
            blocks.list_runs,
            pair_count, pairs, segment, slot, behind, self.pairs, c.row, c.column, self.runs, self.rest, self.keys,
            c.entries, grain=16384,
        )  # fmt: skip
        self.device.sort_pairs(self.keys, c.entries, 2 * self.pairs)
        launch(blocks.incidence_starts, self.n + 1, self.keys, 2 * self.pairs, c.starts, grain=16384)

    def reduce(self, done, gradient, diagonal) -> None:
        """Join the runs, and add the shares of bodies that are not done to gradient (n, 12), diagonal (n, 12, 12)."""
        if self.pairs == 0:
            return
        launch = self.device.launch
        if self.run_count > self.pairs:
            launch(blocks.join_runs, 12 * self.pairs, self.pairs, self.rest, self.sums, grain=4096)
        launch(
            blocks.gather_bodies,
            12 * self.n, done, self.coupling.starts, self.coupling.entries, self.sums, gradient,
            self._rows("diagonal", diagonal),
        )  # fmt: skip

    def _rows(self, role: str, matrices: wp.array) -> wp.array:
        """Blocks (k, 12, 12) of float64 seen as rows (k, 12) of `vec12`, without a copy; the view is kept."""
        kept = self._views.get(role)
        if kept is None or kept[0] is not matrices:
            shape = (matrices.shape[0], 12)
            view = wp.array(ptr=matrices.ptr, dtype=vec12, shape=shape, device=matrices.device, copy=False)
            kept = self._views[role] = (matrices, view)
        return kept[1]
