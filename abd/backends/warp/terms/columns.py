"""Index of a pair list by column body; the list itself is ordered by row body."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from cuda_kernels.contact import active_pairs


class Columns:
    """Pairs of a list by column body, for n bodies, in the order of the list.

    `launch_keys`, `sort` and `launch_starts` build the index. Recorded launches cannot contain the sort.

    Args:
        fixed: (n,) bool, bodies whose columns are not used.

    Attributes:
        starts: (n + 1,) first pair of every body in `order`.
    """

    def __init__(self, device: Device, fixed: np.ndarray):
        self.device, self.n, self._pool = device, len(fixed), Pool(device)
        self.fixed, self.starts = device.upload(fixed, wp.int32), device.zeros(len(fixed) + 1, wp.int32)
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Make capacity for pairs."""
        # sorting needs twice the capacity
        self._keys, self.order = (self._pool.get(name, 2 * capacity, wp.int32) for name in ("keys", "order"))

    def launch_keys(self, extent: int, pairs: wp.array, counts: wp.array) -> None:
        """Compute the sort keys of counts[0] pairs; the launch covers `extent` pairs."""
        query = counts, pairs, self.fixed, self.n, self._keys, self.order
        self.device.launch(active_pairs.key_columns, extent, *query, grain=16384)

    def sort(self, count: int) -> None:
        """Sort the first `count` keys."""
        self.device.sort_pairs(self._keys, self.order, count)

    def launch_starts(self, counts: wp.array) -> None:
        """Compute `starts` after the sort."""
        query = counts, self._keys, self.starts
        self.device.launch(active_pairs.key_starts, self.n + 1, *query, grain=16384)

    def launch_copy(self, other: Columns, extent: int) -> None:
        """Copy another index of at most `extent` pairs."""
        self.device.copy(self.starts, other.starts)
        self.device.copy(self.order, other.order, count=extent)

    def empty(self) -> None:
        """Set the index of an empty list."""
        self.device.fill(self.starts)
