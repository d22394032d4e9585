"""External loads, target poses of prescribed bodies, and inactive bodies of a step."""

from __future__ import annotations

import numpy as np

from abd.backends.islands import InactiveBodies
from abd.backends.reference.numpy_bodies import projectors, state
from abd.contact.path import standing
from abd.model import Kind


class Loads:
    """Implementation of `abd.backends.protocol.Loads`."""

    def __init__(self, backend):
        self.backend = backend

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Do nothing: forces [N] and torques [N m] (n, 3) are the model's own arrays."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """Do nothing: gravity (3,) [m/s^2] is the model's own array."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Update the pairs to changed coefficients (m, m) between materials, in the model's own array."""
        self.backend.contacts.follow_materials()
        self.backend.friction.follow_materials()


class TargetPoses:
    """Implementation of `abd.backends.protocol.TargetPoses`; prescribed: (k,) indices of the bodies."""

    def __init__(self, backend):
        self.backend, self.at = backend, backend.at
        self.prescribed = np.flatnonzero(backend.model.bodies.kind == Kind.KINEMATIC)

    def read_prescribed(self) -> np.ndarray:
        return self.at.q[self.prescribed]

    def set_penalty(self, penalty: float, lp: np.ndarray, lA: np.ndarray) -> None:
        step = self.at.step
        step.penalty, step.lp, step.lA = float(penalty), lp.copy(), lA.copy()

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        at, step = self.at, self.at.step
        at.q = np.where(chosen[:, None], state(step.pk, step.Ak), at.q)
        self.backend.contacts.search(standing(at.q))


class Inactive(InactiveBodies):
    """Inactive bodies, with the projectors of the terms."""

    def hold(self, held: np.ndarray) -> None:
        super().hold(held)
        self.backend.at.step.held = ~self.mobile
        self.backend.potential.projectors = projectors(self.backend.constants, ~self.mobile)

    def exclude(self, excluded: np.ndarray) -> None:
        super().exclude(excluded)
        self.backend.contacts.excluded = self.excluded
