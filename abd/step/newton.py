"""Projected Newton on the incremental potential, one step of the integrator.

    repeat  g, H = gradient and projected Hessian at q, cautious where the last model was too soft
            H d = -g
            alpha = largest collision-free, strain-limited fraction of the arc along d
            halve alpha until E decreases
            lambda += K C for the exact joint rows C
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, and |C| within its own

Every iterate is free of intersections. All bodies of an island share alpha and the convergence test; islands that have
converged, or sleep, stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.errors import StepFailure
from abd.step.caution import Caution
from abd.step.forcing import Forcing
from abd.step.lagging import changed, least_change
from abd.step.line_search import search
from abd.step.progress import Progress, not_converged
from abd.step.resident import minimise_resident

BALANCED_LAGGINGS = 30
"""Laggings after which ``friction_iterations = -1`` gives up as not converged."""


def minimise(
    backend,
    settings,
    h: float,
    stiffness,
    progress: Progress,
    tolerance: float,
    watch: Callable[[], None] | None = None,
) -> None:
    """Iterate to the minimum of the incremental potential with friction as lagged.

    Args:
        backend: holds the iterate.
        h: actual step [s].
        stiffness: adapts the contact stiffness between iterations (`abd.step.stiffness`).
        tolerance: largest velocity of a full step [m/s].
        watch: called with every iterate from which another one follows; what it raises ends the minimisation.

    Raises:
        StepFailure: not converged within the limit, or no decrease along the direction.
    """
    exact, rubbing = backend.system.has_exact, backend.system.has_friction
    if backend.iteration is not None:
        minimise_resident(backend, settings, h, tolerance, stiffness, progress, watch)
        return
    islands = backend.islands
    forcing, caution = Forcing(settings.linear_tolerance), Caution(islands.count)
    converged = backend.asleep()
    if converged.all():
        return
    # once with all bodies: those that sleep keep blocks that can be factorised
    _form_model(backend, caution, progress)
    linearized = True
    for _ in range(settings.max_newton):
        backend.settle(converged)
        if not linearized:
            _form_model(backend, caution, progress)
        progress.newton += 1
        moved = _direction(backend, caution, forcing, ~converged, tolerance, h, progress)
        if not np.isfinite(moved[~converged]).all():
            raise StepFailure("not_finite", "the Newton direction is not finite")
        settled = backend.effort_changes() <= 1.0 if rubbing else np.ones(islands.count, dtype=bool)
        closing = ~converged & (moved <= tolerance * h)
        if exact and closing.any():
            with progress.time("linear solve"):
                moved = backend.close_joints(closing)
        # exact rows are closed by the direction as it is, and so is what is near
        caution.stretch[exact | converged | (moved <= tolerance * h)] = 1.0
        if (caution.stretch > 1.0).any():
            backend.stretch_direction(caution.stretch)
        with progress.time("collision"):
            before = islands.host
            free = backend.follow_direction()
            if islands.host is not before:
                some = islands.carry(before, converged, np.logical_or)
                converged = islands.carry(before, converged, np.logical_and)
                # bodies at rest that a moving island has reached stood still in this direction
                settled = islands.carry(before, settled, np.logical_and) & (converged | ~some)
                moved = islands.carry(before, moved, np.maximum)
                caution.share = islands.carry(before, caution.share, np.maximum)
                caution.stretch = islands.carry(before, caution.stretch, np.minimum)
            backend.settle(converged)
        speed = np.where(converged, 0.0, moved / h)
        small = (speed <= tolerance) & settled
        with progress.time("line search"):
            slope = backend.descent()
            alpha, change, trials, linearized = search(backend, free, small, slope)
        caution.advance(change, slope, alpha, free)
        progress.trials += trials
        # where energies differ only by rounding the search may shorten a step that is within the tolerance already
        near = ~converged & small & (free == 1.0)
        reached = near & caution.decides
        if exact:
            error = backend.joint_errors() if near.any() else np.full(islands.count, np.inf)
            reached &= error <= 1.0
        moving = ~converged & ~reached
        progress.tolerance = max(progress.tolerance, float(speed[reached].max(initial=0.0)))
        converged |= reached
        if not moving.any():
            backend.settle(np.zeros(islands.count, dtype=bool))
            return
        if exact:
            backend.settle(converged)
            backend.update_multipliers()
            linearized = False
        if watch is not None:
            watch()
        if stiffness.after_iteration(backend, alpha, moving):
            converged &= ~islands.paired
            linearized = False
    still_open = error[near & moving].max(initial=0.0) if exact else 0.0
    raise not_converged(backend, settings.max_newton, still_open, np.where(moving, speed, -1.0), tolerance)


def _form_model(backend, caution: Caution, progress: Progress) -> None:
    """Gradient and blocks at the iterate, with as much caution as was learnt."""
    backend.set_caution(caution.share)
    caution.formed = caution.share
    with progress.time("assembly"):
        backend.linearize()


def _direction(
    backend, caution: Caution, forcing: Forcing, moving: np.ndarray, tolerance: float, h: float, progress: Progress
) -> np.ndarray:
    """As `_solve`; a model that is not convex is formed again with all the caution there is."""
    try:
        with progress.time("linear solve"):
            return _solve(backend, forcing, moving, tolerance, h, progress)
    except StepFailure as failure:
        if failure.reason != "not_positive_definite" or (caution.formed == 1.0).all():
            raise
    caution.share = np.ones_like(caution.share)
    _form_model(backend, caution, progress)
    with progress.time("linear solve"):
        return _solve(backend, forcing, moving, tolerance, h, progress)


def _solve(backend, forcing: Forcing, moving: np.ndarray, tolerance: float, h: float, progress: Progress) -> np.ndarray:
    """A direction as exact as the progress asks for, and as can be where one of a `moving` island seems to end it; the
    largest displacements (islands,) of the full step [m]."""
    moved, iterations = backend.solve(forcing.tolerance)
    if iterations and not forcing.decides((moving & (moved <= tolerance * h)).any()):
        moved, more = backend.tighten()
        iterations += more
    forcing.advance(float(np.where(moving, moved, 0.0).max(initial=0.0)) / h)
    progress.linear += iterations
    return moved


def solve_step(
    backend,
    settings,
    h: float,
    stiffness,
    progress: Progress,
    loaded: bool = False,
    watch: Callable[[], None] | None = None,
) -> bool:
    """One step from the started iterate: minimise, and repeat the lagging of friction as the settings say; with a single
    one, once more where contacts were made or loaded in the step (`abd.step.lagging`).

    Args:
        loaded: whether the step before was lagged once more; watch: as `minimise` has it.

    Returns:
        whether this one was.
    """
    rubs = settings.friction_tolerance
    tolerance = rubs if backend.friction.count or backend.system.has_friction else settings.tolerance
    minimise(backend, settings, h, stiffness, progress, tolerance, watch)
    if not backend.friction.enabled:
        return False
    wanted = settings.friction_iterations
    if wanted == 1:
        least = least_change(settings, h, loaded)
        loaded = changed(*backend.friction_loads(), backend.mobility(), *least)
        if loaded:
            if rubs < tolerance:
                minimise(backend, settings, h, stiffness, progress, rubs, watch)
            backend.lag_friction()
            minimise(backend, settings, h, stiffness, progress, rubs, watch)
        return loaded
    for _ in range((wanted if wanted > 0 else BALANCED_LAGGINGS) - 1):
        backend.lag_friction()
        before = progress.newton
        minimise(backend, settings, h, stiffness, progress, rubs, watch)
        if wanted < 0 and progress.newton <= before + 1:
            return False
    if wanted < 0:
        raise StepFailure(
            "not_converged", f"friction and contact forces did not balance within {BALANCED_LAGGINGS} laggings"
        )
    return False
