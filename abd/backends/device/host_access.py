"""Copies between the host and the arrays of a device.

A write from pageable memory would wait for all previous launches. Therefore values are staged in a page of pinned memory, from
which CUDA copies in stream order while the host continues. The host waits only if the page is full.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import warp as wp

PAGE = 1 << 20
"""Size of the page of staged writes [bytes]."""
ALIGNED = 64
"""Alignment of values in the page and in the read buffer [bytes]."""
INITIAL_BUFFER = 1 << 16
"""Initial size [bytes] of the pinned read buffer."""
MAX_VIEWS = 256
"""Maximum number of cached views of that buffer."""


class HostAccess:
    """Read and write arrays of a Warp device.

    Args:
        wide: whether the host accesses arrays by copies only (`Device.wide`).
    """

    def __init__(self, warp: wp.Device, wide: bool):
        self.warp, self.is_cpu, self.wide = warp, warp.is_cpu, wide
        self._views: dict[int, np.ndarray] = {}
        self._page: wp.array | None = None
        self._page_end = 0
        self._buffer: wp.array | None = None
        self._buffer_views: dict[tuple, wp.array] = {}

    def known(self, array: wp.array) -> np.ndarray | None:
        """Cached NumPy view of an array; None if there is none or the host needs copies."""
        return None if self.wide else self._views.get(id(array))

    def read(self, parts: list[tuple[wp.array, int | None]]) -> list[np.ndarray]:
        """Host copies of the first entries of arrays, all for the count None; one wait for the device."""
        if not self.wide:
            views = ((self._view(array), count) for array, count in parts)
            return [(view if count is None else view[:count]).copy() for view, count in views]
        # Warp takes no slice of an empty array
        return self._copy_pinned([array if count is None or count >= len(array) else array[:count] for array, count in parts])

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy host values into the first entries of an array."""
        if not self.wide:
            self._view(array)[: len(values)] = values
        elif len(values):
            kind = wp.dtype_to_numpy(getattr(array.dtype, "_wp_scalar_type_", array.dtype))
            numbers = np.ascontiguousarray(values, dtype=kind)
            width = wp.types.type_size_in_bytes(array.dtype) // np.dtype(kind).itemsize
            if numbers.size != len(values) * width * (array.size // len(array)):
                raise ValueError(f"cannot write rows of {numbers.shape[1:]} to an array of {array.dtype} {array.shape[1:]}")
            self._stage(array, numbers)

    def fill(self, array: wp.array, value: float) -> None:
        """Set all entries of an array."""
        if self.wide:
            array.fill_(value) if value else array.zero_()
        else:
            self._view(array)[...] = value

    def _stage(self, array: wp.array, values: np.ndarray) -> None:
        """Copy values of the array's type into its first entries; values larger than the page are copied directly."""
        if values.nbytes > PAGE:
            source = wp.array(values, dtype=array.dtype, device="cpu", copy=False)
            wp.copy(array, source, count=source.size)
            return
        if self._page is None:
            self._page = wp.empty(PAGE, dtype=wp.uint8, device="cpu", pinned=not self.is_cpu)
            self._page_bytes = self._page.numpy()
        if self._page_end + values.nbytes > PAGE:
            if not self.is_cpu:
                wp.synchronize_stream(self.warp.stream)
            self._page_end = 0
        begin = self._page_end
        self._page_bytes[begin : begin + values.nbytes] = values.reshape(-1).view(np.uint8)
        self._page_end = begin + -(-values.nbytes // ALIGNED) * ALIGNED
        source = wp.array(
            ptr=self._page.ptr + begin, dtype=array.dtype, shape=values.nbytes // wp.types.type_size_in_bytes(array.dtype),
            device="cpu", copy=False, pinned=not self.is_cpu,
        )  # fmt: skip
        wp.copy(array.flatten(), source, count=len(source))

    def _view(self, array: wp.array) -> np.ndarray:
        """NumPy view of a CPU array without a copy; cached, because a view takes longer than reading a few numbers."""
        view = self._views.get(id(array))
        if view is None:
            like = array.numpy()
            if not like.nbytes or not array.is_contiguous:
                return like
            # the view of Warp holds a reference to the array, which would then live as long as the cache
            memory = (ctypes.c_char * like.nbytes).from_address(array.ptr)
            view = np.ndarray(like.shape, like.dtype, memory)
            self._views[id(array)] = view
            weakref.finalize(array, self._views.pop, id(array), None)
        return view

    def _copy_pinned(self, arrays: list[wp.array]) -> list[np.ndarray]:
        """Host copies of arrays through a growing buffer, which is pinned on CUDA.

        The copies wait for the stream of the device only, because another thread may record in its own stream."""
        sizes = [array.size * wp.types.type_size_in_bytes(array.dtype) for array in arrays]
        *begins, size = np.cumsum([0, *(-(-size // ALIGNED) * ALIGNED for size in sizes)]).tolist()
        if self._buffer is None or self._buffer.size < size:
            capacity = max(INITIAL_BUFFER, 1 << (size - 1).bit_length())
            self._buffer = wp.empty(capacity, dtype=wp.uint8, device="cpu", pinned=not self.is_cpu)
            self._buffer_views.clear()
        elif len(self._buffer_views) > MAX_VIEWS:
            self._buffer_views.clear()
        targets = [self._buffer_view(begin, array.dtype, array.shape) for begin, array in zip(begins, arrays, strict=True)]
        for target, array in zip(targets, arrays, strict=True):
            if array.size:
                wp.copy(target, array)
        if not self.is_cpu:
            wp.synchronize_stream(self.warp.stream)
        return [target.numpy().copy() for target in targets]

    def _buffer_view(self, begin: int, dtype, shape: tuple[int, ...]) -> wp.array:
        """View of the buffer from a byte as an array, cached."""
        key = begin, dtype, shape
        if key not in self._buffer_views:
            self._buffer_views[key] = wp.array(
                ptr=self._buffer.ptr + begin, dtype=dtype, shape=shape, device="cpu", copy=False, pinned=not self.is_cpu
            )
        return self._buffer_views[key]
