"""Copies between the host and the arrays of a device."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import warp as wp

from abd.backends.device.staging import Staging

LANDING = 4096
"""Bytes up to which an array is read through pinned memory that is kept for arrays of its shape."""


class HostAccess:
    """Reads and writes arrays of a Warp device.

    Args:
        wide: whether the host looks into arrays only by copies (`Device.wide`).
    """

    def __init__(self, warp: wp.Device, wide: bool):
        self.warp, self.is_cpu, self.wide = warp, warp.is_cpu, wide
        self._views: dict[int, np.ndarray] = {}
        self._staging = Staging(warp)
        self._landings: dict[tuple, wp.array] = {}

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
        if self.is_cpu:
            return view.numpy().copy()
        return self._land(view) if 0 < view.size * view.strides[-1] <= LANDING else view.numpy()

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

    def _land(self, view: wp.array) -> np.ndarray:
        """Host copy of a small array through pinned memory, which waits for the device's stream alone."""
        key = view.dtype, view.shape
        landing = self._landings.get(key)
        if landing is None:
            landing = wp.empty(view.shape, dtype=view.dtype, device="cpu", pinned=True)
            self._landings[key] = landing
        wp.copy(landing, view)
        wp.synchronize_stream(self.warp.stream)
        return landing.numpy().copy()
