"""The incremental potential of a step by the definitions: a sum of terms, with its gradient and its Hessian."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.reference.iterate import Islands, Iterate
from abd.backends.reference.numpy_bodies import BodyEnergies, maps
from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.reference.numpy_friction import NumpyFriction
from abd.backends.reference.numpy_joints import NumpyJoints
from abd.joints.rows.system import JointSystem
from abd.model import Model


class Term(Protocol):
    """One energy of the incremental potential, E times c h^2 [J s^2]; `abd.backends.warp.terms.term` has the same on a device.

    Attributes:
        owners: (k,) body of every summand; ties: (m, 2) permanently coupled pairs of bodies, without those of joints, the owner
            first.
    """

    owners: np.ndarray
    ties: np.ndarray

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """Return (k,) summands in the state q (n, 12)."""

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        """Add gradient (n, 12) and positive semidefinite blocks (n, n, 12, 12) at the iterate."""


class Potential:
    """E(q) of one scene at the iterate and at a trial (`at`).

    Attributes:
        bodies, joints, friction, contacts, further: the terms; `terms`: all of them in the order of the sum.
        ties: (k, 2) pairs of bodies permanently coupled by terms, without those of joints.
        owners, energies: of all summands at the iterate.
        gradient: (n, 12); blocks: (n, n, 12, 12).
    """

    def __init__(self, model: Model, constants: BodyData, islands: Islands, at: Iterate, system: JointSystem):
        self.islands, self.at, self.n = islands, at, len(model.bodies)
        self.bodies, self.contacts = BodyEnergies(constants), NumpyContacts(model)
        self.friction = NumpyFriction(self.contacts)
        self.further: list[Term] = []
        self.set_joints(system)

    def set_joints(self, system: JointSystem) -> None:
        self.joints = NumpyJoints(system, self.n)
        self.terms: list[Term] = [self.bodies, self.joints, *self.further, self.friction, self.contacts]
        self.ties = np.concatenate([term.ties for term in self.terms])

    def set_regularisation(self, weight: np.ndarray) -> None:
        """Set weights (islands,) of the bounds of curvature in the next models (`abd.backends.reference.regularisation`)."""
        self.contacts.regularisation = weight[self.islands.host]
        self.joints.regularisation = np.maximum(self.joints.regularisation, self.contacts.regularisation)

    def evaluate(self) -> None:
        self.owners = np.concatenate([term.owners for term in self.terms])
        self.energies = self._energies(self.at.q)

    def changes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the change of every summand from the iterate to the trial, and the sizes of both."""
        at, trial_energies = self.at, self._energies(self.at.trial)
        size = np.abs(trial_energies) + np.abs(self.energies)
        size[: self.n] += sum(self.bodies.elastic_size(at.step, q) for q in (at.q, at.trial))
        return trial_energies - self.energies, np.where(np.isfinite(size), size, 0.0)

    def _energies(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([term.energies(self.at, q) for term in self.terms])

    def linearize(self, projectors: np.ndarray) -> None:
        """Compute gradient and blocks at the iterate, projected by `projectors` (n, 12, 12)."""
        at, n, P, all_bodies = self.at, self.n, projectors, np.arange(self.n)
        gradient, blocks = np.zeros((n, 12)), np.zeros((n, n, 12, 12))
        for term in self.terms:
            before = gradient.copy()
            term.add_to(at, gradient, blocks)
        # contacts are the last term
        touching = (maps(gradient) != maps(before)).any(axis=(1, 2))
        blocks[all_bodies, all_bodies] += self.bodies.arc_stiffness(at.step, at.q, gradient, touching)
        self.gradient = np.einsum("nij,nj->ni", P, gradient)
        # block by block: the sums of one do not depend on the number of blocks
        self.blocks = P[:, None] @ blocks @ P[None]
        self.blocks[all_bodies, all_bodies] += np.eye(12) - P
