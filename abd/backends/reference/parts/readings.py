"""Step statistics and contact data after a step."""

from __future__ import annotations

import numpy as np

from abd.contact.forces import Pressing, pressing
from abd.energies import (
    StepStatistics,
    external_work,
    kinetic_energy,
    momenta,
    orthogonality_error,
    potential_energies,
)
from abd.joints.coordinates.readings import JointReader
from abd.joints.coordinates.readings import Readings as JointReadings
from abd.joints.rows.forces import row_work
from abd.model import Kind
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import RATE_OLD


class Readings:
    """Implementation of `abd.backends.protocol.Readings`."""

    def __init__(self, backend):
        self.backend, self.at, self.contacts = backend, backend.at, backend.contacts
        self.reader = JointReader(backend.model)

    def smallest_gap(self) -> float:
        return float(self.contacts.gaps(self.at.q).min(initial=np.inf))

    def contact_statistics(self) -> tuple[float, int, float]:
        return float(self.contacts.energy(self.at.q).sum()), self.contact_count(), self.smallest_gap()

    def contact_count(self) -> int:
        return int(np.count_nonzero(self.backend.touch.relative_gaps() < 1.0))

    def pressing(self) -> Pressing:
        c = self.contacts
        return pressing(self.backend.model, c.surfaces, c.topology, c.pair_law, c.pairs, c.found, self.at.q)

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        friction = self.backend.friction
        return *friction.frozen(self.at.eps), friction.lagged.load / self.at.ch2[friction.owners], self.at.rest.copy()

    def vertex_speeds(self) -> np.ndarray:
        corner = np.linalg.norm(np.abs(self.backend.boxes.surface_corners).max(axis=1), axis=1)
        velocity = self.backend.states.velocity
        return np.linalg.norm(velocity[:, :3], axis=1) + corner * np.linalg.norm(velocity[:, 3:], axis=1)

    def statistics(self) -> StepStatistics:
        b, model, rows, steps = self.backend, self.backend.model, self.backend.rows, self.backend.steps
        bodies, q, qd, applied, memory = model.bodies, b.states.now, b.states.velocity, rows.applied, rows.memory
        read = JointReadings(self.reader, b.system, q, qd, self.reader.initial, memory, applied)
        smooth, ends = rows.row_weights[RATE_OLD] != 0.0, memory.history[[slots.BEFORE, slots.VALUE]]
        driven, lost = row_work(b.system, applied, *ends, rows.pushed, smooth)
        linear, angular = momenta(model, q, qd)
        return StepStatistics(
            kinetic=kinetic_energy(model, qd),
            **potential_energies(model, q),
            contact=float((self.contacts.energy(q) / self.contacts.scale[self.contacts.owners]).sum()),
            joint=float(read.energy.sum()),
            linear=linear,
            angular=angular,
            external_work=external_work(
                (bodies.force, bodies.torque), b.states.read_previous(), (q, qd), b.scheme.rule.h,
                (bodies.kind == Kind.DYNAMIC) & b.inactive.mobile,
            ),
            drive_work=driven,
            friction_work=steps.friction_work + lost,
            joint_residual=tuple(read.worst_residual.tolist()),
            orthogonality_error=orthogonality_error(q),
            residual_force=float((np.abs(b.potential.gradient.numpy()[:, :3]) / self.at.ch2[:, None]).max(initial=0.0)),
            contacts=self.contact_count(),
            smallest_gap=self.smallest_gap(),
            fastest=float(np.linalg.norm(qd[:, 3:], axis=1).max(initial=0.0)),
        )
