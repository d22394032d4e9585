"""Projected Newton on the incremental potential, one step of the integrator.

    repeat  g, H = gradient and projected Hessian at q
            H d = -g
            alpha = largest collision-free, strain-limited fraction of the arc along d
            halve alpha until E decreases
            lambda += K C for the exact joint rows C
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, and |C| within its own

Every iterate is free of intersections. All bodies of an island share alpha and the convergence test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from abd.errors import StepFailure
from abd.solver.line_search import search

BALANCED_LAGGINGS = 30
"""Laggings after which ``friction_iterations = -1`` gives up as not converged."""


@dataclass
class Progress:
    """What the iterations of one step amount to."""

    newton: int = 0
    linear: int = 0
    trials: int = 0
    tolerance: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)

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


def minimise(backend, settings, h: float, stiffness, progress: Progress, linearized: bool = False) -> None:
    """Iterate to the minimum of the incremental potential with friction as lagged.

    Args:
        backend: holds the iterate.
        h: actual step [s].
        stiffness: adapts the contact stiffness between iterations (`abd.solver.stiffness`).
        linearized: the iterate's gradient and blocks are there already.

    Raises:
        StepFailure: not converged within the limit, or no decrease along the direction.
    """
    islands = backend.islands.count
    exact, rubbing = backend.system.has_exact, backend.system.has_friction
    tolerance = settings.friction_tolerance if backend.friction.count or rubbing else settings.tolerance
    converged = np.zeros(islands, dtype=bool)
    joints_held = np.ones(islands, dtype=bool)
    for _ in range(settings.max_newton):
        if not linearized:
            with progress.time("assembly"):
                backend.linearize()
        with progress.time("linear solve"):
            moved, iterations = backend.solve()
        progress.newton += 1
        progress.linear += iterations
        settled = backend.effort_changes() <= 1.0 if rubbing else True
        if exact and (moved <= tolerance * h).all():
            with progress.time("linear solve"):
                moved = backend.close_joints()
        speed = moved / h
        if not np.isfinite(speed).all():
            raise StepFailure("not_finite", "the Newton direction is not finite")
        with progress.time("collision"):
            free = backend.follow_direction(np.where(converged, 0.0, 1.0))
        small = (speed <= tolerance) & settled
        with progress.time("line search"):
            alpha, trials, linearized = search(backend, free, small)
        progress.trials += trials
        # where energies differ only by rounding the search may shorten a step that is within the tolerance already
        converged |= small & (free == 1.0)
        if exact:
            if small.any():
                error = backend.joint_errors()
                joints_held = error <= 1.0
                converged &= joints_held
            if not converged.all():
                backend.update_multipliers()
                linearized = False
        reached = float(speed.max(initial=0.0))
        if converged.all():
            progress.tolerance = max(progress.tolerance, reached)
            return
        if stiffness.after_iteration(backend, alpha, ~converged):
            linearized = False
    if not joints_held.all():
        raise StepFailure(
            "joints",
            f"exact joints stay {error.max():.3g} times above their tolerance after {settings.max_newton} steps",
        )
    raise StepFailure(
        "not_converged",
        f"{settings.max_newton} Newton iterations left a vertex speed of {reached:.3g} m/s (tolerance {tolerance:.3g})",
    )


def solve_step(backend, settings, h: float, stiffness, progress: Progress, linearized: bool = False) -> None:
    """One step from the started iterate: minimise, and repeat the lagging of friction as the settings say."""
    minimise(backend, settings, h, stiffness, progress, linearized)
    if not backend.friction.enabled:
        return
    wanted = settings.friction_iterations
    for _ in range((wanted if wanted > 0 else BALANCED_LAGGINGS) - 1):
        backend.lag_friction()
        before = progress.newton
        minimise(backend, settings, h, stiffness, progress)
        if wanted < 0 and progress.newton == before + 1:
            return
    if wanted < 0:
        raise StepFailure(
            "not_converged", f"friction and contact forces did not balance within {BALANCED_LAGGINGS} laggings"
        )
