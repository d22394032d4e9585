"""External loads, target poses of prescribed bodies, and inactive bodies of a step, on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

import cuda_kernels
from abd.backends.device.upload import allocate_struct
from abd.backends.islands import InactiveBodies
from abd.model import Kind
from cuda_kernels.bodies import paths, poses
from cuda_kernels.bodies.affine import Pose


class Loads:
    """Implementation of `abd.backends.protocol.Loads`."""

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        self.set_gravity(backend.model.settings.gravity)
        self._load_kernels()

    def _load_kernels(self) -> None:
        """Load the kernels that the scene needs."""
        b = self.backend
        needs = {"contact": b.contacts.candidates.may_touch, "friction": b.friction.enabled, "joints": b.joints.count > 0}
        self.device.load(cuda_kernels, *(word for word, needed in needs.items() if needed))

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        body = self.backend.at.body
        self.device.write(body.force, force)
        self.device.write(body.torque, torque)

    def set_gravity(self, gravity: np.ndarray) -> None:
        """Set the gravity (3,) [m/s^2] and invalidate recorded launches, which hold the previous one."""
        self.backend.at.step.gravity = wp.vec3d(*gravity)
        self.device.generation += 1

    def set_friction(self, mu: np.ndarray) -> None:
        friction, before = self.backend.friction, self.backend.friction.enabled
        friction.set_coefficients(mu)
        if friction.enabled and not before:
            self._load_kernels()
        self.device.generation += 1


class TargetPoses:
    """Implementation of `abd.backends.protocol.TargetPoses`.

    Attributes:
        count: number of prescribed bodies; q: (count, 12) their target poses at the start of a step, scratch afterwards.
    """

    def __init__(self, backend):
        self.backend, self.device, self.at = backend, backend.device, backend.at
        device, step, n = self.device, self.at.step, backend.n
        self.pose = allocate_struct(Pose, n, device)
        step.pk, step.Ak, step.penalty = self.pose.p, self.pose.A, device.zeros(1, wp.float64)
        step.lp, step.lA = device.zeros(n, wp.vec3d), device.zeros(n, wp.mat33d)
        prescribed = np.flatnonzero(backend.model.bodies.kind == Kind.KINEMATIC)
        self.count, self.prescribed = len(prescribed), device.upload(prescribed, wp.int32)
        self.q = device.zeros((self.count, 12), wp.float64)

    def read_prescribed(self) -> np.ndarray:
        self.device.launch(poses.pack_some, self.count, self.prescribed, self.at.current, self.q)
        return self.device.read(self.q)

    def set_penalty(self, penalty: float, lp: np.ndarray, lA: np.ndarray) -> None:
        self.device.fill(self.at.step.penalty, float(penalty))
        self.device.write(self.at.step.lp, lp)
        self.device.write(self.at.step.lA, lA)

    def launch_lead(self, now: Pose) -> None:
        """Set the target poses of prescribed bodies to `q`, with motions from `now` that lead there, and reset the multipliers;
        launches only."""
        ends = self.q, now, self.pose, self.at.target, self.backend.trial_path.lead
        self.device.launch(paths.lead_to_targets, self.count, self.prescribed, *ends)
        self.device.fill(self.at.step.lp)
        self.device.fill(self.at.step.lA)

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        b, moving = self.backend, self.backend.trial_path.moving
        self.device.write(moving, chosen.astype(np.int32))
        self.device.launch(poses.snap, b.n, self.pose, moving, self.at.current)
        b.touch.invalidate()


class Inactive(InactiveBodies):
    """Inactive bodies, whose degrees of freedom the kernels project out."""

    def __init__(self, backend):
        super().__init__(backend)
        bodies = backend.model.bodies
        fixed = (bodies.free_rotation != 3) | ~bodies.free_translation.all(axis=1)
        self._has_fixed = backend.potential.has_constraints = bool((fixed | (bodies.kind != Kind.DYNAMIC)).any())
        backend.at.step.held = backend.contacts.candidates.held = self.held

    def exclude(self, excluded: np.ndarray) -> None:
        if np.array_equal(excluded, self.excluded):
            return
        super().exclude(excluded)
        self.backend.potential.has_constraints = self._has_fixed or bool(excluded.any())
        self.device.write(self.backend.contacts.candidates.filters.excluded, excluded)
        self.hold(self.immobile)
