"""Newton's method on the incremental potential, one step of the integrator.

    repeat  an iteration: gradient and Hessian, a direction, as far along it as nothing collides and the energy decreases
            stiffen the contacts that a tight gap overcomes
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, exact joints are closed, and
            forces on what rubs balance (`abd.step.lagging.balanced`)

Every iterate is free of intersections. What an iteration is, backends say: `abd.backends.reference.iteration` by the
definitions, `abd.backends.recorded.iteration` for a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.backends.progress import Progress, not_converged
from abd.backends.protocol import Backend
from abd.step.balance import balance
from abd.step.lagging import balanced, changed, loose_tolerance

if TYPE_CHECKING:
    from abd.step.watch import Watch


def minimise(
    backend: Backend,
    settings,
    h: float | np.ndarray,
    stiffness,
    progress: Progress,
    tolerance: float,
    watch: Watch | None = None,
    rubs: float | None = None,
    moving: np.ndarray | None = None,
    loose: float | np.ndarray = 0.0,
) -> None:
    """Iterate to the minimum of the incremental potential with friction as lagged.

    Args:
        backend: holds the iterate.
        h: actual step [s], of all or (n,).
        stiffness: adapts the contact stiffness between iterations (`abd.step.own_laws.stiffness`).
        tolerance: largest velocity of a full step [m/s]; rubs: that of islands in which something rubs, the same without.
        moving: (n,) bool, bodies whose islands take part, all without; the others have converged.
        loose: what is well enough for an island, if less exact [m/s], of all or of bodies (n,)
            (`abd.backends.protocol.Iteration.begin`).
        watch: looks at every iterate; what it raises ends the minimisation.

    Raises:
        StepFailure: not converged within the limit, or no decrease along the direction.
    """
    iteration = backend.iteration
    rubs = tolerance if rubs is None else rubs
    # loose minimisations are repeated anyway
    off = balanced(settings, h) if backend.friction.enabled and rubs <= settings.friction_tolerance else 0.0
    if not iteration.begin(tolerance, rubs, h, settings.linear_tolerance, moving, loose, off):
        return
    for iterates in range(1, settings.max_newton + 1):
        status = iteration.run(progress)
        struck = None if watch is None else watch.strike()
        if struck is not None:
            iteration.rouse(struck)
        elif not status.moving:
            return
        if watch is not None:
            watch.look(iterates)
        # the gaps of those that go on after all are not in the status
        gap = status.gap if struck is None else 0.0
        if (stiffer := stiffness.adapt(backend, gap, status.least)) is not None:
            iteration.rouse(stiffer)
    raise not_converged(backend, settings.max_newton, status.open, iteration.speeds(), tolerance)


def solve_step(
    backend: Backend,
    settings,
    h: float | np.ndarray,
    stiffness,
    progress: Progress,
    loaded: np.ndarray,
    watch: Watch | None = None,
    moving: np.ndarray | None = None,
) -> np.ndarray:
    """One step from the started iterate: minimise, and repeat the lagging of friction as the settings say; with a single
    one, once more in islands where contacts were made or loaded in the step (`abd.step.lagging`).

    Args:
        loaded: (n,) bool, bodies whose island was lagged once more in the step before; watch: as `minimise` has it.
        moving: (n,) bool, all bodies of the islands that take part; all without, and where friction is balanced.

    Returns:
        those whose island was in this one.
    """
    nobody = np.zeros(len(loaded), dtype=bool)
    wanted, rubs = settings.friction_iterations, settings.friction_tolerance
    if backend.friction.enabled and wanted < 0:
        balance(
            backend, settings, progress,
            lambda part, tolerance: minimise(backend, settings, h, stiffness, part, tolerance, watch),
        )  # fmt: skip
        return nobody
    if backend.friction.enabled and wanted == 1:
        return _lag_once_more(backend, settings, h, stiffness, progress, loaded, watch, moving)
    minimise(backend, settings, h, stiffness, progress, settings.tolerance, watch, rubs, moving)
    if not backend.friction.enabled:
        return nobody
    for _ in range(wanted - 1):
        backend.touch.lag_friction(moving)
        minimise(backend, settings, h, stiffness, progress, rubs, watch, moving=moving)
    return nobody


def _lag_once_more(
    backend: Backend, settings, h: float | np.ndarray, stiffness, progress: Progress, loaded: np.ndarray,
    watch: Watch | None, moving: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """Minimise until it is known which loads of friction have changed, lag it again where they have, and minimise to the
    end; returns bodies (n,) bool of islands where it was."""
    rubs, tolerance, before = settings.friction_tolerance, settings.tolerance, progress.tolerance
    minimise(backend, settings, h, stiffness, progress, tolerance, watch, rubs, moving, loose_tolerance(settings, h))
    frozen, acting = backend.touch.friction_loads()
    pairs = changed(frozen, acting, backend.steps.mobility(), settings, h, loaded)
    chosen, reached = islands_of(backend, pairs.ravel()), _reached(backend)
    if moving is not None:
        chosen, reached = chosen & moving, np.where(moving, reached, 0.0)
    rubbing = islands_of(backend, np.concatenate([frozen.pairs.ravel(), backend.system.rubbing_bodies]))
    if (early := chosen & ~rubbing).any():
        minimise(backend, settings, h, stiffness, progress, rubs, watch, moving=early)
    left = chosen | (reached > np.where(rubbing, rubs, tolerance))
    progress.tolerance = max(before, float(reached[~left].max(initial=0.0)))
    if chosen.any():
        backend.touch.lag_friction(chosen)
    if left.any():
        minimise(backend, settings, h, stiffness, progress, tolerance, watch, rubs, left)
    return chosen


def _reached(backend: Backend) -> np.ndarray:
    """(n,) vertex speeds [m/s] with which the islands of all bodies that may move have converged, 0 for others."""
    return np.where(backend.idle.mobile, backend.iteration.reached()[backend.islands.host], 0.0)


def islands_of(backend: Backend, bodies: np.ndarray) -> np.ndarray:
    """(n,) bool, all bodies that may move of the islands of some (k,), leaving those aside that may not."""
    islands, mobile, bodies = backend.islands.host, backend.idle.mobile, bodies.astype(int)
    chosen = np.zeros(backend.islands.count, dtype=bool)
    chosen[islands[bodies[mobile[bodies]]]] = True
    return chosen[islands] & mobile
