"""Continuous collision detection: launches over all listed candidates."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from cuda_kernels.contact import marches
from cuda_kernels.contact.ccd import Limits

BATCH = 64
"""Candidates per CPU thread in the cheap tests."""


class Impacts:
    """Collision-free alphas and proven fractions of candidates.

    Cheap tests run first. Only the open candidates are listed and marched along, so that no thread waits for another."""

    def __init__(self, device: Device):
        self.device, self.pool, self.batch = device, Pool(device), 1 if device.wide else BATCH
        self.marches = marches.Marches()
        self.marches.count = device.zeros(1, wp.int32)
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Make capacity for candidates, before launches over them are recorded."""
        self.pool.reserve(self.marches, capacity, "item")

    def times_of_impact(self, count: int, query: tuple, ends: Limits, out: wp.array) -> None:
        """Compute collision-free alphas of at most `count` candidates; only the smallest of each island is defined.

        `query`: surfaces, path and `cuda_kernels.contact.ccd.Query`."""
        count = self._open(marches.try_impacts, count, query, ends, self.marches, out)
        self.device.launch(marches.march_impacts, count, *query, ends, self.marches, out, grain=64)

    def proven_fractions(self, count: int, query: tuple, back: bool, out: wp.array) -> None:
        """Compute proven collision-free fractions of swept paths (`cuda_kernels.contact.ccd.proven_fraction`)."""
        count = self._open(marches.try_paths, count, query, int(back), self.marches, out)
        for again in range(2):
            self.device.launch(marches.march_paths, count, *query, int(back), again, self.marches, out, grain=64)

    def _open(self, test, count: int, query: tuple, *arguments) -> int:
        """Launch the cheap `test` and list the candidates that it leaves open; return how many marches must cover."""
        device, listed = self.device, self.marches.count
        self.reserve(count)
        device.fill(listed)
        device.launch(test, -(-count // self.batch), *query, *arguments, self.batch, grain=512 // self.batch)
        return count if device.records else int(device.read(listed)[0])
