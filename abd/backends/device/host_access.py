"""Copies between the host and the arrays of a device."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import warp as wp

from abd.backends.device.staging import Staging

SMALLEST_LANDING = 1 << 16
"""Bytes of the memory that arrays are read through, at first."""
SHAPES = 256
"""Kinds of arrays whose views of that memory are kept."""


class HostAccess:
    """Reads and writes arrays of a Warp device.

    Args:
        wide: whether the host looks into arrays only by copies (`Device.wide`).
    """

    def __init__(self, warp: wp.Device, wide: bool):
        self.warp, self.is_cpu, self.wide = warp, warp.is_cpu, wide
        self._views: dict[int, np.ndarray] = {}
        self._staging = Staging(warp)
        self._landing: wp.array | None = None
        self._views_there: dict[tuple, wp.array] = {}

    def known(self, array: wp.array) -> np.ndarray | None:
        """An array as numpy sees it, where the host has looked into it before."""
        return None if self.wide else self._views.get(id(array))

    def read(self, array: wp.array, count: int | None) -> np.ndarray:
        """Host copy of the first `count` entries."""
        if not self.wide:
            view = self._seen(array)
            return (view if count is None else view[:count]).copy()
        # Warp takes no slice of an empty array
        view = array if count is None or count >= len(array) else array[:count]
        return self._land(view) if view.size else view.numpy()

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy host values into the first entries of an array."""
        if not self.wide:
            self._seen(array)[: len(values)] = values
        elif len(values):
            kind = wp.dtype_to_numpy(getattr(array.dtype, "_wp_scalar_type_", array.dtype))
            numbers = np.ascontiguousarray(values, dtype=kind)
            width = wp.types.type_size_in_bytes(array.dtype) // np.dtype(kind).itemsize
            if numbers.size != len(values) * width * (array.size // len(array)):
                raise ValueError(f"rows of {numbers.shape[1:]} are no rows of {array.dtype} {array.shape[1:]}")
            self._staging.write(array, numbers)

    def _seen(self, array: wp.array) -> np.ndarray:
        """An array of the processor as numpy sees it, without a copy; made once, for that takes longer than to read a few
        numbers."""
        view = self._views.get(id(array))
        if view is None:
            like = array.numpy()
            if not like.nbytes or not array.is_contiguous:
                return like
            # what Warp gives numpy holds the array, which would live as long as its view
            memory = (ctypes.c_char * like.nbytes).from_address(array.ptr)
            view = np.ndarray(like.shape, like.dtype, memory)
            self._views[id(array)] = view
            weakref.finalize(array, self._views.pop, id(array), None)
        return view

    def _land(self, array: wp.array) -> np.ndarray:
        """Host copy of an array through memory that is pinned on CUDA: it waits for the device's stream alone, and another
        thread may be recording in a stream of its own. The memory grows with what is read."""
        size = array.size * wp.types.type_size_in_bytes(array.dtype)
        if self._landing is None or self._landing.size < size:
            capacity = max(SMALLEST_LANDING, 1 << (size - 1).bit_length())
            self._landing = wp.empty(capacity, dtype=wp.uint8, device="cpu", pinned=not self.is_cpu)
            self._views_there.clear()
        elif len(self._views_there) > SHAPES:
            self._views_there.clear()
        key = array.dtype, array.shape
        there = self._views_there.get(key)
        if there is None:
            there = wp.array(
                ptr=self._landing.ptr, dtype=array.dtype, shape=array.shape, device="cpu", copy=False, pinned=not self.is_cpu
            )
            self._views_there[key] = there
        wp.copy(there, array)
        if not self.is_cpu:
            wp.synchronize_stream(self.warp.stream)
        return there.numpy().copy()
