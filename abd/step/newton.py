"""Newton's method on the incremental potential, one substep of the integrator.

    repeat  an iteration (`abd.backends.recorded.iteration`), without collisions along its path
    until   the largest vertex displacement of a full step, over h, is at most the tolerance, exact joints are closed, and
            forces on bodies in contact balance (`abd.step.friction_lag`)
"""

from __future__ import annotations

import numpy as np

from abd.backends.progress import Progress, not_converged
from abd.errors import StepFailure
from abd.potentials.integrators import longest
from abd.step.friction_lag import balance, changed, loose_tolerance, residual_bound
from abd.step.verdict import IteratePath, is_checked, islands_of, of_iterate, of_path


class Minimisation:
    """Minimisation of one substep of h [s], scalar or (n,), from the started iterate.

    Args:
        iterates: path through the iterates; smooth: (n,) bool, bodies of a smooth scheme, which must not come into contact.

    Attributes:
        lagged_again: whether one of a given number of laggings was at an iterate, so that its loads are not those of the end.
    """

    def __init__(self, stepper, h: float | np.ndarray, iterates: IteratePath, smooth: np.ndarray, progress: Progress):
        self.stepper, self.backend, self.settings = stepper, stepper.backend, stepper.settings
        self.h, self.iterates, self.smooth, self.progress, self.lagged_again = h, iterates, smooth, progress, False

    def solve(self) -> StepFailure | None:
        """Minimise, and lag friction again as often as the settings require.

        With a single lagging, only islands whose contacts were made or loaded in the substep are lagged again."""
        backend, settings = self.backend, self.settings
        laggings = settings.friction_iterations if backend.friction.enabled else 0
        if laggings < 0:
            return balance(backend, settings, self.progress, lambda part, tolerance: self.minimise(tolerance, progress=part))
        if laggings == 1:
            return self._lag_once_more()
        failure = self.minimise(settings.tolerance, settings.friction_tolerance)
        for _ in range(laggings - 1):
            if failure is None:
                self.lagged_again = True
                backend.touch.lag_friction()
                failure = self.minimise(settings.friction_tolerance)
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
        bound = residual_bound(settings, h) if backend.touch.near and friction_tolerance <= settings.friction_tolerance else 0.0
        if not iteration.begin(tolerance, friction_tolerance, h, settings.linear_tolerance, moving, loose, bound):
            return None
        for iterations in range(1, settings.max_newton + 1):
            status = iteration.run(progress)
            if backend.touch.may_collide:
                self.iterates.add(backend.states.copy_positions())
            if not status.moving:
                return None
            progress.report_long(longest(h), lambda: float(iteration.speeds().max(initial=0.0)), tolerance)
            failure = of_iterate(self.stepper, h, self.smooth)
            if failure is None and is_checked(iterations):
                failure, _ = of_path(self.stepper, self.iterates, iteration.unproven(h), h)
            if failure is not None:
                return failure
        return not_converged(backend, settings.max_newton, status.open, iteration.speeds(), iteration.tolerances())

    def _lag_once_more(self) -> StepFailure | None:
        """Minimise until changed friction loads are known, lag friction again in their islands, and finish the minimisation."""
        backend, settings, progress, iteration = self.backend, self.settings, self.progress, self.backend.iteration
        friction_tolerance, tolerance, before = settings.friction_tolerance, settings.tolerance, progress.tolerance
        failure = self.minimise(tolerance, friction_tolerance, loose=loose_tolerance(settings, self.h))
        if failure is not None:
            return failure
        frozen, current = backend.touch.friction_loads()
        pairs = changed(frozen, current, backend.steps.mobility(), settings, self.h)
        # impacts include the friction of all contacts of connected bodies
        in_impact = self.stepper.rebounds.ahead(self.h) if len(pairs) else np.zeros(backend.n, dtype=bool)
        pairs = pairs[~in_impact[pairs].any(axis=1)]
        chosen = islands_of(backend, pairs.ravel())
        reached, needed = (of_islands[backend.islands.host] for of_islands in (iteration.reached(), iteration.tolerances()))
        reached = np.where(backend.inactive.mobile, reached, 0.0)  # [m/s]
        early = chosen & (needed > friction_tolerance)  # no friction so far, so that their loads are not precise enough
        if early.any() and (failure := self.minimise(friction_tolerance, moving=early)) is not None:
            return failure
        remaining = chosen | (reached > needed)
        progress.tolerance = max(before, float(reached[~remaining].max(initial=0.0)))
        if chosen.any():
            self.lagged_again = True
            backend.touch.lag_friction(chosen & ~in_impact)
        return self.minimise(tolerance, friction_tolerance, moving=remaining) if remaining.any() else None
