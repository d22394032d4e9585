"""Target poses of prescribed bodies on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.upload import allocate_struct
from abd.model import Kind
from cuda_kernels.bodies import paths, poses
from cuda_kernels.bodies.affine import Pose


class TargetPoses:
    """Implementation of `abd.backends.protocol.TargetPoses`; count: number of prescribed bodies."""

    def __init__(self, backend):
        self.backend, self.device, self.at = backend, backend.device, backend.at
        device, step, n = self.device, self.at.step, backend.n
        self.pose = allocate_struct(Pose, n, device)
        step.pk, step.Ak, step.penalty = self.pose.p, self.pose.A, device.zeros(1, wp.float64)
        step.lp, step.lA = device.zeros(n, wp.vec3d), device.zeros(n, wp.mat33d)
        prescribed = np.flatnonzero(backend.model.bodies.kind == Kind.KINEMATIC)
        self.count, self.prescribed = len(prescribed), device.upload(prescribed, wp.int32)
        self.q = device.zeros((self.count, 12), wp.float64)

    def set_targets(self, target_poses: np.ndarray) -> None:
        """Set the target poses (k, 12) of the prescribed bodies at the end of the step."""
        self.device.write(self.q, target_poses)
        self.device.launch(poses.unpack_some, self.count, self.prescribed, self.q, self.pose)

    def read_prescribed(self) -> np.ndarray:
        self.device.launch(poses.pack_some, self.count, self.prescribed, self.at.current, self.q)
        return self.device.read(self.q)

    def set_penalty(self, penalty: float, lp: np.ndarray, lA: np.ndarray) -> None:
        self.launch_penalty(float(penalty))
        self.device.write(self.at.step.lp, lp)
        self.device.write(self.at.step.lA, lA)

    def launch_penalty(self, penalty: float) -> None:
        """Set the penalty stiffness without multipliers; launches only."""
        self.device.fill(self.at.step.penalty, penalty)

    def launch_lead(self, now: Pose) -> None:
        """Set targets and predicted motion of prescribed bodies to lead from `now` to their target poses; launches only."""
        ends = self.pose, now, self.at.target, self.backend.trial_path.lead
        self.device.launch(paths.lead_to_targets, self.count, self.prescribed, *ends)

    def launch_reset(self) -> None:
        """Reset the multipliers; launches only."""
        self.device.fill(self.at.step.lp)
        self.device.fill(self.at.step.lA)

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        b, moving = self.backend, self.backend.trial_path.moving
        self.device.write(moving, chosen.astype(np.int32))
        self.device.launch(poses.snap, b.n, self.pose, moving, self.at.current)
        b.touch.invalidate()
