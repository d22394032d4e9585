"""What can be said about a scene before its first step: the report of frame 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.energies import Budget, kinetic_energy, momenta
from abd.joints.rows import compile_rows
from abd.joints.rows import energy as joint_energy
from abd.joints.rows import residual as joint_residual
from abd.model import Model
from abd.state import State


@dataclass(frozen=True)
class InitialReport:
    """The part of a `StepReport` that a state without a step has.

    Contact is left out: with automatic stiffness its energy is not defined before the first step, and gaps are not
    measured. Nothing was solved, so all counts are 0.
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
    substeps: int = 0
    contacts: int = 0
    min_gap: float = np.inf
    residual_force: float = 0.0
    tolerance_achieved: float = 0.0
    wall_seconds: float = 0.0
    converged: bool = True


def initial_report(model: Model, state: State) -> InitialReport:
    """Energies, momenta and errors of a state, from the definitions; joint energy as the first step will count it."""
    rows, dt = compile_rows(model.joints), model.settings.dt
    F = np.linalg.norm(joint_residual(rows, state.q), axis=1) if len(rows) else np.zeros(0)
    A = state.q[:, 3:].reshape(-1, 3, 3)
    linear, angular = momenta(model, state.q, state.qd)
    return InitialReport(
        step=state.step,
        time=state.time,
        energy={
            "kinetic": kinetic_energy(model, state.qd),
            **Budget(model).potential(model, state.q),
            "contact": 0.0,
            "joint": float(joint_energy(rows, state.q).sum() / dt**2) if len(rows) else 0.0,
            "external_work": 0.0,
            "friction_work": 0.0,
        },
        momentum={"linear": linear, "angular": angular},
        max_joint_residual=(_largest(F[rows.is_point]), _largest(F[~rows.is_point])),
        max_orthogonality_error=_largest(np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2))),
    )


def _largest(values: np.ndarray) -> float:
    return float(values.max(initial=0.0))
