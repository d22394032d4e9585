"""Sums over the candidates of body pairs, in a fixed order, to gradients and 12x12 blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from abd.backends.warp.terms.columns import Columns
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.contact import active_pairs, blocks, elements
from cuda_kernels.linear.couplings import Coupling

RUN_BYTES = 8 * (2 * 12 + 3 * 144) + 3 * 4 + elements.SHORT_RUN * (8 * (3 + 9 + 4 + 4 + 12 + 2) + 4 * (2 + 3))
"""Of a run: two gradients, three blocks, its pair and its items, one by one."""
RESERVED = (256 << 20) // RUN_BYTES
"""Runs that capacity is set aside for before they are met, where the list could come to as many."""


@dataclass(frozen=True)
class PairList:
    """Body pairs and where each one's items lie; the arrays may have capacity for more.

    Attributes:
        pairs: vec2i, row and column body; segment: first item of every pair; group: (n + 1,) first pair of every row
            body; columns: the pairs by their column bodies.
        counts: int32 (2,) on the device: [pairs, items].
        count, items: the same on the host; capacity: pairs that there is capacity for.
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
    """Blocks of the body pairs with active items.

    `prepare` finds the pairs and cuts their items into runs; a kernel then fills `sums` run by run; `reduce` joins the
    runs and adds the bodies' shares. All of it may be recorded once `follow` has seen the list.

    A launch on the pairs has `pair_capacity` items, one on the runs `run_capacity`; its kernel returns beyond `counts`.

    On CUDA there are `elements`: a kernel fills them item by item, ``run`` places for every run, and `sum_elements` fills
    `sums`.

    Args:
        one_by_one: whether there are elements; on CUDA by default.
        n: bodies. Of those that never move, which are in no pair's row, lists name no columns: their sums are not needed, and
            the ground may be in more pairs than a thread should walk along.

    Attributes:
        coupling: off-diagonal blocks with every other body's list of entries, for the solvers.
        runs, sums, elements: what the kernel takes; run: items of a run, at most.
        counts: int32 (2,) on the device: [pairs, runs] that are listed; needed: the same before those were left out
            that there is no capacity for.
        pairs, run_count: counts on the host, as of the last `prepare` or `grow` outside of a record.
        pair_capacity, run_capacity: what there is capacity for.
    """

    def __init__(self, device: Device, n: int, one_by_one: bool | None = None):
        self.device, self.n, self.pool, self.scan = device, n, Pool(device), Scan(device)
        self.pairs = self.run_count = self.pair_capacity = self.run_capacity = 0
        one_by_one = device.wide if one_by_one is None else one_by_one
        self.elements = elements.Elements() if one_by_one else None
        self.run = elements.SHORT_RUN if one_by_one else blocks.RUN
        self.coupling, self.runs, self.sums = Coupling(), blocks.Runs(), blocks.PairSums()
        self.counts, self.needed = device.zeros(2, wp.int32), device.zeros(2, wp.int32)
        self.coupling.starts, self.coupling.count = device.zeros(n + 1, wp.int32), self.counts
        self.bodies, self.entries = device.upload(np.array([n]), wp.int32), device.zeros(max(n, 1), wp.int32)
        self.ends = active_pairs.Ends()
        self.one = device.zeros(0, wp.int32)
        self.scan.reserve(n)
        self._reserve(1, 1)

    def follow(self, listed: PairList) -> None:
        """Reserve capacity for a list: before `prepare` is recorded for one, and before a record is replayed for another."""
        size = listed.capacity
        most = listed.count + listed.items // self.run
        self._reserve(min(listed.count, RESERVED), min(most, RESERVED))
        self._places(size)
        self.scan.reserve(size)

    def prepare(self, listed: PairList, done, values, within: float, parts: wp.array | None = None) -> None:
        """Find the pairs with an item whose value lies below `within`, and a body that is not done.

        A record keeps `within` and the arrays; it leaves out pairs and runs that there is no capacity for (`needed`), where
        otherwise capacity is made.

        Args:
            done: (n,); values: of all items; parts: bits of the parts of each, where there are `elements`; one by default.
        """
        parts = self.one if parts is None else parts
        device = self.device
        recording, size = device.deferring, listed.capacity
        active, further, slot, behind = self._places(size)
        query = listed.pairs, listed.counts, done, listed.segment, values, within
        if self.elements:
            device.launch(elements.count_short_runs, size, *query, parts, self.run, active, further, grain=512)
        else:
            device.launch(active_pairs.count_runs, size, *query, self.run, active, further, grain=512)
        if not recording:
            self.follow(listed)
        for counts, offsets in ((active, slot), (further, behind)):
            self.scan.run(counts, offsets, listed.counts, 0, size)
        device.launch(active_pairs.tally, 1, listed.counts, slot, behind, self.needed)
        if not recording:
            self.pairs, self.run_count = (int(number) for number in device.read(self.needed))
            self._reserve(self.pairs, self.run_count)
        self._list(listed, size, slot, behind)
        if self.elements:
            device.launch(
                elements.list_items,
                size, listed.counts, listed.segment, values, within, parts, slot, self.counts, self.run, self.rest,
                self.runs, self.elements, grain=512,
            )  # fmt: skip

    def sum_elements(self) -> None:
        """Add up what was filled in item by item."""
        runs = self.run_capacity
        self.device.launch(elements.sum_elements, 12 * runs, self.elements, self.runs, self.counts, self.sums)

    def _places(self, size: int) -> list[wp.array]:
        """Counts and offsets of the pairs and of their further runs."""
        return [self.pool.get(name, size + 1, wp.int32) for name in ("active", "further", "slot", "behind")]

    def _list(self, listed: PairList, size: int, slot, behind) -> None:
        launch, c, n = self.device.launch, self.coupling, self.n
        launch(active_pairs.clamp, 1, self.needed, self.pair_capacity, self.run_capacity, self.counts)
        launch(
            active_pairs.list_runs,
            size, listed.pairs, listed.counts, listed.segment, slot, behind, self.counts, self.run, c.row, c.column,
            self.runs, self.rest, grain=16384,
        )  # fmt: skip
        self.ends.group, self.ends.starts, self.ends.order = listed.group, listed.columns.starts, listed.columns.order
        launch(active_pairs.count_entries, n, self.ends, slot, self.counts, self.entries, grain=4096)
        self.scan.run(self.entries, c.starts, self.bodies, 0, n)
        launch(active_pairs.list_entries, n, self.ends, slot, self.counts, c.starts, c.entries, grain=4096)

    def lacks_capacity(self) -> bool:
        """Make capacity for what the last record found none for; whether it has to be repeated."""
        return self.device.records and self.grow(*map(int, self.device.read(self.needed)))

    def grow(self, pairs: int, runs: int) -> bool:
        """Make capacity for what was `needed`; True if there was too little, and what was recorded has to be repeated."""
        self.pairs, self.run_count = pairs, runs
        return self._reserve(pairs, runs)

    def _reserve(self, pairs: int, runs: int) -> bool:
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
        for name in ("pair", "begin", "end"):
            setattr(self.runs, name, get(name, runs, wp.int32))
        sums.g_i, sums.g_j = get("g_i", runs, vec12), get("g_j", runs, vec12)
        sums.H_ii, sums.H_jj = get("H_ii", runs, vec12, (12,)), get("H_jj", runs, vec12, (12,))
        sums.H_ij = self.device.rows(c.blocks)
        if self.elements:
            self._reserve_elements(self.run * self.run_capacity)
        return True

    def _reserve_elements(self, places: int) -> None:
        get, one = self.pool.get, self.elements
        one.part = get("part", places, wp.int32)
        one.item, one.kind = get("item", places, wp.int32), get("kind", places, wp.vec3i)
        one.f, one.K = get("f", places, wp.vec3d), get("K", places, wp.mat33d)
        one.Y_i, one.Y_j = get("Y_i", places, wp.vec4d), get("Y_j", places, wp.vec4d)
        one.vectors, one.numbers = get("vectors", places, vec12), get("numbers", places, wp.vec2d)

    def reduce(self, done, gradient, diagonal) -> None:
        """Join the runs, and add the shares of bodies that are not done to gradient (n, 12), diagonal (n, 12, 12)."""
        device, c = self.device, self.coupling
        pairs = self.pair_capacity
        if pairs == 0:
            return
        device.launch(blocks.join_runs, 12 * pairs, self.counts, self.rest, self.sums, grain=4096)
        device.launch(
            blocks.gather_bodies,
            12 * self.n, done, c.starts, c.entries, self.sums, gradient, device.rows(diagonal),
        )  # fmt: skip
