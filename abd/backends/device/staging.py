"""What the host writes to a device, by way of memory that the device reads by itself.

A copy from memory of the host's own waits until all that was launched before is done. From *pinned* memory the device takes it
when its turn comes, and the host goes on: values are put on a page there, one after the other, and only where the page is full
does the host wait until it has been read.
"""

from __future__ import annotations

import numpy as np
import warp as wp

PAGE = 1 << 20
"""Bytes."""
ALIGNED = 64
"""Every write begins at a multiple of so many bytes."""


class Staging:
    """A page of a device.

    Attributes:
        waits: how often the page was full.
    """

    def __init__(self, device: wp.Device):
        self.device, self.waits = device, 0
        self._page: wp.array | None = None
        self._bytes = np.zeros(0, dtype=np.uint8)
        self._end = 0

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy values, of the array's own type, into its first entries; what is larger than the page goes straight there."""
        if values.nbytes > PAGE:
            source = wp.array(values, dtype=array.dtype, device="cpu", copy=False)
            wp.copy(array, source, count=source.size)
            return
        if self._page is None:
            self._page = wp.empty(PAGE, dtype=wp.uint8, device="cpu", pinned=self.device.is_cuda)
            self._bytes = self._page.numpy()
        if self._end + values.nbytes > PAGE:
            self.waits += 1
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
