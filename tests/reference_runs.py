"""Runs of mechanisms with known motion, and comparison of their results."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import abd

KINDS = ("position", "velocity", "force")
"""Positions [m] and angles [rad]; velocities [m/s] and rates [rad/s]; forces [N] and torques [N m].

Errors of forces are relative to the largest force or torque of the mechanism at that time."""

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A mechanism and its expected values.

    Attributes:
        scene: creates the scene for a step h [s].
        read: reads quantities from a simulation.
        expected: values by time [s] and name of the quantity, whose first word is one of `KINDS`.
    """

    name: str
    scene: Callable[..., abd.Scene]
    read: Callable[[abd.Simulation], Values]
    expected: dict[float, Values]


@dataclass(frozen=True)
class Outcome:
    """Largest errors by time and quantity, Newton iterations per step, and the largest residual of joints."""

    errors: dict[float, dict[str, float]]
    newton: float
    residual: np.ndarray


def run(case: Case, h: float, until: float = np.inf, device: str = "cpu", **solver) -> Outcome:
    """Simulate a case with step h [s], and compare it at all times with expected values up to `until` [s]."""
    times = [time for time in case.expected if time <= until]
    simulation = abd.Simulation(case.scene(h, **{"tolerance": 1e-7, **solver}), device=device)
    errors, newton, residual = {}, 0, np.zeros(2)
    due = {round(time / h): time for time in times}
    for step in range(1, max(due) + 1):
        report = simulation.step()
        newton += report.newton_iterations
        residual = np.maximum(residual, report.max_joint_residual)
        if step in due:
            errors[due[step]] = compare(case.expected[due[step]], case.read(simulation))
    return Outcome(errors, newton / step, residual)


def compare(expected: Values, found: Values) -> dict[str, float]:
    """Return the largest difference of each quantity; forces are relative to the largest force."""
    forces = [np.abs(value).max() for name, value in expected.items() if kind(name) == "force"]
    largest = max(forces, default=1.0)
    return {
        name: float(np.abs(np.asarray(found[name]) - value).max() / (largest if kind(name) == "force" else 1.0))
        for name, value in expected.items()
    }


def kind(name: str) -> str:
    """Return the kind (`KINDS`) of a quantity."""
    return name.split()[0].rstrip(":")


def worst(errors: dict[float, dict[str, float]], which: str) -> float:
    """Return the largest error of a kind of quantities, 0 without such quantities."""
    return max((error for row in errors.values() for name, error in row.items() if kind(name) == which), default=0.0)
