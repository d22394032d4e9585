"""`StepReport`: statistics of one frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from abd.api.views import XYZ
from abd.optional import required
from abd.potentials.integrators import longest

if TYPE_CHECKING:
    import pandas

    from abd.backends.progress import Progress
    from abd.step.step import Stepper


@dataclass
class StepReport:
    """Statistics of one frame in SI units.

    ``energy``: kinetic, gravity, elastic, contact; "joint" is the energy stored in penalties, compliances, springs, limits
    and rotors. "external_work" is the work since the start of loads on bodies and of drives and forces on coordinates.
    "friction_work" is the work of contact friction and of friction and damping in joints. "integration" is the remainder:
    energy that the integrator added (> 0) or removed (< 0) since the start, including inelastic impacts
    (`abd.step.step.Stepper`). The work of prescribed bodies and moving surfaces has no entry of its own.
    ``rejections``: number of rejected substeps by reason, counted per world: "passed" (the swept path is not proven
    collision-free), "fast_contact" (bodies collided at high speed), or a reason of `StepFailure`; ``rejected_paths`` is the sum
    of the first two. ``indirect_paths``: number of substeps proven collision-free along the Newton
    iterates, not along arcs between the two states. ``max_joint_residual``: of active joints and couplings [m], [rad].
    ``min_gap`` [m]: smallest gap between bodies if that is below the activation, otherwise an upper bound of it or infinite.
    ``converged``: every minimisation reached the requested tolerance; ``tolerance_achieved`` [m/s] is the largest value. A
    step that does not converge raises `StepFailure`. If other worlds can continue, ``stopped`` has the reason of each
    failed world (`Simulation.stopped_worlds`). ``broken``: joints that broke after this frame.
    ``dt`` is the longest time step of a world, by which ``time`` goes; ``world_time`` (w,) has the times of all worlds [s]
    (`Simulation.worlds`).
    """

    step: int
    time: float
    dt: float
    converged: bool
    substeps: int
    newton_iterations: int
    linear_iterations: int
    line_search_trials: int
    min_gap: float
    max_joint_residual: tuple[float, float]
    max_orthogonality_error: float
    residual_force: float
    tolerance_achieved: float
    contacts: int
    world_time: np.ndarray
    energy: dict[str, float]
    momentum: dict[str, np.ndarray]
    rejected_paths: int = 0
    indirect_paths: int = 0
    rejections: dict[str, int] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    stopped: dict[int, str] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    wall_seconds: float = 0.0

    @classmethod
    def of(cls, stepper: Stepper, progress: Progress, substeps: int, broken: tuple[str, ...], wall: float) -> StepReport:
        """Create the report of the last frame of a stepper, which took `wall` [s]."""
        statistics, work, settings = stepper.statistics, stepper.work, stepper.model.settings
        return cls(
            step=stepper.frame,
            time=stepper.worlds.clock,
            dt=longest(stepper.worlds.lengths),
            world_time=stepper.worlds.world_values(stepper.time),
            converged=progress.tolerance <= max(settings.tolerance, settings.friction_tolerance),
            substeps=substeps,
            newton_iterations=progress.newton,
            linear_iterations=progress.linear,
            line_search_trials=progress.trials,
            rejections=progress.rejections,
            rejected_paths=progress.rejections.get("passed", 0) + progress.rejections.get("fast_contact", 0),
            indirect_paths=progress.indirect_paths,
            stopped=progress.stopped,
            min_gap=statistics.smallest_gap,
            max_joint_residual=statistics.joint_residual,
            max_orthogonality_error=statistics.orthogonality_error,
            residual_force=statistics.residual_force,
            tolerance_achieved=progress.tolerance,
            contacts=statistics.contacts,
            energy={
                "kinetic": statistics.kinetic,
                "gravity": statistics.gravity,
                "elastic": statistics.elastic,
                "contact": statistics.contact,
                "joint": statistics.joint,
                "external_work": work.external + work.drive,
                "friction_work": work.friction,
                "integration": work.integration,
            },
            momentum={"linear": statistics.linear, "angular": statistics.angular},
            broken=broken,
            stages=progress.stages,
            wall_seconds=wall,
        )

    def __str__(self) -> str:
        parts = [f"{self.newton_iterations} Newton iterations", f"{self.contacts} contacts"]
        if self.substeps > 1:
            parts.insert(0, f"{self.substeps} substeps")
        if np.isfinite(self.min_gap):
            parts.append(f"smallest gap {self.min_gap:.3g} m")
        return f"step {self.step} at {self.time:.6g} s: {', '.join(parts)}{'' if self.converged else ', not converged'}"

    def row(self) -> dict[str, float]:
        """Return the numbers by name: "energy.kinetic", "momentum.linear.x", "max_joint_residual.m"; rows make a table."""
        row: dict[str, float] = {}
        for key, value in vars(self).items():
            if key in ("energy", "stages", "rejections"):
                row |= {f"{key}.{name}": float(one) for name, one in value.items()}
            elif key == "momentum":
                row |= {f"{key}.{name}.{axis}": float(one[k]) for name, one in value.items() for k, axis in enumerate(XYZ)}
            elif key == "max_joint_residual":
                row |= {f"{key}.m": float(value[0]), f"{key}.rad": float(value[1])}
            elif not isinstance(value, tuple | dict | np.ndarray):
                row[key] = value
        return row

    def to_pandas(self) -> pandas.Series:
        """Return `row` as a pandas series.

        Raises:
            MissingLibrary: pandas is not installed.
        """
        row = self.row()
        return required("pandas", "pandas", "pandas", "a series").Series(row, name=self.step)
