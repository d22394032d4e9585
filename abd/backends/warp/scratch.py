"""Arrays for intermediate results."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.upload import new_pose


class Scratch:
    """Arrays for intermediate results of n bodies; their contents are valid within one operation.

    Attributes:
        a, b, row: (n,) float64; marks: (n,) int32; vectors: (n, 12); straight: a pose.
    """

    def __init__(self, device: Device, n: int):
        self.a, self.b, self.row = (device.zeros(n, wp.float64) for _ in range(3))
        self.marks = device.zeros(n, wp.int32)
        self.vectors = device.zeros((n, 12), wp.float64)
        self.straight = new_pose(device, n)
