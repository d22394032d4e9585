"""Exclusive sums of integer counts on a device, without host reads."""

from __future__ import annotations

import math

import warp as wp

from abd.backends.device.device import ONE_THREAD, Device
from abd.backends.device.pool import Pool
from cuda_kernels.parallel import scans

WARP = 32
"""Threads per chunk on CUDA."""
SHORTEST = 32
"""Minimum number of counts per chunk."""


class Scan:
    """Scans on one device, with a shared array for the sums of chunks; total: (1,) int64 on the device, of the last scan."""

    def __init__(self, device: Device):
        self.device, self.pool, self.lanes = device, Pool(device), device.lanes(WARP)
        self.total, self._stored = device.zeros(1, wp.int64), device.zeros(1, wp.int32)

    def reserve(self, capacity: int) -> None:
        """Make capacity for scans of up to `capacity` counts, before they are recorded."""
        self._sums(capacity)

    def _sums(self, capacity: int) -> wp.array:
        return self.pool.get("sums", -(-capacity // chunk_length(capacity)) if capacity else 1, wp.int64)

    def run(self, counts: wp.array, offsets: wp.array, sizes: wp.array, which: int, capacity: int) -> None:
        """Compute offsets[k] = sum of counts[:k] for k = 0 .. sizes[which].

        Args:
            counts: (capacity,) int32; offsets: (capacity + 1,) int32, later entries are undefined.
            sizes: int32 array on the device; entry `which` is the number of counts.
            capacity: upper bound of the number of counts, which launches cover.
        """
        if capacity == 0:
            self.device.fill(offsets)
            self.device.fill(self.total)
            return
        length = chunk_length(capacity)
        chunks = -(-capacity // length)
        sums, launch = self._sums(capacity), self.device.launch
        lanes = self.lanes
        query = counts, sizes, which, length, sums, self._stored, offsets, self.total
        launch(scans.scan_chunks, chunks * lanes, chunks, lanes, *query, grain=ONE_THREAD)
        launch(scans.offset_chunks, chunks * lanes, lanes, counts, sizes, which, length, sums, offsets, grain=256)


def chunk_length(capacity: int) -> int:
    """Counts per chunk, a power of two that balances two passes along a chunk and one over all chunks."""
    return max(SHORTEST, 1 << round(math.log2(math.sqrt(0.5 * capacity))))
