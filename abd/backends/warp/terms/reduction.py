"""Sums over the items of body pairs, in a fixed order, into gradients and 12x12 blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from cuda_kernels.bodies.affine import vec12
from cuda_kernels.contact import active_pairs, blocks, elements
from cuda_kernels.linear.couplings import Coupling

RUN_BYTES = 8 * (2 * 12 + 3 * 144) + 3 * 4 + elements.SHORT_RUN * (8 * (3 + 9 + 4 + 4 + 12 + 2) + 4 * (2 + 3))
"""Bytes per run: two gradients, three blocks, its pair and its items."""
RESERVED = (256 << 20) // RUN_BYTES
"""Maximum number of runs for which capacity is reserved in advance."""


class Columns:
    """Pairs of a list by column body, for n bodies, in the order of the list.

    `launch_keys`, `sort` and `launch_starts` build the index. Recorded launches cannot contain the sort.

    Args:
        fixed: (n,) bool, bodies whose columns are not used.

    Attributes:
        starts: (n + 1,) first pair of every body in `order`.
    """

    def __init__(self, device: Device, fixed: np.ndarray):
        self.device, self.n, self._pool = device, len(fixed), Pool(device)
        self.fixed, self.starts = device.upload(fixed, wp.int32), device.zeros(len(fixed) + 1, wp.int32)
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Make capacity for pairs."""
        # sorting needs twice the capacity
        self._keys, self.order = (self._pool.get(name, 2 * capacity, wp.int32) for name in ("keys", "order"))

    def launch_keys(self, extent: int, pairs: wp.array, counts: wp.array) -> None:
        """Compute the sort keys of counts[0] pairs; the launch covers `extent` pairs."""
        query = counts, pairs, self.fixed, self.n, self._keys, self.order
        self.device.launch(active_pairs.key_columns, extent, *query, grain=16384)

    def sort(self, count: int) -> None:
        """Sort the first `count` keys."""
        self.device.sort_pairs(self._keys, self.order, count)

    def launch_starts(self, counts: wp.array) -> None:
        """Compute `starts` after the sort."""
        query = counts, self._keys, self.starts
        self.device.launch(active_pairs.key_starts, self.n + 1, *query, grain=16384)

    def launch_copy(self, other: Columns, extent: int) -> None:
        """Copy another index of at most `extent` pairs."""
        self.device.copy(self.starts, other.starts)
        self.device.copy(self.order, other.order, count=extent)


@dataclass(frozen=True)
class PairList:
    """Body pairs and their items; the arrays may have a larger capacity.

    Attributes:
        pairs: vec2i, row and column body; segment: first item of every pair; group: (n + 1,) first pair of every row
            body; columns: index of the pairs by column body.
        counts: int32 (2,) on the device: [pairs, items].
        count, items: the same on the host; capacity: capacity for pairs.
    """

    pairs: wp.array
    segment: wp.array
    group: wp.array
    columns: Columns
    counts: wp.array
    count: int
    items: int
    capacity: int


