"""Report of frame 0, before the first step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.energies import InitialContacts, kinetic_energy, momenta, orthogonality_error, potential_energies
from abd.io.frame import SolverRow
from abd.joints.coordinates.readings import initial_readings
from abd.model import Model
from abd.potentials.integrators import longest
from abd.state import State

NOTHING_NEAR = InitialContacts()


@dataclass(kw_only=True)
class InitialReport(SolverRow):
    """Fields of a `StepReport` that exist without a step. Counts are 0; gaps are those of nearby bodies."""

    step: int
    time: float
    energy: dict[str, float]
    momentum: dict[str, np.ndarray]


def initial_report(model: Model, state: State, initial_contacts: InitialContacts = NOTHING_NEAR) -> InitialReport:
    """Return energies, momenta and errors of a state by the definitions.

    Contacts are those that the simulation found; joint energy is what the first step counts.
    """
    time = longest(state.time)
    read = initial_readings(model, state.q, state.qd, time)
    linear, angular = momenta(model, state.q, state.qd)
    return InitialReport(
        step=state.step,
        time=time,
        energy={
            "kinetic": kinetic_energy(model, state.qd),
            **potential_energies(model, state.q),
            "contact": initial_contacts.energy,
            "joint": float(read.energy.sum()),
            "external_work": 0.0,
            "friction_work": 0.0,
            "integration": 0.0,
        },
        momentum={"linear": linear, "angular": angular},
        max_joint_residual=tuple(read.worst_residual.tolist()),
        max_orthogonality_error=orthogonality_error(state.q),
        contacts=initial_contacts.contacts,
        min_gap=initial_contacts.smallest_gap,
    )
