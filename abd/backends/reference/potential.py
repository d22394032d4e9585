"""The incremental potential of a step by the definitions: a sum of terms, with its gradient and its Hessian."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.body_data import BodyData
from abd.backends.device.device import Device
from abd.backends.islands import Islands
from abd.backends.reference.iterate import Iterate
from abd.backends.reference.numpy_bodies import BodyEnergies, maps
from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.reference.numpy_friction import NumpyFriction
from abd.backends.reference.numpy_joints import NumpyJoints
from abd.joints.rows.system import JointSystem
from abd.model import Model
from cuda_kernels.parallel import sums


class Term(Protocol):
    """One energy of the incremental potential, E times c h^2 [J s^2]; `abd.backends.warp.potential` has the same on a device.

    Attributes:
        owners: (k,) body of every summand.
    """

    owners: np.ndarray

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """Return (k,) summands in the state q (n, 12)."""

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        """Add gradient (n, 12) and positive semidefinite blocks (n, n, 12, 12) at the iterate."""


class Potential:
    """E(q) of one scene at the iterate and at a trial (`at`), with the methods of `abd.backends.warp.potential.Potential`.

    Attributes:
        bodies, joints, friction, contacts: the terms; `terms`: all of them in the order of the sum.
        gradient: (n, 12); blocks: (n, n, 12, 12) of all pairs of bodies.
        projectors: (n, 12, 12) on the allowed motions of mobile bodies.
        regularisations: (n,) weights of contacts and of joints on the device; the terms hold views of them.
    """

    has_constraints, couplings = True, ()

    def __init__(self, model: Model, device: Device, constants: BodyData, islands: Islands, at: Iterate, system: JointSystem):
        self.device, self.islands, self.at, self.n = device, islands, at, len(model.bodies)
        self.bodies, self.contacts = BodyEnergies(constants), NumpyContacts(model)
        self.friction = NumpyFriction(self.contacts)
        self.regularisations = tuple(device.zeros(self.n, wp.float64) for _ in range(2))
        self.contacts.regularisation = self.regularisations[0].numpy()
        self.gradient = device.zeros((self.n, 12), wp.float64)
        self._of_bodies = device.zeros(self.n, wp.float64)
        self.set_joints(system)

    def set_joints(self, system: JointSystem) -> None:
        self.joints = NumpyJoints(system, self.n)
        self.joints.regularisation = self.regularisations[1].numpy()
        self.terms: list[Term] = [self.bodies, self.joints, self.friction, self.contacts]

    # energies ----------------------------------------------------------------------------------------------------

    def evaluate(self) -> None:
        """Do nothing: `evaluate_trial` evaluates the iterate too."""

    evaluate_contacts = launch_contacts = evaluate

    def evaluate_trial(self, alpha: wp.array, change: wp.array, size: wp.array) -> None:
        at, owners = self.at, np.concatenate([term.owners for term in self.terms])
        now, trial = (np.concatenate([term.energies(at, q) for term in self.terms]) for q in (at.q, at.trial))
        sizes = np.abs(trial) + np.abs(now)
        sizes[: self.n] += sum(self.bodies.elastic_size(at.step, q) for q in (at.q, at.trial))
        for values, out in ((trial - now, change), (np.where(np.isfinite(sizes), sizes, 0.0), size)):
            self._of_bodies.numpy()[:] = np.bincount(owners, values, self.n)
            self.islands.reduce(self._of_bodies, sums.SUM, out)

    def exchange(self) -> None:
        self.at.q, self.at.trial = self.at.trial, self.at.q

    def launch_mark_done(self, converged: wp.array) -> None:
        self.islands.launch_mark_done(converged)

    # linear system -----------------------------------------------------------------------------------------------

    @property
    def diagonal(self) -> np.ndarray:
        """All blocks, the matrix of the dense solver."""
        return self.blocks

    def linearize(self) -> None:
        at, n, all_bodies = self.at, self.n, np.arange(self.n)
        gradient, self.blocks = np.zeros((n, 12)), np.zeros((n, n, 12, 12))
        for term in self.terms:
            before = gradient.copy()
            term.add_to(at, gradient, self.blocks)
        # contacts are the last term
        touching = (maps(gradient) != maps(before)).any(axis=(1, 2))
        self.blocks[all_bodies, all_bodies] += self.bodies.arc_stiffness(at.step, at.q, gradient, touching)
        self.gradient.numpy()[:] = gradient
        self.project_vectors(self.gradient)

    def project_vectors(self, vectors: wp.array) -> None:
        vectors.numpy()[:] = np.einsum("nij,nj->ni", self.projectors, vectors.numpy())

    def project(self, couplings: tuple) -> None:
        P, all_bodies = self.projectors, np.arange(self.n)
        # block by block: the sums of one do not depend on the number of blocks
        self.blocks = P[:, None] @ self.blocks @ P[None]
        self.blocks[all_bodies, all_bodies] += np.eye(12) - P
