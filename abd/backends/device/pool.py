"""Named arrays that grow with the requested size."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device

GROWTH = 2.0
"""Ratio of two consecutive capacities, so that slow growth rarely allocates."""
SMALLEST_CAPACITY = 128


def capacity_for(count: int) -> int:
    """Smallest capacity of 128, 256, 512, ... for `count` entries."""
    capacity = SMALLEST_CAPACITY
    while capacity < count:
        capacity = int(GROWTH * capacity)
    return capacity


class Pool:
    """Named arrays that grow; growth discards their contents."""

    def __init__(self, device: Device):
        self.device = device
        self._arrays: dict[str, wp.array] = {}

    def get(self, name: str, count: int, dtype, tail: tuple[int, ...] = ()) -> wp.array:
        """Array `name` with capacity for `count` leading entries."""
        array = self._arrays.get(name)
        if array is None or array.shape[0] < count:
            capacity = capacity_for(count)
            array = self.device.empty((capacity, *tail) if tail else capacity, dtype)
            self._arrays[name] = array
        return array

    def capacity(self, name: str) -> int:
        """Leading entries of a named array, 0 before its first use."""
        array = self._arrays.get(name)
        return 0 if array is None else array.shape[0]
