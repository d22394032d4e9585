"""External loads on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

import cuda_kernels
from abd.backends.warp.potential import Potential
from abd.model import Model


class Loads:
    """Implementation of `abd.backends.protocol.Loads`."""

    def __init__(self, model: Model, potential: Potential):
        self.potential, self.device, self.at = potential, potential.device, potential.at
        self.at.step.gravity = wp.vec3d(*model.settings.gravity)
        self._load_kernels()

    def _load_kernels(self) -> None:
        """Load the kernels that the scene needs."""
        contacts, friction, joints = self.potential.contacts, self.potential.friction, self.potential.joints
        needs = {"contact": contacts.candidates.may_touch, "friction": friction.enabled, "joints": joints.count > 0}
        self.device.load(cuda_kernels, *(word for word, needed in needs.items() if needed))

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        self.device.write(self.at.body.force, force)
        self.device.write(self.at.body.torque, torque)

    def set_gravity(self, gravity: np.ndarray) -> None:
        """Set the gravity (3,) [m/s^2] and invalidate recorded launches, which hold the previous one."""
        self.at.step.gravity = wp.vec3d(*gravity)
        self.device.generation += 1

    def set_friction(self, mu: np.ndarray) -> None:
        friction, before = self.potential.friction, self.potential.friction.enabled
        friction.set_coefficients(mu)
        if friction.enabled and not before:
            self._load_kernels()
        self.device.generation += 1
