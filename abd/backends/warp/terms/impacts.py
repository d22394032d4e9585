"""Continuous collision detection: launches over all listed candidates."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from cuda_kernels.contact import impacts, marches
from cuda_kernels.contact.ccd import Limits

BATCH = 64
"""Candidates per CPU thread: a kernel call costs more than the test that a candidate is distant."""
ITEMS = 1
"""Index of the number of candidates in the counts of a list."""


class Impacts:
    """Collision-free alphas and proven fractions of candidates.

    With compaction, cheap tests run first, and only the open candidates are listed and marched along, so that no GPU thread
    waits for another. Without it, each CPU thread processes a batch. The results are bitwise equal, except for alphas
    that are not the smallest of their island.

    Args:
        compacts: whether to use compaction; on CUDA by default.
    """

    def __init__(self, device: Device, compacts: bool | None = None):
        self.device, self.pool = device, Pool(device)
        self.compacts = device.wide if compacts is None else compacts
        self.scan = Scan(device)
        self.marches = marches.Marches()
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Make capacity for candidates, before launches over them are recorded."""
        if not self.compacts:
            return
        self.scan.reserve(capacity)
        self.pool.reserve(self.marches, capacity + 1)

    def times_of_impact(self, count: int, query: tuple, ends: Limits, out: wp.array) -> None:
        """Compute collision-free alphas of at most `count` candidates; only the smallest of each island is defined.

        `query`: surfaces, path and `cuda_kernels.contact.ccd.Query`."""
        if not self.compacts:
            self._by_batch(impacts.times_of_impact, count, *query, ends, BATCH, out)
            return
        self._compact(marches.try_impacts, count, query, ends, self.marches, out)
        self.device.launch(marches.march_impacts, count, *query, ends, self.marches, out)

    def proven_fractions(self, count: int, query: tuple, back: bool, out: wp.array) -> None:
        """Compute proven collision-free fractions of swept paths (`cuda_kernels.contact.ccd.proven_fraction`)."""
        if not self.compacts:
            self._by_batch(impacts.proven_fractions, count, *query, int(back), BATCH, out)
            return
        self._compact(marches.try_paths, count, query, int(back), self.marches, out)
        for again in range(2):
            self.device.launch(marches.march_paths, count, *query, int(back), again, self.marches, out)

    def _by_batch(self, kernel, count: int, *arguments) -> None:
        self.device.launch(kernel, -(-count // BATCH), *arguments, grain=512 // BATCH)

    def _compact(self, test, count: int, query: tuple, *arguments) -> None:
        """Launch the cheap `test` and list the candidates that it leaves open."""
        launch, m, listed = self.device.launch, self.marches, query[2].listed
        self.reserve(count)
        launch(test, count, *query, *arguments)
        self.scan.run(m.open, m.slot, listed, ITEMS, count)
        launch(marches.list_marches, count, listed, m)
