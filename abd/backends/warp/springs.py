"""Forces of springs that the trapezoidal rule integrates, on a device (`abd.joints.rows.springs`)."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.warp.terms.joint_ends import lists_of
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.row_memory import RowMemory
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.joints import measures, springs


class Springs:
    """Springs of the joint rows `which` (R,) bool.

    Attributes:
        pulled, pulls: (n, 12) forces (`abd.joints.rows.springs.pulls`) at the start and at the end of the step; zero if there
            are no springs.
    """

    def __init__(self, joints: Joints, memory: RowMemory, which: np.ndarray, n: int, device: Device):
        self.joints, self.memory, self.device = joints, memory, device
        self.pulled, self.pulls = (device.zeros((n, 12), wp.float64) for _ in range(2))
        rows = np.flatnonzero(which)
        parent, child = (ends[rows].astype(np.int64) for ends in joints.system.row_bodies)
        inner = parent >= 0
        owners, codes = np.concatenate([child, parent[inner]]), np.concatenate([2 * rows, 2 * rows[inner] + 1])
        bodies, owners = np.unique(owners, return_inverse=True)
        self.count = len(bodies)
        lists = (bodies, *lists_of(owners, codes, self.count))
        self.bodies, self.starts, self.entries = (device.upload(one.astype(np.int32), wp.int32) for one in lists)
        self.no_bodies = device.zeros(max(n, 1), wp.int32)

    def launch(self, pose: Pose, mode: wp.array, out: wp.array) -> None:
        """Compute the forces at a pose on bodies with modes (n,), into `pulled` or `pulls`; launches only."""
        if not self.count:
            return
        joints, launch = self.joints, self.device.launch
        ends = joints.values, joints.gradients_child, joints.gradients_parent
        joints.custom.supply(pose, True)
        launch(measures.measure_values, joints.measure_count, joints.measures, pose, joints.values)
        launch(
            measures.measure_gradients, joints.measure_count, joints.measures, pose, self.no_bodies, *ends[1:], grain=256
        )
        ends_of_bodies = self.bodies, self.starts, self.entries
        launch(springs.pull, self.count, *ends_of_bodies, self.memory.row_laws, joints.rows, mode, *ends, pose, out)
