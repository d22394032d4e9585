"""The incremental potential of a step on a device: a sum of terms, with its changes, its gradient and its Hessian."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.warp.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.bodies import Bodies
from abd.backends.warp.terms.contacts import Contacts
from abd.backends.warp.terms.friction import Friction
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.term import Term
from abd.joints.rows.system import JointSystem
from abd.model import Model
from cuda_kernels.bodies import bodies, fixed, poses
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums


class Potential:
    """E(q) at the iterate and at a trial (`at`).

    Attributes:
        bodies, joints, friction, contacts, further: the terms; `terms`: all of them, in the order in which they are added up.
        gradient: (n, 12); diagonal: (n, 12, 12) the bodies' own blocks.
        has_constraints: whether degrees of freedom are held, which are projected out.
        ties: (k, 2) pairs of bodies that terms couple for good, besides those of joints.
        contacts_known: whether slot "current" of the contacts is that of the iterate on the present list.
    """

    def __init__(self, model: Model, device: Device, islands: Islands, at: Iterate, system: JointSystem):
        self.device, self.islands, self.at = device, islands, at
        self.n = n = len(model.bodies)
        self.contacts = Contacts(model, device, islands.done)
        self.friction = Friction(model, device, self.contacts)
        self.friction.begin = at.rest
        self.bodies = Bodies(n, device)
        self.further: list[Term] = []
        self.set_joints(system)
        self.gradient, self.diagonal = device.zeros((n, 12), wp.float64), device.zeros((n, 12, 12), wp.float64)
        self._difference, self._size = (device.zeros(n, wp.float64) for _ in range(2))
        self._everybody, self._count = device.upload(np.arange(n), wp.int32), device.upload([n], wp.int32)
        self._scratch: wp.array | None = None
        self.has_constraints = self.contacts_known = False

    def set_joints(self, system: JointSystem) -> None:
        """Take over a joint system."""
        self.joints = Joints(system, self.n, self.device)
        self.bodies.constant = self.joints.diagonal
        self.terms: list[Term] = [self.bodies, self.joints, *self.further, self.friction, self.contacts]
        self.ties = np.concatenate([term.ties for term in self.terms])

    @property
    def couplings(self) -> list[tuple[Coupling, int]]:
        """Blocks off the diagonal, first those of the joints, whose pairs stay, and then those of contacts, which have most
        pairs of what comes and goes; with the numbers of their pairs, or the rooms for them where launches are recorded."""
        terms = self.joints, self.contacts, self.friction, *self.further
        return [coupling for term in terms for coupling in term.couplings]

    # energies ----------------------------------------------------------------------------------------------------

    def know_contacts(self) -> None:
        """Contact energies of the iterate on the present list, if they are not there already."""
        if not self.contacts_known:
            if self.contacts.candidates.count:
                self.contacts.evaluate(self.at, "current")
            self.contacts_known = True

    def carry_contacts(self, before: tuple[wp.array, ...]) -> None:
        """The list was renewed at the iterate: its contacts are those of `before` where pairs are kept, which slot
        "current" held, and new ones; resting islands are looked at again."""
        self.islands.unsettle()
        self.contacts.carry(self.at.current, before)
        self.contacts_known = True

    def evaluate(self) -> None:
        """Energies of all but contacts at the iterate."""
        for term in self.terms:
            if term is not self.contacts:
                term.evaluate(self.at, "current")

    def evaluate_trial(self, alpha: wp.array, change: wp.array, size: wp.array) -> None:
        """Energies at the trial, which is the path at alpha (islands,): per island their change and the sum of their sizes."""
        at, islands = self.at, self.islands
        at.along = islands.island, alpha
        try:
            for term in self.terms:
                term.evaluate(at, "trial")
        finally:
            at.along = None
        for term in self.terms:
            term.add_differences(at, self._difference, self._size)
        islands.reduce(self._difference, sums.SUM, change)
        islands.reduce(self._size, sums.SUM, size)

    def exchange(self) -> None:
        """The trial becomes the current iterate and the current one the trial: a record holds the arrays, which exchange what
        they hold."""
        self.device.launch(poses.exchange_poses, self.n, self.at.current, self.at.trial)
        for term in self.terms:
            term.exchange(self.at)

    def launch_settle(self, converged: wp.array) -> None:
        """Leave the bodies of the islands marked (count,), 1 or 0, and no others, where they are until the islands change or
        everything is evaluated again; kernels may skip them. Launches only."""
        self.islands.launch_settle(converged)
        # kernels pass over what is settled: it has to be the same in the iterate and in the trial
        self.device.launch(poses.snap, self.n, self.at.current, self.islands.done, self.at.trial)
        energy = self.bodies.energy
        self.device.copy(energy["trial"], energy["current"])

    # linear system -----------------------------------------------------------------------------------------------

    def linearize(self) -> None:
        """Gradient and blocks at the iterate; its energies were evaluated before."""
        at = self.at
        self.know_contacts()
        for term in self.terms:
            term.add_to(at, self.gradient, self.diagonal)
        self.device.launch(
            bodies.stiffen_rotations,
            self.n, at.body, at.step, at.current, at.done, self.contacts.without, self.gradient, self.diagonal, grain=256,
        )  # fmt: skip
        self.hold_back(self.gradient)

    def hold_back(self, vectors: wp.array) -> None:
        """Take fixed degrees of freedom out of vectors (n, 12)."""
        if self.has_constraints:
            self.device.launch(fixed.project_vectors, self.n, self.at.body, self.at.step, vectors)

    def project(self, couplings: list[tuple[Coupling, int]]) -> None:
        """Take them out of the blocks of the bodies and of couplings."""
        if not self.has_constraints:
            return
        self.joints.restore_blocks()
        jobs = [(self.n, self._count, self._everybody, self._everybody, self.diagonal, 1)]
        jobs += [(pairs, c.count, c.row, c.column, c.blocks, 0) for c, pairs in couplings]
        most = max(capacity for capacity, *_ in jobs)
        if self._scratch is None or self._scratch.shape[0] < most:
            self._scratch = self.device.empty((most + most // 2, 12, 12), wp.float64)
        for capacity, count, row, column, blocks, is_diagonal in jobs:
            self.device.launch(
                fixed.project_blocks,
                capacity, count, self.at.body, self.at.step, row, column, self._scratch, blocks, is_diagonal, grain=128,
            )  # fmt: skip
