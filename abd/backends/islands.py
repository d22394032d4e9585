"""Groups of bodies that share one step length and one convergence test, and reductions over them.

Bodies of different worlds never interact, so every world is an island. Sums run over chunks of at most `CHUNK` bodies,
then over the chunks of an island: a fixed order for any number of threads.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device
from cuda_kernels import sums

CHUNK = 256


class Islands:
    """Islands of the bodies (n,), numbered from 0.

    Attributes:
        count: number of islands; island: (n,) device array; host: the same on the host.
    """

    def __init__(self, device: Device, labels: np.ndarray):
        self.device = device
        unique, self.host = np.unique(labels, return_inverse=True)
        self.count = max(len(unique), 1)
        order = np.argsort(self.host, kind="stable")
        sizes = np.bincount(self.host, minlength=self.count) if len(labels) else np.zeros(1, int)
        starts, owners = [0], []
        for island, size in enumerate(sizes):
            for done in range(0, int(size), CHUNK):
                starts.append(starts[-1] + min(CHUNK, int(size) - done))
                owners.append(island)
        self.chunks = len(owners)
        self.island = device.upload(self.host, wp.int32)
        self.order = device.upload(order, wp.int32)
        self.chunk_start = device.upload(starts, wp.int32)
        self.island_start = device.upload(np.searchsorted(owners, np.arange(self.count + 1)), wp.int32)
        self.partial = device.zeros(max(self.chunks, 1), wp.float64)
        self._scalars: dict[str, wp.array] = {}

    def scalars(self, name: str) -> wp.array:
        """A named device array with one number per island."""
        if name not in self._scalars:
            self._scalars[name] = self.device.zeros(self.count, wp.float64)
        return self._scalars[name]

    def reduce(self, values: wp.array, operation: int, out: wp.array) -> wp.array:
        """Sum, minimum or maximum of body values (n,) per island, into `out` (count,)."""
        if self.chunks:
            launch = self.device.launch
            launch(
                sums.chunk_reduce, self.chunks, self.chunk_start, self.order, values, operation, self.partial, grain=64
            )
            launch(sums.island_reduce, self.count, self.island_start, self.partial, operation, out)
        return out

    def reduced(self, values: wp.array, operation: int) -> np.ndarray:
        """The same, read back to the host (count,)."""
        return self.device.read(self.reduce(values, operation, self.scalars("read")))
