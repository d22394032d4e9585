"""Merge of stored and new lagged contacts, if friction is lagged again in some islands only."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from abd.backends.warp.terms.contacts import Contacts
from cuda_kernels.friction import keeping, lagging

LAGGED = "pair", "kind", "face", "n", "Y_i", "Y_j", "load", "start_stretch", "arc"
"""Arrays per contact of `cuda_kernels.friction.lagging.Lagged`."""

OLD, NEW = range(2)
"""Copies: the previous lagged contacts and the new ones."""


class LaggedContacts(Protocol):
    """Lagged contacts of a term, their pairs and groups of pairs, with counts and capacities of the arrays."""

    contacts: Contacts
    lagged: lagging.Lagged
    pairs: wp.array
    segment: wp.array
    group: wp.array
    count: int
    capacity: int
    pair_count: int
    pair_capacity: int


class FrictionMerge:
    """Two copies of the lagged contacts of one term of n bodies, and their merge."""

    def __init__(self, device, n: int):
        self.device, self.n, self.pools, self.scan = device, n, (Pool(device), Pool(device)), Scan(device)
        self.scan.reserve(n)
        self.every = device.upload([n], wp.int32)
        self.chosen, self.pairs, self.contacts = (device.zeros(max(n, 1), wp.int32) for _ in range(3))
        self.start = device.zeros(n + 1, wp.int32)
        self.copies, self._present = (keeping.Frozen(), keeping.Frozen()), keeping.Frozen()

    def store(self, of: LaggedContacts, place: int) -> None:
        """Copy the lagged contacts to place `OLD` or `NEW`."""
        if of.pair_count == 0:
            self.device.fill(of.lagged.counts)
        # reserve the capacity, not the count: the copies grow with the source
        self._reserve(of, place)
        extent = max(self.device.extent(of.count, of.capacity), self.device.extent(of.pair_count, of.pair_capacity), self.n) + 1
        launch = partial(self.device.launch, keeping.copy_contacts, extent, self._frozen(of), self.n, self.copies[place])
        of.contacts.candidates.graphs.run(("set aside", place), launch)

    def _reserve(self, of: LaggedContacts, place: int) -> None:
        out, get = self.copies[place], self.pools[place].get
        lagged = lagging.Lagged()
        lagged.counts = of.lagged.counts
        self.pools[place].reserve(lagged, of.capacity, *LAGGED)
        out.lagged = lagged
        out.pairs, out.segment = get("pairs", of.pair_capacity, wp.vec2i), get("segment", of.pair_capacity + 1, wp.int32)
        out.group = get("group", self.n + 1, wp.int32)

    def count(self, of: LaggedContacts, chosen: np.ndarray) -> tuple[int, int]:
        """Count pairs and contacts of the merge: new ones of `chosen` bodies (n,) bool, old ones of the others.

        `of.group` (n + 1,) becomes the group of the merge."""
        device, n = self.device, self.n
        device.write(self.chosen, chosen.astype(np.int32))
        of.contacts.candidates.graphs.run("count both", lambda: self._launch_counts(of.group))
        return int(device.read(of.group)[n]), int(device.read(self.start)[n])

    def _launch_counts(self, group: wp.array) -> None:
        device, n = self.device, self.n
        device.launch(keeping.count_both, n, self.chosen, self.copies[NEW], self.copies[OLD], self.pairs, self.contacts)
        self.scan.run(self.pairs, group, self.every, 0, n)
        self.scan.run(self.contacts, self.start, self.every, 0, n)

    def launch_merge(self, into: LaggedContacts) -> None:
        """Write the merge, as counted, into the arrays of `into`; launches only."""
        query = self.chosen, self.copies[NEW], self.copies[OLD], self.start
        self.device.launch(keeping.take_both, self.n, *query, self._frozen(into))

    def _frozen(self, friction: LaggedContacts) -> keeping.Frozen:
        """Kernel argument for the lagged contacts of `friction`, without a copy."""
        out, f = self._present, friction
        out.lagged, out.pairs, out.segment, out.group = f.lagged, f.pairs, f.segment, f.group
        return out
