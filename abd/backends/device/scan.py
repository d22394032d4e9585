"""Exclusive sums of integer counts on a device: where launches are recorded, the host neither reads nor sizes them."""

from __future__ import annotations

import math

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from cuda_kernels.parallel import scans

WARP = 32
"""Threads that share a chunk on CUDA."""
SHORTEST = 32
"""Counts per chunk at least."""


class Scan:
    """Scans on one device; they share the capacity for the sums of chunks."""

    def __init__(self, device: Device):
        self.device, self.pool, self.lanes = device, Pool(device), device.lanes(WARP)

    def reserve(self, capacity: int) -> None:
        """Make capacity for scans of up to `capacity` counts, before they are recorded."""
        self._sums(capacity)

    def _sums(self, capacity: int) -> wp.array:
        return self.pool.get("sums", -(-capacity // chunk_length(capacity)) if capacity else 1, wp.int32)

    def run(self, counts: wp.array, offsets: wp.array, sizes: wp.array, which: int, capacity: int) -> None:
        """offsets[k] = sum of counts[:k] for k = 0 .. sizes[which].

        Args:
            counts: (capacity,) int32; offsets: (capacity + 1,) int32, entries behind the last one mean nothing.
            sizes: device int32 array, of which entry `which` says how many counts there are, at most `capacity`.
            capacity: what the launches cover: the capacity for the counts.
        """
        if capacity == 0:
            self.device.fill(offsets)
            return
        length = chunk_length(capacity)
        chunks = -(-capacity // length)
        sums, launch = self._sums(capacity), self.device.launch
        lanes = self.lanes
        launch(scans.sum_chunks, chunks * lanes, lanes, counts, sizes, which, length, sums, grain=256)
        launch(scans.scan_chunks, lanes, lanes, sizes, which, length, sums, offsets)
        launch(scans.offset_chunks, chunks * lanes, lanes, counts, sizes, which, length, sums, offsets, grain=256)


def chunk_length(capacity: int) -> int:
    """Counts per chunk, a power of two: two walks along a chunk and one over all chunks take about as long."""
    return max(SHORTEST, 1 << round(math.log2(math.sqrt(0.5 * capacity))))
