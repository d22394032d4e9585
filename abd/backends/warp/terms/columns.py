"""The pairs of a list by their column bodies, beside the order by rows that it has."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from cuda_kernels.contact import active_pairs


class Columns:
    """Which pairs of a list every one of n bodies is the column of, in the order of the list.

    It is found by launches with a sort between them, which records do not hold: `launch_keys`, `sort`, `launch_starts`.

    Args:
        fixed: (n,) bool, bodies whose columns are not needed.

    Attributes:
        starts: (n + 1,) where the pairs of every body begin in `order`.
    """

    def __init__(self, device: Device, fixed: np.ndarray):
        self.device, self.n, self._pool = device, len(fixed), Pool(device)
        self.fixed, self.starts = device.upload(fixed, wp.int32), device.zeros(len(fixed) + 1, wp.int32)
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Room for so many pairs."""
        # sorting takes twice as much
        self._keys, self.order = (self._pool.get(name, 2 * capacity, wp.int32) for name in ("keys", "order"))

    def launch_keys(self, extent: int, pairs: wp.array, counts: wp.array) -> None:
        """Prepare to sort pairs, counts[0] of them, for which launches cover `extent`."""
        query = counts, pairs, self.fixed, self.n, self._keys, self.order
        self.device.launch(active_pairs.key_columns, extent, *query, grain=16384)

    def sort(self, count: int) -> None:
        """Sort so many."""
        self.device.sort_pairs(self._keys, self.order, count)

    def launch_starts(self, counts: wp.array) -> None:
        """Where the pairs of every body begin, after they were sorted."""
        query = counts, self._keys, self.starts
        self.device.launch(active_pairs.key_starts, self.n + 1, *query, grain=16384)

    def launch_take(self, other: Columns, extent: int) -> None:
        """Become another one's, of no more than `extent` pairs."""
        self.device.copy(self.starts, other.starts)
        self.device.copy(self.order, other.order, count=extent)

    def empty(self) -> None:
        """No body has a pair."""
        self.device.fill(self.starts)
