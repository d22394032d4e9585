"""Asynchronous copies of device arrays to the host."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from abd.backends.answers import OnHost
from abd.backends.device.device import Device

SLOTS = 2
"""Maximum number of copies in progress: one is transferred while the other is read."""


@dataclass
class _Slot:
    """Memory of one copy: snapshots on the device, host arrays, and the copy in progress."""

    snapshots: list[wp.array] = field(default_factory=list)
    hosts: list[wp.array] = field(default_factory=list)
    user: PendingCopy | None = None


class PendingCopy:
    """Copy in progress; `wait` may be called repeatedly."""

    def __init__(self, slot: _Slot, event: wp.Event):
        self._slot, self._event = slot, event
        self._found: list[np.ndarray] | None = None

    def wait(self) -> list[np.ndarray]:
        """Wait for the copy and return new host arrays."""
        if self._found is None:
            wp.synchronize_event(self._event)
            self._found = [host.numpy().copy() for host in self._slot.hosts]
            self._slot.user = None
        return self._found


class ReadBack:
    """Copies from one device to the host: on CUDA concurrent with later launches, on the CPU immediate.

    On CUDA the arrays are first copied on the device, so that they may change, and then to pinned memory in a separate stream.
    If more than `SLOTS` copies are in progress, `begin` waits for the oldest.
    """

    def __init__(self, device: Device):
        self.device = device
        self._stream = None if device.is_cpu else wp.Stream(device.warp)
        self._slots = [_Slot() for _ in range(SLOTS)]
        self._next = 0

    def begin(self, *arrays: wp.array) -> PendingCopy | OnHost:
        """Begin to copy the arrays, as they are after all previous launches."""
        if self._stream is None:
            return OnHost(*(array.numpy().copy() for array in arrays))
        slot = self._slots[self._next]
        self._next = (self._next + 1) % SLOTS
        if slot.user is not None:
            slot.user.wait()
        with self.device.turn:
            self._fit(slot, arrays)
            for snapshot, array in zip(slot.snapshots, arrays):
                wp.copy(snapshot, array)
            self._stream.wait_event(self.device.warp.stream.record_event())
            for host, snapshot in zip(slot.hosts, slot.snapshots):
                wp.copy(host, snapshot, stream=self._stream)
            slot.user = PendingCopy(slot, self._stream.record_event())
        return slot.user

    def _fit(self, slot: _Slot, arrays: tuple[wp.array, ...]) -> None:
        """Allocate memory of a slot for arrays of these shapes."""
        wanted = [(array.shape, array.dtype) for array in arrays]
        if [(host.shape, host.dtype) for host in slot.hosts] == wanted:
            return
        slot.hosts = [wp.empty(shape, dtype=dtype, device="cpu", pinned=True) for shape, dtype in wanted]
        slot.snapshots = [wp.empty(shape, dtype=dtype, device=self.device.warp) for shape, dtype in wanted]
