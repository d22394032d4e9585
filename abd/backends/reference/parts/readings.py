"""Step statistics and contact data after a step."""

from __future__ import annotations

import numpy as np

from abd.backends.reference.numpy_bodies import Boxes
from abd.backends.reference.parts.rows import Rows
from abd.backends.reference.parts.states import States
from abd.backends.reference.parts.steps import Steps
from abd.backends.reference.parts.touch import Touch
from abd.backends.reference.potential import Potential
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
from abd.model import Kind, Model
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import RATE_OLD


class Readings:
    """Implementation of `abd.backends.protocol.Readings`."""

    def __init__(
        self, model: Model, potential: Potential, states: States, touch: Touch, rows: Rows, steps: Steps, boxes: Boxes
    ):
        self.model, self.potential, self.states, self.touch = model, potential, states, touch
        self.rows, self.steps, self.boxes = rows, steps, boxes
        self.at, self.contacts, self.reader = potential.at, potential.contacts, JointReader(model)

    def smallest_gap(self) -> float:
        return float(self.contacts.gaps(self.at.q).min(initial=np.inf))

    def contact_statistics(self) -> tuple[float, int, float]:
        return float(self.contacts.energy(self.at.q).sum()), self.contact_count(), self.smallest_gap()

    def contact_count(self) -> int:
        return int(np.count_nonzero(self.touch.relative_gaps() < 1.0))

    def pressing(self) -> Pressing:
        return pressing(self.model, self.contacts.surfaces, self.contacts.topology, self.contacts.pair_law, self.contacts.pairs,
                        self.contacts.found, self.at.q)  # fmt: skip

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        friction = self.potential.friction
        return *friction.frozen(self.at.eps), friction.lagged.load / self.at.ch2[friction.owners], self.at.rest.copy()

    def vertex_speeds(self) -> np.ndarray:
        corner = np.linalg.norm(np.abs(self.boxes.surface_corners).max(axis=1), axis=1)
        return np.linalg.norm(self.states.velocity[:, :3], axis=1) + corner * np.linalg.norm(self.states.velocity[:, 3:], axis=1)

    def statistics(self) -> StepStatistics:
        model, bodies, q, qd = self.model, self.model.bodies, self.states.now, self.states.velocity
        applied, memory = self.rows.applied, self.rows.memory
        read = JointReadings(self.reader, self.rows.system, q, qd, self.reader.initial, memory, applied)
        smooth, ends = self.rows.row_weights[RATE_OLD] != 0.0, memory.history[[slots.BEFORE, slots.VALUE]]
        driven, lost = row_work(self.rows.system, applied, *ends, self.rows.pushed, smooth)
        linear, angular = momenta(model, q, qd)
        return StepStatistics(
            kinetic=kinetic_energy(model, qd),
            **potential_energies(model, q),
            contact=float((self.contacts.energy(q) / self.contacts.scale[self.contacts.owners]).sum()),
            joint=float(read.energy.sum()),
            linear=linear,
            angular=angular,
            external_work=external_work(
                (bodies.force, bodies.torque), self.states.read_previous(), (q, qd), self.steps.scheme.rule.h,
                (bodies.kind == Kind.DYNAMIC) & self.steps.inactive.mobile,
            ),
            drive_work=driven,
            friction_work=self.steps.friction_work + lost,
            joint_residual=tuple(read.worst_residual.tolist()),
            orthogonality_error=orthogonality_error(q),
            residual_force=float((np.abs(self.potential.gradient.numpy()[:, :3]) / self.at.ch2[:, None]).max(initial=0.0)),
            contacts=self.contact_count(),
            smallest_gap=self.smallest_gap(),
            fastest=float(np.linalg.norm(qd[:, 3:], axis=1).max(initial=0.0)),
        )
