"""Continuous collision detection: launches over all listed candidates."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from cuda_kernels.contact import impacts, marches

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

    def times_of_impact(self, count: int, query: tuple, known: tuple, where: tuple, out: wp.array) -> None:
        """Compute collision-free alphas of candidates; only the smallest of each island is defined.

        Args:
            count: number of candidates that a launch covers.
            query: surfaces, path, pairs, candidates, their numbers on the device, minimum separation.
            known: approaches of the pairs and gaps of the candidates.
            where: islands and their limits, indices of kept pairs, whether these are proven, first impacts so far
                (`cuda_kernels.contact.impacts.times_of_impact`).
        """
        arguments = *query, *known, *where
        if not self.compacts:
            self._by_batch(impacts.times_of_impact, count, *arguments, BATCH, out)
            return
        self._compact(marches.try_impacts, count, query, *arguments, self.marches, out)
        self.device.launch(marches.march_impacts, count, *arguments, self.marches, out)

    def proven_fractions(self, count: int, query: tuple, known: tuple, back: bool, out: wp.array) -> None:
        """Compute proven collision-free fractions of swept paths; arguments as in `times_of_impact`, gaps as in
        `cuda_kernels.contact.impacts.proven_fractions`."""
        arguments = *query, *known, int(back)
        if not self.compacts:
            self._by_batch(impacts.proven_fractions, count, *arguments, BATCH, out)
            return
        self._compact(marches.try_paths, count, query, *arguments, self.marches, out)
        for again in range(2):
            self.device.launch(marches.march_paths, count, *arguments, again, self.marches, out)

    def _by_batch(self, kernel, count: int, *arguments) -> None:
        self.device.launch(kernel, -(-count // BATCH), *arguments, grain=512 // BATCH)

    def _compact(self, test, count: int, query: tuple, *arguments) -> None:
        """Launch the cheap `test` and list the candidates that it leaves open."""
        launch, m, lengths = self.device.launch, self.marches, query[4]
        self.reserve(count)
        launch(test, count, *arguments)
        self.scan.run(m.open, m.slot, lengths, ITEMS, count)
        launch(marches.list_marches, count, lengths, m)
