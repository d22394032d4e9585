"""External loads, and bodies that are immobile, excluded or asleep in a step, on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

import cuda_kernels
from abd.backends.islands import InactiveBodies
from abd.model import Kind


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
