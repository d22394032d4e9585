"""Newton's method on the incremental potential, one substep of the integrator.

    repeat  an iteration: gradient and Hessian, a direction, a line search without collisions along it
            stiffen contacts with a small gap
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, exact joints are closed, and
            forces on bodies in frictional contact balance (`abd.step.friction_lag`)

Every iterate is free of intersections. Backends define an iteration: `abd.backends.reference.iteration` by the definitions,
`abd.backends.recorded.iteration` for a device. Failures are returned (`abd.step.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abd.backends.answers import UnprovenPaths
from abd.backends.progress import Progress, not_converged
from abd.backends.protocol import Backend
from abd.errors import StepFailure
from abd.potentials.integrators import longest
from abd.step.articulations import Articulations
from abd.step.balance import balance
from abd.step.friction_lag import balanced, changed, loose_tolerance
from abd.step.iterate_path import IteratePath
from abd.step.joint_rows import JointRows
from abd.step.verdict import ContactBegan, is_checked


@dataclass
class Minimisation:
    """One substep of h [s], of all or (n,), from the started iterate.

    Attributes:
        stiffness: adapts the contact stiffness between iterations (`abd.step.contact_parameters`).
        smooth: (n,) bool, bodies of a smooth scheme, which must not come into contact; excluded: inactive bodies.
        loaded: (n,) bool, bodies whose island was lagged twice: first in the substep before, then in this one.
        fast_contact, path: verdicts on new contacts, and on pairs whose swept path is not proven free.
        iterates: stores the iterates of a scene in contact.
    """

    backend: Backend
    settings: object
    h: float | np.ndarray
    stiffness: object
    rows: JointRows
    articulations: Articulations
    progress: Progress
    smooth: np.ndarray
    excluded: np.ndarray
    loaded: np.ndarray
    fast_contact: Callable[[], StepFailure | None]
    path: Callable[[UnprovenPaths], StepFailure | None]
    iterates: IteratePath

    def solve(self) -> StepFailure | None:
        """Minimise, and lag friction again as often as the settings require.

        With a single lagging, only islands whose contacts were made or loaded in the substep are lagged again."""
        backend, settings = self.backend, self.settings
        loaded, self.loaded = self.loaded, np.zeros(len(self.loaded), dtype=bool)
        laggings, friction_tolerance = settings.friction_iterations, settings.friction_tolerance
        if backend.friction.enabled and laggings < 0:
            return balance(
                backend, settings, self.progress,
                lambda part, tolerance: self.minimise(tolerance, progress=part),
            )  # fmt: skip
        if backend.friction.enabled and laggings == 1:
            return self._lag_once_more(loaded)
        failure = self.minimise(settings.tolerance, friction_tolerance)
        if not backend.friction.enabled:
            return failure
        for _ in range(laggings - 1):
            if failure is not None:
                return failure
            backend.touch.lag_friction()
            failure = self.minimise(friction_tolerance)
        return failure

    def minimise(
        self, tolerance: float, friction_tolerance: float | None = None, moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, progress: Progress | None = None,
    ) -> StepFailure | None:  # fmt: skip
        """Iterate to the minimum of the incremental potential with friction as lagged.

        Args:
            tolerance: largest velocity of a full step [m/s]; friction_tolerance: that of islands with friction, by default equal.
            moving: (n,) bool, bodies whose islands are minimised, by default all; the others have converged.
            loose: a tolerance that suffices for an island [m/s], scalar or (n,) (`abd.backends.protocol.Iteration.begin`).
        """
        backend, settings, h = self.backend, self.settings, self.h
        progress = self.progress if progress is None else progress
        iteration = backend.iteration
        friction_tolerance = tolerance if friction_tolerance is None else friction_tolerance
        # the force balance matters only for the final tolerance
        bound = balanced(settings, h) if backend.friction.enabled and friction_tolerance <= settings.friction_tolerance else 0.0
        if not iteration.begin(tolerance, friction_tolerance, h, settings.linear_tolerance, moving, loose, bound):
            return None
        for iterations in range(1, settings.max_newton + 1):
            status = iteration.run(progress)
            if backend.touch.near:
                self.iterates.add(backend.states.read_positions())
            if not status.moving:
                return None
            progress.report_long(longest(h), lambda: float(iteration.speeds().max(initial=0.0)), tolerance)
            if (failure := self._check(iterations)) is not None:
                return failure
            if (stiffened := self.stiffness.adapt(backend, status.gap, status.least)) is not None:
                iteration.wake(stiffened)
        return not_converged(backend, settings.max_newton, status.open, iteration.speeds(), tolerance)

    def contact_began(self) -> ContactBegan | None:
        """Return the verdict on bodies of a smooth scheme in whose island contacts, limits or ropes act at the iterate."""
        if not self.smooth.any():
            return None
        constrained = (self.backend.touch.touching() != 0) | self.backend.rows.limited()
        if not constrained.any():
            return None
        began = self.smooth & self.articulations.containing(islands_of(self.backend, np.flatnonzero(constrained)))
        return ContactBegan(began) if began.any() else None

    def _check(self, iterations: int) -> StepFailure | None:
        """Return the verdict on an iterate that is not the last one."""
        if (failure := self.rows.turned(self.excluded) or self.fast_contact() or self.contact_began()) is not None:
            return failure
        return self.path(self.backend.iteration.unproven(self.h)) if is_checked(iterations) else None

    def _lag_once_more(self, loaded: np.ndarray) -> StepFailure | None:
        """Minimise until changed friction loads are known, lag friction again in their islands, and finish the minimisation."""
        backend, settings, progress = self.backend, self.settings, self.progress
        friction_tolerance, tolerance, before = settings.friction_tolerance, settings.tolerance, progress.tolerance
        failure = self.minimise(tolerance, friction_tolerance, loose=loose_tolerance(settings, self.h))
        if failure is not None:
            return failure
        frozen, current = backend.touch.friction_loads()
        pairs = changed(frozen, current, backend.steps.mobility(), settings, self.h, loaded)
        chosen, reached = islands_of(backend, pairs.ravel()), _reached(backend)
        frictional = islands_of(backend, np.concatenate([frozen.pairs.ravel(), backend.system.friction_bodies]))
        if (early := chosen & ~frictional).any() and (failure := self.minimise(friction_tolerance, moving=early)) is not None:
            return failure
        remaining = chosen | (reached > np.where(frictional, friction_tolerance, tolerance))
        progress.tolerance = max(before, float(reached[~remaining].max(initial=0.0)))
        self.loaded = chosen
        if chosen.any():
            backend.touch.lag_friction(chosen)
        return self.minimise(tolerance, friction_tolerance, moving=remaining) if remaining.any() else None


def _reached(backend: Backend) -> np.ndarray:
    """Return (n,) vertex speeds [m/s] with which the islands of mobile bodies have converged, 0 for other bodies."""
    return np.where(backend.inactive.mobile, backend.iteration.reached()[backend.islands.host], 0.0)


def islands_of(backend: Backend, bodies: np.ndarray) -> np.ndarray:
    """Return (n,) bool, all mobile bodies of the islands of some bodies (k,)."""
    islands, mobile, bodies = backend.islands.host, backend.inactive.mobile, bodies.astype(int)
    chosen = np.zeros(backend.islands.count, dtype=bool)
    chosen[islands[bodies[mobile[bodies]]]] = True
    return chosen[islands] & mobile
