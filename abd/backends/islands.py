"""Islands on a device: what their bodies' kernels read, and reductions over them.

Sums run over chunks of at most `CHUNK` bodies, then over the chunks of an island: a fixed order for any number of
threads. The arrays are as long as they can ever become, so that launches stay recorded when the islands change.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device
from abd.backends.numbering import Division, Numbering
from cuda_kernels import sums

CHUNK = 256
GRAIN = 16384
"""Values whose reduction is worth a thread."""


class Islands(Numbering):
    """Islands of n bodies.

    Attributes:
        island: (n,) int32 device array, as `host`.
        done: (n,) int32 device array, 1 for bodies whose island takes no part in the present iterations: kernels may
            skip them and leave their results as they are.
        settled: (count,) bool, the islands whose bodies are done.
    """

    def __init__(self, device: Device, bodies: int):
        self.device = device
        room = max(bodies, 1)
        self.island, self.done, self.order = (device.zeros(room, wp.int32) for _ in range(3))
        self.chunk_start, self.island_start = device.zeros(2 * room + 1, wp.int32), device.zeros(room + 1, wp.int32)
        self.partial = device.zeros(2 * room, wp.float64)
        self.chunks = 0
        self._scalars: dict[str, wp.array] = {}
        super().__init__(bodies)

    def _assign(self, division: Division) -> None:
        super()._assign(division)
        host = division.host
        sizes = np.bincount(host, minlength=self.count)
        per_island = -(-sizes // CHUNK)
        first = np.concatenate([[0], np.cumsum(per_island)])
        self.chunks = int(first[-1])
        owner = np.repeat(np.arange(self.count), per_island)
        starts = (np.cumsum(sizes) - sizes)[owner] + CHUNK * (np.arange(self.chunks) - first[owner])
        write = self.device.write
        write(self.island, host)
        write(self.order, np.argsort(host, kind="stable").astype(np.int32))
        write(self.chunk_start, np.append(starts, self.n).astype(np.int32))
        write(self.island_start, first.astype(np.int32))
        self.settled = np.zeros(self.count, dtype=bool)
        self.done.zero_()
        self.device.share = 1.0

    def settle(self, islands: np.ndarray) -> bool:
        """Mark the bodies of these islands (count,) bool as done, and no others; returns whether others were done before."""
        if np.array_equal(islands, self.settled):
            return False
        self.settled = islands.copy()
        done = islands[self.host]
        self.device.write(self.done, done.astype(np.int32))
        self.device.share = 1.0 - float(done.mean())
        return True

    def scalars(self, name: str) -> wp.array:
        """A named device array with one number per island, and room for as many islands as bodies."""
        if name not in self._scalars:
            self._scalars[name] = self.device.zeros(max(self.n, 1), wp.float64)
        return self._scalars[name]

    def read(self, name: str) -> np.ndarray:
        """(count,) host copy of a named array."""
        return self.device.read(self.scalars(name), self.count)

    def reduce(self, values: wp.array, operation: int, out: wp.array) -> wp.array:
        """Sum, minimum or maximum of body values (n,) per island, into `out` (count,)."""
        if self.chunks:
            launch, whole = self.device.launch, self.chunks == self.count
            target = out if whole else self.partial
            chunks = (self.chunk_start, self.order, values, operation, target)
            launch(sums.chunk_reduce, self.chunks, *chunks, grain=1 + GRAIN * self.chunks // self.n)
            if not whole:
                launch(sums.island_reduce, self.count, self.island_start, self.partial, operation, out, grain=GRAIN)
        return out

    def reduced(self, values: wp.array, operation: int) -> np.ndarray:
        """The same, read back to the host (count,)."""
        self.reduce(values, operation, self.scalars("read"))
        return self.read("read")
