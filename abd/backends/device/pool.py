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


def arrays_of(struct) -> dict[str, wp.array]:
    """Types of the arrays of a struct or of an instance of it, by name."""
    return {name: kind for name, kind in struct.cls.__annotations__.items() if isinstance(kind, wp.array)}


class Pool:
    """Named arrays that grow; growth discards their contents.

    is_recorded: whether records may contain the arrays, so that growth invalidates records."""

    def __init__(self, device: Device, is_recorded: bool = True):
        self.device, self._is_recorded = device, is_recorded
        self._arrays: dict[str, wp.array] = {}

    def get(self, name: str, count: int, dtype, tail: tuple[int, ...] = ()) -> wp.array:
        """Array `name` with capacity for `count` leading entries."""
        array = self._arrays.get(name)
        if array is None or array.shape[0] < count:
            capacity = capacity_for(count)
            array = self.device.empty((capacity, *tail) if tail else capacity, dtype, self._is_recorded)
            self._arrays[name] = array
        return array

    def reserve(self, struct, count: int, *names: str) -> None:
        """Set arrays of a struct, by default all, to those of their names with capacity for `count` entries."""
        arrays = arrays_of(struct)
        for name in names or arrays:
            setattr(struct, name, self.get(name, count, arrays[name].dtype))

    def capacity(self, name: str) -> int:
        """Leading entries of a named array, 0 before its first use."""
        array = self._arrays.get(name)
        return 0 if array is None else array.shape[0]
