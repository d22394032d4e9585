"""Newton's method on the incremental potential, one step of the integrator.

    repeat  an iteration: gradient and Hessian, a direction, as far along it as nothing collides and the energy decreases
            stiffen the contacts that a tight gap overcomes
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, and exact joints are closed

Every iterate is free of intersections. What an iteration is, backends say: `abd.backends.reference.iteration` by the
definitions, `abd.backends.recorded.iteration` for a device.
"""

from __future__ import annotations

from collections.abc import Callable

from abd.backends.progress import Progress, not_converged
from abd.backends.protocol import Backend
from abd.step.balance import balance
from abd.step.lagging import changed, least_change


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
        stiffness: adapts the contact stiffness between iterations (`abd.step.stiffness`).
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
        balance(
            backend, settings, progress,
            lambda part, loosely: minimise(backend, settings, h, stiffness, part, loosely, watch),
        )  # fmt: skip
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
