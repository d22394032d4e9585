"""Asynchronous writes from the host to a device through pinned memory.

A copy from pageable memory waits for all previous launches. Therefore values are staged in a page of pinned memory, from which
the device copies in stream order while the host continues. The host waits only if the page is full.
"""

from __future__ import annotations

import numpy as np
import warp as wp

PAGE = 1 << 20
"""Size of the page [bytes]."""
ALIGNED = 64
"""Alignment of writes [bytes]."""


class Staging:
    """Staging page of a device."""

    def __init__(self, device: wp.Device):
        self.device = device
        self._page: wp.array | None = None
        self._bytes = np.zeros(0, dtype=np.uint8)
        self._end = 0

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy values of the array's type into its first entries; values larger than the page are copied directly."""
        if values.nbytes > PAGE:
            source = wp.array(values, dtype=array.dtype, device="cpu", copy=False)
            wp.copy(array, source, count=source.size)
            return
        if self._page is None:
            self._page = wp.empty(PAGE, dtype=wp.uint8, device="cpu", pinned=self.device.is_cuda)
            self._bytes = self._page.numpy()
        if self._end + values.nbytes > PAGE:
            if self.device.is_cuda:
                wp.synchronize_stream(self.device.stream)
            self._end = 0
        begin = self._end
        self._bytes[begin : begin + values.nbytes] = values.reshape(-1).view(np.uint8)
        self._end = begin + -(-values.nbytes // ALIGNED) * ALIGNED
        size = wp.types.type_size_in_bytes(array.dtype)
        source = wp.array(
            ptr=self._page.ptr + begin, dtype=array.dtype, shape=values.nbytes // size, device="cpu", copy=False,
            pinned=self.device.is_cuda,
        )  # fmt: skip
        wp.copy(array.flatten(), source, count=len(source))
