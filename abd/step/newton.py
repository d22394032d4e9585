"""Newton's method on the incremental potential, one step of the integrator.

    repeat  an iteration: gradient and Hessian, a direction, as far along it as nothing collides and the energy decreases
            stiffen the contacts that a tight gap overcomes
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, and exact joints are closed

Every iterate is free of intersections. What an iteration is, backends say: `abd.backends.reference.iteration` by the
definitions, `abd.backends.recorded.iteration` for a device.
"""

from __future__ import annotations

from collections.abc import Callable

from abd.errors import StepFailure
from abd.step.lagging import changed, least_change
from abd.step.progress import Progress, not_converged

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
    iteration = backend.iteration
    if not iteration.begin(tolerance, h, settings.linear_tolerance):
        return
    for _ in range(settings.max_newton):
        status = iteration.run(progress)
        if not status.moving:
            return
        if watch is not None:
            watch()
        if stiffness.adapt(backend, status.gap, status.least):
            iteration.restiffen()
    raise not_converged(backend, settings.max_newton, status.open, iteration.speeds(h), tolerance)


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