class Reduction:
    """Gradients and blocks of the body pairs with active items.

    `prepare` finds the pairs and divides their items into runs. A kernel then fills `sums` per run. `reduce` adds the runs of
    each pair and the pairs of each body. All can be recorded after `reserve`. Launches cover `pair_capacity` pairs or
    `run_capacity` runs; kernels return beyond `counts`.

    On CUDA a kernel fills `elements` per place, and `sum_elements` fills `sums`.

    Args:
        per_item: whether to use `elements`; on CUDA by default.
        n: number of bodies. Lists contain no columns of static bodies: their sums are not used, and one thread would
            process the many pairs of the ground.

    Attributes:
        coupling: off-diagonal blocks with the entries of every mobile body, for the linear solvers.
        runs, items, sums, elements: kernel arguments; run: number of places of a run, one for each part of an active item.
        counts: int32 (2,) on the device, listed [pairs, runs]; needed: the same without the limit by the capacity.
        pair_capacity, run_capacity: capacities.
    """

    def __init__(self, device: Device, n: int, per_item: bool | None = None):
        self.device, self.n, self.pool, self.scan = device, n, Pool(device), Scan(device)
        self.pair_capacity = self.run_capacity = 0
        per_item = device.wide if per_item is None else per_item
        self.elements = elements.Elements() if per_item else None
        self.run = elements.SHORT_RUN if per_item else blocks.RUN
        self.coupling, self.runs, self.sums, self.items = Coupling(), blocks.Runs(), blocks.PairSums(), active_pairs.Items()
        self.counts, self.needed = device.zeros(2, wp.int32), device.zeros(2, wp.int32)
        self.coupling.starts, self.coupling.count = device.zeros(n + 1, wp.int32), self.counts
        self.bodies, self.entries = device.upload(np.array([n]), wp.int32), device.zeros(max(n, 1), wp.int32)
        self.ends = active_pairs.Ends()
        self._single_part = device.zeros(0, wp.int64)
        self.scan.reserve(n)
        self.grow(1, 1)

    def reserve(self, listed: PairList) -> None:
        """Reserve capacity for a list, before `prepare` is recorded or a record is replayed for it."""
        size = listed.capacity
        most = listed.count + listed.items // self.run
        self.grow(min(listed.count, RESERVED), min(most, RESERVED))
        self._places(size)
        self.scan.reserve(size)

    def prepare(self, listed: PairList, done, values, within: float, parts: wp.array | None = None) -> None:
        """Find the pairs with an item value below `within` and at least one body that is not done.

        A record fixes `within` and the arrays. It omits pairs and runs beyond the capacity (see `needed`); outside of records the
        capacity grows.

        Args:
            done: (n,); values: values of all items; parts: codes of the parts of all items, one part per item by default.
        """
        parts = self._single_part if parts is None else parts
        device = self.device
        recording, size = device.deferring, listed.capacity
        active, further, slot, behind = self._places(size)
        query = listed.segment, values, within, parts
        device.launch(
            active_pairs.count_runs, size, listed.pairs, listed.counts, done, *query, self.run, active, further, grain=512
        )
        if not recording:
            self.reserve(listed)
        for counts, offsets in ((active, slot), (further, behind)):
            self.scan.run(counts, offsets, listed.counts, 0, size)
        self._tally(listed, slot, behind)
        if not recording and self.grow(*map(int, device.read(self.needed))):
            self._tally(listed, slot, behind)
        c, n = self.coupling, self.n
        device.launch(
            active_pairs.list_runs,
            size, listed.pairs, listed.counts, *query, slot, behind, self.counts, self.run, c.row, c.column, self.rest,
            self.runs, self.items, grain=512,
        )  # fmt: skip
        self.ends.group, self.ends.starts, self.ends.order = listed.group, listed.columns.starts, listed.columns.order
        device.launch(active_pairs.count_entries, n, self.ends, slot, self.counts, self.entries, grain=4096)
        self.scan.run(self.entries, c.starts, self.bodies, 0, n)
        device.launch(active_pairs.list_entries, n, self.ends, slot, self.counts, c.starts, c.entries, grain=4096)

    def sum_elements(self) -> None:
        """Sum the elements of every run."""
        runs = self.run_capacity
        self.device.launch(elements.sum_elements, 12 * runs, self.elements, self.runs, self.counts, self.sums)

    def _places(self, size: int) -> list[wp.array]:
        """Arrays for counts and offsets of pairs and of their additional runs."""
        return [self.pool.get(name, size + 1, wp.int32) for name in ("active", "further", "slot", "behind")]

    def _tally(self, listed: PairList, slot, behind) -> None:
        capacities = self.pair_capacity, self.run_capacity
        self.device.launch(active_pairs.tally, 1, listed.counts, slot, behind, *capacities, self.needed, self.counts)

    def lacks_capacity(self) -> bool:
        """Make the capacity that the last record lacked; True if it lacked any and must be repeated."""
        return self.device.records and self.grow(*map(int, self.device.read(self.needed)))

    def grow(self, pairs: int, runs: int) -> bool:
        """Make capacity for pairs and runs; True if it was insufficient, so that a record of `needed` ones must be repeated."""
        pairs, runs = max(pairs, self.pair_capacity), max(runs, self.run_capacity)
        if pairs == self.pair_capacity and runs == self.run_capacity:
            return False
        get, c, sums = self.pool.get, self.coupling, self.sums
        c.row, c.column = get("row", pairs, wp.int32), get("column", pairs, wp.int32)
        c.blocks = get("H_ij", runs, wp.float64, (12, 12))
        # every pair has a run
        self.run_capacity = c.blocks.shape[0]
        self.pair_capacity = min(c.row.shape[0], self.run_capacity)
        c.entries = get("entries", 2 * self.pair_capacity, wp.int32)
        self.rest = get("rest", self.pair_capacity + 1, wp.int32)
        self.pool.reserve(self.runs, runs)
        self.pool.reserve(sums, runs, "g_i", "g_j")
        sums.H_ii, sums.H_jj = get("H_ii", runs, vec12, (12,)), get("H_jj", runs, vec12, (12,))
        sums.H_ij = self.device.rows(c.blocks)
        self.pool.reserve(self.items, self.run * self.run_capacity)
        if self.elements:
            self.pool.reserve(self.elements, self.run * self.run_capacity)
        return True

    def reduce(self, done, gradient, diagonal) -> None:
        """Sum the runs of every pair and add to gradient (n, 12) and diagonal (n, 12, 12) of bodies that are not done."""
        device, c = self.device, self.coupling
        if self.pair_capacity == 0:
            return
        device.launch(blocks.join_runs, 12 * self.pair_capacity, self.counts, self.rest, self.sums, grain=4096)
        device.launch(
            blocks.gather_bodies,
            12 * self.n, done, c.starts, c.entries, self.sums, gradient, device.rows(diagonal),
        )  # fmt: skip
