"""Incremental potential of a step on a device: energy differences, gradient and Hessian of a sum of terms."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.bodies import Bodies
from abd.backends.warp.terms.contacts import Contacts
from abd.backends.warp.terms.friction import Friction
from abd.backends.warp.terms.joints import Joints
from abd.joints.rows.system import JointSystem
from abd.model import Model
from cuda_kernels.bodies import bodies, fixed, poses
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums


class Term(Protocol):
    """One term of the incremental potential on a device: energies of bodies or pairs of bodies times c h^2 [J s^2].

    Energies are stored in slot "current" for the iterate and in slot "trial" for the trial. All methods only launch kernels, so
    that they can be recorded. `CONTRIBUTING.md` has a recipe for a new term.
    """

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate the energies at the pose of a slot and store them in that slot."""

    def exchange(self) -> None:
        """Exchange the values of the two slots, after the poses have been exchanged."""

    def add_differences(self, difference: wp.array, size: wp.array) -> None:
        """Add the energy differences "trial" minus "current" to `difference` (n,) and the magnitudes of both to `size` (n,).

        Each energy counts for one body, its owner."""

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add gradient (n, 12) and positive semidefinite diagonal blocks (n, 12, 12) at the iterate, and set the off-diagonal
        blocks, which `Potential.couplings` lists. The energies of the iterate have been evaluated."""


class Potential:
    """Incremental potential E(q), evaluated at the iterate and at a trial (`at`).

    Attributes:
        bodies, joints, friction, contacts: the terms; `terms`: all terms in the order of summation.
        gradient: (n, 12); diagonal: (n, 12, 12) diagonal blocks of the Hessian.
        has_constraints: whether some degrees of freedom are fixed and projected out.
        has_contact_energies: whether slot "current" of the contacts holds energies of the iterate for the current candidates.
    """

    def __init__(self, model: Model, device: Device, islands: Islands, at: Iterate, system: JointSystem):
        self.device, self.islands, self.at = device, islands, at
        self.n = n = len(model.bodies)
        self.contacts = Contacts(model, device, islands.done)
        self.friction = Friction(model, device, self.contacts)
        self.friction.begin = at.rest
        self.bodies = Bodies(n, device, at)
        self.set_joints(system)
        self.gradient, self.diagonal = device.zeros((n, 12), wp.float64), device.zeros((n, 12, 12), wp.float64)
        self._difference, self._size = (device.zeros(n, wp.float64) for _ in range(2))
        self._all_bodies, self._count = device.upload(np.arange(n), wp.int32), device.upload([n], wp.int32)
        self._scratch: wp.array | None = None
        self.has_constraints = self.has_contact_energies = False

    def set_joints(self, system: JointSystem) -> None:
        self.joints = Joints(system, self.n, self.device)
        self.bodies.constant = self.joints.diagonal
        self.terms: list[Term] = [self.bodies, self.joints, self.friction, self.contacts]

    @property
    def regularisations(self) -> tuple[wp.array, wp.array]:
        """(n,) regularisation weights of contacts and of joints (`cuda_kernels.step.newton`)."""
        return self.contacts.law.regularisation, self.joints.regularisation

    @property
    def couplings(self) -> list[tuple[Coupling, int]]:
        """Off-diagonal blocks of each term, with the number of pairs, or the capacity if launches are recorded.

        Joints come first, because their pairs are constant; contacts, which have most of the changing pairs, follow."""
        return [term.coupled for term in (self.joints, self.contacts, self.friction)]

    # energies ----------------------------------------------------------------------------------------------------

    def evaluate_contacts(self) -> None:
        """Evaluate contact energies of the iterate on the current candidate list, unless they are valid already."""
        if not self.has_contact_energies:
            if self.contacts.candidates.count:
                self.contacts.evaluate(self.at, "current")
            self.has_contact_energies = True

    def launch_contacts(self) -> None:
        """Evaluate contact energies of the iterate; launches only."""
        self.contacts.evaluate(self.at, "current")

    def evaluate(self) -> None:
        """Evaluate all energies except contact at the iterate."""
        for term in self.terms:
            if term is not self.contacts:
                term.evaluate(self.at, "current")

    def evaluate_trial(self, alpha: wp.array, change: wp.array, size: wp.array) -> None:
        """Evaluate the trial, the path at alpha (islands,).

        Args:
            change, size: outputs (islands,), the change of the energy and the sum of the magnitudes of its summands.
        """
        at, islands = self.at, self.islands
        at.along = islands.island, alpha
        try:
            for term in self.terms:
                term.evaluate(at, "trial")
        finally:
            at.along = None
        for term in self.terms:
            term.add_differences(self._difference, self._size)
        islands.reduce(self._difference, sums.SUM, change)
        islands.reduce(self._size, sums.SUM, size)

    def exchange(self) -> None:
        """Exchange iterate and trial by value: recorded launches keep pointers to the arrays."""
        self.device.launch(poses.exchange_poses, self.n, self.at.current, self.at.trial)
        for term in self.terms:
            term.exchange()

    def launch_mark_done(self, converged: wp.array) -> None:
        """Mark the bodies of islands with `converged` (islands,) int32 = 1, and no others, as done; launches only.

        Kernels may skip these bodies until the islands change or everything is evaluated again."""
        self.islands.launch_mark_done(converged)
        # kernels skip settled bodies: their pose must be equal in the iterate and in the trial
        self.device.launch(poses.snap, self.n, self.at.current, self.islands.done, self.at.trial)
        energy = self.bodies.energy
        self.device.copy(energy["trial"], energy["current"])

    # linear system -----------------------------------------------------------------------------------------------

    def linearize(self) -> None:
        """Compute gradient and Hessian blocks at the iterate, whose energies have been evaluated."""
        at = self.at
        self.evaluate_contacts()
        for term in self.terms:
            term.add_to(at, self.gradient, self.diagonal)
        self.device.launch(
            bodies.stiffen_rotations,
            self.n, at.body, at.step, at.current, at.done, self.contacts.without, self.gradient, self.diagonal, grain=256,
        )  # fmt: skip
        self.project_vectors(self.gradient)

    def project_vectors(self, vectors: wp.array) -> None:
        """Project fixed degrees of freedom out of vectors (n, 12)."""
        if self.has_constraints:
            self.device.launch(fixed.project_vectors, self.n, self.at.body, self.at.step, vectors)

    def project(self, couplings: list[tuple[Coupling, int]]) -> None:
        """Project fixed degrees of freedom out of the diagonal blocks and the blocks of couplings."""
        if not self.has_constraints:
            return
        self.joints.restore_blocks()
        jobs = [(self.n, self._count, self._all_bodies, self._all_bodies, self.diagonal, 1)]
        jobs += [(pairs, c.count, c.row, c.column, c.blocks, 0) for c, pairs in couplings]
        largest = max(capacity for capacity, *_ in jobs)
        if self._scratch is None or self._scratch.shape[0] < largest:
            self._scratch = self.device.empty((largest + largest // 2, 12, 12), wp.float64)
        for capacity, count, row, column, blocks, is_diagonal in jobs:
            self.device.launch(
                fixed.project_blocks,
                capacity, count, self.at.body, self.at.step, row, column, self._scratch, blocks, is_diagonal, grain=128,
            )  # fmt: skip
