"""Report of frame 0, before the first step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.energies import kinetic_energy, momenta, orthogonality_error, potential_energies
from abd.joints.coordinates.readings import opening_readings
from abd.model import Model
from abd.potentials.integrators import longest
from abd.state import State
from abd.step.energy_balance import InitialContacts

NOTHING_NEAR = InitialContacts()


@dataclass(frozen=True)
class InitialReport:
    """Fields of a `StepReport` that exist without a step.

    Nothing was solved, so all counts are 0. Gaps are those of bodies that are near.
    """

    step: int
    time: float
    energy: dict[str, float]
    momentum: dict[str, np.ndarray]
    max_joint_residual: tuple[float, float]
    max_orthogonality_error: float
    newton_iterations: int = 0
    linear_iterations: int = 0
    line_search_trials: int = 0
    rejected_paths: int = 0
    substeps: int = 0
    contacts: int = 0
    min_gap: float = np.inf
    residual_force: float = 0.0
    tolerance_achieved: float = 0.0
    wall_seconds: float = 0.0
    converged: bool = True


def initial_report(model: Model, state: State, initial_contacts: InitialContacts = NOTHING_NEAR) -> InitialReport:
    """Energies, momenta and errors of a state, from the definitions; contacts as the simulation found them, joint energy as
    the first step will count it."""
    time = longest(state.time)
    read = opening_readings(model, state.q, state.qd, time)
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
