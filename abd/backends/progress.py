"""Counts and times of a step, and failures of its iterations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from abd.errors import StepFailure

_log = logging.getLogger(__name__)
LONG = 5.0
"""Time after which a long step is first reported [s]; it is reported again whenever this time has doubled."""


@dataclass
class Progress:
    """Counts and times of one step.

    Attributes:
        rejections: number of rejected substeps by reason (`abd.errors.StepFailure.reason`).
        indirect_paths: number of substeps whose swept path is the one through the iterates (`abd.step.verdict`).
        stopped: failed worlds with their failures.
    """

    newton: int = 0
    linear: int = 0
    trials: int = 0
    rejections: dict[str, int] = field(default_factory=dict)
    indirect_paths: int = 0
    tolerance: float = 0.0
    stopped: dict[int, str] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    begin: float = field(default_factory=perf_counter)
    report_after: float = field(default_factory=lambda: LONG)

    def report_long(self, h: float, speed: Callable[[], float], tolerance: float) -> None:
        """Log that the step takes long: its iterations, and the `speed` [m/s] of the next one in a substep of h [s]."""
        seconds = perf_counter() - self.begin
        if seconds < self.report_after:
            return
        self.report_after = 2.0 * seconds
        _log.info(
            "a step has taken %.0f s and %d Newton iterations so far; vertices would still move at %.3g m/s "
            "(tolerance %.3g m/s) in a substep of %.3g s",
            seconds, self.newton, speed(), tolerance, h,
        )  # fmt: skip

    def time(self, stage: str):
        """Context manager that adds its wall time [s] to a stage."""
        return _Timer(self.stages, stage)


class _Timer:
    def __init__(self, stages: dict[str, float], stage: str):
        self.stages, self.stage = stages, stage

    def __enter__(self):
        self.begin = perf_counter()

    def __exit__(self, *_):
        self.stages[self.stage] = self.stages.get(self.stage, 0.0) + perf_counter() - self.begin


def not_converged(backend, iterations: int, still_open: float, speed: np.ndarray, tolerance: np.ndarray) -> StepFailure:
    """Return the failure of a minimisation that exceeded its iterations.

    Args:
        still_open: largest residual, over its tolerance, of exact joints in islands that have otherwise converged; 0 without any.
        speed: (islands,) largest vertex speeds of the next step, negative for converged islands; tolerance: (islands,) [m/s].
    """
    failed = (speed >= 0.0)[backend.islands.host]
    if still_open > 1.0:
        message = f"residuals of exact joints are {still_open:.3g} times their tolerance after {iterations} Newton iterations"
        return StepFailure("joints", message, concerned=failed)
    ratio = speed / tolerance
    worst = int(ratio.argmax())
    if speed[worst] > tolerance[worst]:
        left = f"a vertex speed of {speed[worst]:.3g} m/s (tolerance {tolerance[worst]:.3g})"
    else:
        left = "unbalanced forces on bodies in contact"
    message = f"{iterations} Newton iterations left {left} {_island_of(backend, ratio)}"
    return StepFailure("not_converged", message, concerned=failed)


def no_decrease(backend, halvings: int, stuck: np.ndarray, slope: np.ndarray) -> StepFailure:
    """Return the failure of a line search that found no lower energy in the islands `stuck` (islands,) with slopes `slope`."""
    where = _island_of(backend, np.where(stuck, np.abs(slope), -1.0))
    message = f"no decrease of the energy along the Newton direction in {halvings} halvings {where}"
    return StepFailure("line_search", message, concerned=stuck[backend.islands.host])


def _island_of(backend, speed: np.ndarray) -> str:
    """Return the location of the island with the largest speed (islands,), for messages."""
    members = np.flatnonzero(backend.islands.host == int(speed.argmax()))
    name = backend.model.bodies.names[int(members[0])]
    return f"in the island of '{name}'" + (f" and {len(members) - 1} more" if len(members) > 1 else "")
