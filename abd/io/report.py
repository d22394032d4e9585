"""report.json: one page of numbers about a run, summed up step by step."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from abd.errors import AbdError, StepFailure
from abd.io.frame import STORED, SolverRow
from abd.model import Kind, Model
from abd.version import __version__

_PACKAGES = ("numpy", "scipy", "warp-lang", "h5py")


@dataclass
class Tally(SolverRow):
    """Sums and extremes over the steps of a run; survives a checkpoint.

    Attributes:
        steps, converged_steps: numbers of steps; newton_max, linear_max: largest numbers of iterations of a step.
        time: at the end [s]; wall_seconds: includes the readout of results.
        initial_energy, energy: total energy at the start and at the end [J] (`abd.io.frame.STORED`).
        external_work, friction_work, integration: see `abd.step.step.Stepper` [J].
        initial_potential: `initial_energy` without the kinetic energy [J].
        energy_scale: largest kinetic energy, or change of all other energies together, so far [J].
        broken: joint -> time [s] at which it broke.
    """

    steps: int = 0
    converged_steps: int = 0
    newton_max: int = 0
    linear_max: int = 0
    time: float = 0.0
    initial_energy: float = 0.0
    energy: float = 0.0
    external_work: float = 0.0
    friction_work: float = 0.0
    integration: float = 0.0
    initial_potential: float = 0.0
    energy_scale: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    broken: dict[str, float] = field(default_factory=dict)

    def begin(self, report) -> None:
        """Add the report of the initial state, which counts neither as a step nor for the smallest gap."""
        super().add(report)
        self.min_gap = math.inf
        self.initial_energy = self.energy = total_energy(report.energy)
        self.energy_scale = report.energy["kinetic"]
        self.initial_potential = self.energy - report.energy["kinetic"]

    def add(self, report, wall_seconds: float) -> None:
        """Add the `StepReport` of a step that took `wall_seconds`, including readout."""
        seconds_before = self.wall_seconds
        super().add(report)
        self.wall_seconds = seconds_before + wall_seconds
        self.steps += 1
        self.converged_steps += bool(report.converged)
        self.newton_max = max(self.newton_max, report.newton_iterations)
        self.linear_max = max(self.linear_max, report.linear_iterations)
        self.time = report.time
        self.energy = total_energy(report.energy)
        for name in ("external_work", "friction_work", "integration"):
            setattr(self, name, report.energy[name])
        kinetic = report.energy["kinetic"]
        self.energy_scale = max(self.energy_scale, kinetic, abs(self.energy - kinetic - self.initial_potential))
        self.broken.update(dict.fromkeys(report.broken, report.time))
        for name, seconds in report.stages.items():
            self.stages[name] = self.stages.get(name, 0.0) + seconds

    @property
    def energy_drift(self) -> float | None:
        """Ratio of `integration` to the largest kinetic energy or change of potential energy [-]; None if both are zero."""
        return self.integration / self.energy_scale if self.energy_scale > 0.0 else None


def total_energy(energy: dict[str, float]) -> float:
    """Return kinetic, gravity, elastic, contact and joint energy [J]."""
    return sum(energy[name] for name in STORED)


def run_report(
    tally: Tally, model: Model, device: str, failure: StepFailure | None = None, linear_solver: dict | None = None
) -> dict:
    """Return the content of report.json, ready for JSON: infinite and undefined numbers are None."""
    steps = max(tally.steps, 1)
    # the energy balance has no entry for the work of prescribed bodies
    drift = None if Kind.KINEMATIC in model.bodies.kind else tally.energy_drift
    report = {
        "scene": model.name,
        "device": device,
        "precision": "float64",
        "versions": versions(),
        "steps": tally.steps,
        "converged_steps": tally.converged_steps,
        "failed_step": failure.step if failure else None,
        "simulated_seconds": tally.time,
        "wall_seconds": tally.wall_seconds,
        "steps_per_second": tally.steps / tally.wall_seconds if tally.wall_seconds > 0.0 else None,
        "stages": tally.stages,
        "min_gap": tally.min_gap,
        "max_joint_residual": tally.max_joint_residual.tolist(),
        "max_orthogonality_error": tally.max_orthogonality_error,
        "energy_drift": drift,
        "energy": {
            "initial": tally.initial_energy,
            "final": tally.energy,
            "external_work": tally.external_work,
            "friction_work": tally.friction_work,
            "integration": None if drift is None else tally.integration,
        },
        "newton_iterations": {"mean": tally.newton_iterations / steps, "max": tally.newton_max},
        "linear_solver": linear_solver or {},
        "linear_iterations": {"mean": tally.linear_iterations / steps, "max": tally.linear_max},
        "rejected_paths": tally.rejected_paths,
        "broken_joints": tally.broken,
        "tolerance": {"requested": model.settings.tolerance, "worst": tally.tolerance_achieved},
    }
    if failure:
        names = {"reason": failure.reason, "message": str(failure), "bodies": list(failure.bodies)}
        report["failure"] = {**names, "step": failure.step, "time": failure.time}
    return finite(report)


def read_json(path: Path) -> dict:
    """Return the dictionary in a JSON file of a run or a sweep; `AbdError` if it cannot be read or has none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise AbdError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise AbdError(f"{path} cannot be read: it has no dictionary")
    return found


def finite(value):
    """Replace all numbers that JSON cannot express by None."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that compute a run, without importing them."""
    found = {"python": platform.python_version(), "abd": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
