"""How far listed candidates are proven safe on a path: launches over all of them."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from cuda_kernels.contact import impacts, marches

BATCH = 64
"""Candidates per thread on a processor, where entering a kernel costs more than to see that a candidate is far."""
ITEMS = 1
"""Where the lengths of a list say how many candidates it has."""


class Impacts:
    """Safe alphas and free shares of candidates.

    Where thousands of threads run side by side those that take a march are closed up first, so that no thread waits for
    another one's; elsewhere a thread takes a batch, and marches where it has to. The bits are the same, but for those of
    alphas that are not the smallest of their island.

    Args:
        closed_up: the former; where the device is wide by default.
    """

    def __init__(self, device: Device, closed_up: bool | None = None):
        self.device, self.pool = device, Pool(device)
        self.closed_up = device.wide if closed_up is None else closed_up
        self.scan = Scan(device)
        self.marches = marches.Marches()
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Make capacity for so many candidates, before launches over them are recorded."""
        if not self.closed_up:
            return
        self.scan.reserve(capacity)
        for name in ("open", "slot", "item"):
            setattr(self.marches, name, self.pool.get(name, capacity + 1, wp.int32))

    def stop(self, count: int, query: tuple, known: tuple, where: tuple, out: wp.array) -> None:
        """Safe alphas of candidates, of which only the smallest of an island means anything.

        Args:
            count: how many a launch covers.
            query: surfaces, path, pairs, candidates and their numbers on the device, minimum separation.
            known: approaches of the pairs and gaps of the candidates.
            where: islands and their limits, numbers of kept pairs, whether these are safe, first impacts so far
                (`cuda_kernels.contact.impacts.times_of_impact`).
        """
        arguments = *query, *known, *where
        if not self.closed_up:
            self._by_batch(impacts.times_of_impact, count, *arguments, BATCH, out)
            return
        self._close_up(marches.try_impacts, count, query, *arguments, self.marches, out)
        self.device.launch(marches.march_impacts, count, *arguments, self.marches, out)

    def free(self, count: int, query: tuple, known: tuple, back: bool, out: wp.array) -> None:
        """Shares of swept paths that are free of collisions; arguments as in `stop`, gaps as
        `cuda_kernels.contact.impacts.proven_fractions` has them."""
        arguments = *query, *known, int(back)
        if not self.closed_up:
            self._by_batch(impacts.proven_fractions, count, *arguments, BATCH, out)
            return
        self._close_up(marches.try_ways, count, query, *arguments, self.marches, out)
        for again in range(2):
            self.device.launch(marches.march_ways, count, *arguments, again, self.marches, out)

    def _by_batch(self, kernel, count: int, *arguments) -> None:
        self.device.launch(kernel, -(-count // BATCH), *arguments, grain=512 // BATCH)

    def _close_up(self, proof, count: int, query: tuple, *arguments) -> None:
        """Cheap proofs, and a list of those that they leave open."""
        launch, m, lengths = self.device.launch, self.marches, query[4]
        self.reserve(count)
        launch(proof, count, *arguments)
        self.scan.run(m.open, m.slot, lengths, ITEMS, count)
        launch(marches.list_marches, count, lengths, m)
