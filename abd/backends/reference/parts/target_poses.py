"""Target poses of prescribed bodies."""

from __future__ import annotations

import numpy as np

from abd.backends.reference.numpy_bodies import state
from abd.backends.reference.potential import Potential
from abd.contact.path import standing
from abd.model import Kind, Model


class TargetPoses:
    """Implementation of `abd.backends.protocol.TargetPoses`; prescribed: (k,) indices of the bodies."""

    def __init__(self, model: Model, potential: Potential):
        self.potential, self.at = potential, potential.at
        self.prescribed = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)

    def read_prescribed(self) -> np.ndarray:
        return self.at.q[self.prescribed]

    def set_penalty(self, penalty: float, lp: np.ndarray, lA: np.ndarray) -> None:
        step = self.at.step
        step.penalty, step.lp, step.lA = float(penalty), lp.copy(), lA.copy()

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        at, step = self.at, self.at.step
        at.q = np.where(chosen[:, None], state(step.pk, step.Ak), at.q)
        self.potential.contacts.search(standing(at.q))
        self.potential.evaluate()
