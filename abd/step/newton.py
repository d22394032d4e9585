"""Newton's method on the incremental potential, one step of the integrator.

    repeat  an iteration: gradient and Hessian, a direction, as far along it as nothing collides and the energy decreases
            stiffen the contacts that a tight gap overcomes
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, and exact joints are closed

Every iterate is free of intersections. What an iteration is, backends say: `abd.backends.reference.iteration` by the
definitions, `abd.backends.recorded.iteration` for a device.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from abd.backends.progress import Progress, not_converged
from abd.backends.protocol import Backend
from abd.errors import StepFailure
from abd.step.lagging import changed, least_change

BALANCED_LAGGINGS = 30
"""Laggings to the tolerance after which ``friction_iterations = -1`` gives up as not converged."""

BALANCING = 100
"""Newton iterations to the tolerance among which they have to balance, or `max_newton` if that is more."""
LOOSE, TIGHTER = 1000.0, 0.5
"""Tolerance of the first of these minimisations, over the one that holds; and of each one that follows, over the speed that
the one before has reached."""


def minimise(
    backend: Backend,
    settings,
    h: float,
    stiffness,
    progress: Progress,
    tolerance: float,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Iterate to the minimum of the incremental potential with friction as lagged.

    Args:
        backend: holds the iterate.
        h: actual step [s].
        stiffness: adapts the contact stiffness between iterations (`abd.step.own_laws.stiffness`).
        tolerance: largest velocity of a full step [m/s].
        watch: called after every iterate from which another one follows, with how many there were; what it raises ends
            the minimisation.

    Raises:
        StepFailure: not converged within the limit, or no decrease along the direction.
    """
    iteration = backend.iteration
    if not iteration.begin(tolerance, h, settings.linear_tolerance):
        return
    for iterates in range(1, settings.max_newton + 1):
        status = iteration.run(progress)
        if not status.moving:
            return
        if watch is not None:
            watch(iterates)
        if stiffness.adapt(backend, status.gap, status.least):
            iteration.restiffen()
    raise not_converged(backend, settings.max_newton, status.open, iteration.speeds(h), tolerance)


def solve_step(
    backend: Backend,
    settings,
    h: float,
    stiffness,
    progress: Progress,
    loaded: bool = False,
    watch: Callable[[int], None] | None = None,
) -> bool:
    """One step from the started iterate: minimise, and repeat the lagging of friction as the settings say; with a single
    one, once more where contacts were made or loaded in the step (`abd.step.lagging`).

    Args:
        loaded: whether the step before was lagged once more; watch: as `minimise` has it.

    Returns:
        whether this one was.
    """
    wanted, rubs = settings.friction_iterations, settings.friction_tolerance
    if backend.friction.enabled and wanted < 0:
        _balance(backend, settings, h, stiffness, progress, watch)
        return False
    tolerance = rubs if backend.friction.count or backend.system.has_friction else settings.tolerance
    minimise(backend, settings, h, stiffness, progress, tolerance, watch)
    if not backend.friction.enabled:
        return False
    if wanted == 1:
        least = least_change(settings, h, loaded)
        loaded = changed(*backend.touch.friction_loads(), backend.steps.mobility(), *least)
        if loaded:
            if rubs < tolerance:
                minimise(backend, settings, h, stiffness, progress, rubs, watch)
            backend.touch.lag_friction()
            minimise(backend, settings, h, stiffness, progress, rubs, watch)
        return loaded
    for _ in range(wanted - 1):
        backend.touch.lag_friction()
        minimise(backend, settings, h, stiffness, progress, rubs, watch)
    return False


def _balance(
    backend: Backend, settings, h: float, stiffness, progress: Progress, watch: Callable[[int], None] | None
) -> None:
    """Minimise and lag friction until a lagging leaves a state that is converged as it is. What is found before is only
    where friction is lagged next, and needs not be more exact than the lagging is.

    Raises:
        StepFailure: as `minimise`, or friction and contact forces go on changing.
    """
    rubs = settings.friction_tolerance
    tolerance, exact, spent = LOOSE * rubs, 0, 0
    for lagging in count():
        if lagging:
            backend.touch.lag_friction()
        part = Progress(stages=progress.stages)
        try:
            minimise(backend, settings, h, stiffness, part, tolerance, watch)
        finally:
            progress.newton, progress.linear = progress.newton + part.newton, progress.linear + part.linear
            progress.trials += part.trials
        if lagging and part.newton <= 1 and part.tolerance <= rubs:
            progress.tolerance = max(progress.tolerance, part.tolerance)
            return
        if tolerance == rubs:
            exact, spent = exact + 1, spent + part.newton
        if exact == BALANCED_LAGGINGS or spent > max(BALANCING, settings.max_newton):
            message = f"friction and contact forces did not balance in {exact} laggings, {spent} iterations, to the tolerance"
            raise StepFailure("not_converged", message)
        tolerance = max(rubs, TIGHTER * part.tolerance)
