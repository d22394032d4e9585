"""A Newton iteration by the definitions; `abd.backends.recorded.iteration` is its device version.

    g, H = gradient and projected Hessian at q, regularised where the last model was too soft
    H d = -g
    alpha = largest collision-free, strain-limited fraction of the arc along d
    halve alpha until E decreases
    lambda += K C for the exact joint rows C

All bodies of an island share alpha and the convergence test. Converged and sleeping islands do not move.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import Status, UnprovenPaths
from abd.backends.progress import Progress
from abd.backends.reference.forcing import Forcing
from abd.backends.reference.line_search import search
from abd.backends.reference.regularisation import Regularisation
from abd.errors import StepFailure
from cuda_kernels.shared.step import BOUND_GROWTH, ROUNDING_SPEED


class Iteration:
    """Newton iterations of one `NumpyBackend`.

    Attributes, all (islands,): converged; tolerance of Newton's method [m/s]; speed: of the last full step [m/s], 0 if converged;
    at_end: speed at convergence [m/s]; limit: last safe step.
    """

    def __init__(self, backend):
        self.backend = backend

    def begin(
        self, tolerance: float, friction_tolerance: float, h: float | np.ndarray, tightest: float,
        moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, balanced: float | np.ndarray = 0.0, touching: bool = False,
    ) -> bool:  # fmt: skip
        b = self.backend
        self.lengths, self.limit, self.loose = np.full(b.n, h), np.ones(b.islands.count), np.zeros(b.islands.count)
        self.tolerance = np.full(b.islands.count, tolerance)
        frictional = b.system.friction_bodies
        frictional = np.concatenate([b.friction.owners, frictional[b.inactive.mobile[frictional]]])
        self.tolerance[b.islands.host[frictional]] = friction_tolerance
        owners, near = b.friction.owners, b.contacts.owners
        self.loose[b.islands.host[owners]] = np.full(b.n, loose)[owners]
        self.balanced = np.full(b.islands.count, np.inf)
        if np.any(balanced):
            self.balanced[b.islands.host[near]] = np.full(b.n, balanced)[near]
        self.forcing, self.regularisation = Forcing(tightest), Regularisation(b.islands.count)
        self.converged = b.inactive.asleep(moving)
        self.speed, self.at_end = np.zeros(b.islands.count), np.zeros(b.islands.count)
        self._linearized, self._started = False, False
        return not self.converged.all()

    @property
    def h(self) -> np.ndarray:
        """(islands,) length of the step [s]."""
        out = np.zeros(self.backend.islands.count)
        np.maximum.at(out, self.backend.islands.host, np.where(self.backend.inactive.mobile, self.lengths, 0.0))
        return np.where(out > 0.0, out, self.lengths.max(initial=0.0))

    def run(self, progress: Progress) -> Status:
        b, regularisation, trials, linear = self.backend, self.regularisation, progress.trials, progress.linear
        exact = b.system.has_exact
        if not self._started:
            # one model of all bodies: sleeping bodies need blocks that can be factorised
            self._form_model(progress)
            self._started = True
        b.inactive.mark_done(self.converged)
        if not self._linearized:
            self._form_model(progress)
        progress.newton += 1
        moved, settled = self._choose_direction(progress)
        with progress.time("collision"):
            limit, moved, settled = self._follow_direction(moved, settled)
        speed = self.speed = np.where(self.converged, 0.0, moved / self.h)
        residual = self._residual()
        small = self._within(speed, residual) & settled
        with progress.time("line search"):
            slope = b.linear.descent()
            alpha, change, tried = search(b, limit, small, slope)
        self.limit, self._linearized = limit, False
        regularisation.advance(change, slope, alpha, limit)
        progress.trials += tried
        # rounding of energies may shorten the search of a step within the tolerance
        in_tolerance = ~self.converged & small & (limit == 1.0)
        reached = in_tolerance & self._within(speed * regularisation.distance_ratio, residual)
        still_open = 0.0
        if exact:
            error = b.rows.errors() if in_tolerance.any() else np.full(b.islands.count, np.inf)
            reached &= error <= 1.0
            still_open = float(error[in_tolerance & ~reached].max(initial=0.0))
        moving = ~self.converged & ~reached
        self.balanced[moving & (speed <= self.tolerance)] *= BOUND_GROWTH
        worst = float(speed[reached].max(initial=0.0))
        progress.tolerance = max(progress.tolerance, worst)
        self.converged, self.at_end = self.converged | reached, np.where(reached, speed, self.at_end)
        gap = least = np.inf
        if not moving.any():
            b.inactive.mark_done(np.zeros(b.islands.count, dtype=bool))
        else:
            if exact:
                b.inactive.mark_done(self.converged)
                b.rows.update_multipliers(b.linear.direction, b.inactive.done)
            gap, least = float(b.touch.island_gaps()[moving].min()), float(limit[moving].min())
        return Status(
            failure=0, covered=True, motion=0.0, moving=bool(moving.any()), worst=worst, gap=gap, least=least,
            open=still_open, trials=progress.trials - trials, linear=progress.linear - linear,
        )  # fmt: skip

    def _within(self, speed: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Return (islands,) whether directions of these vertex speeds and residuals [m/s] end a minimisation."""
        balanced = (residual <= self.balanced) | (speed <= ROUNDING_SPEED * self.tolerance)
        return ((speed <= self.tolerance) & balanced) | (np.maximum(speed, residual) <= self.loose)

    def _residual(self) -> np.ndarray:
        """Return (islands,) largest residual forces on a body as changes of velocity [m/s]."""
        b, out = self.backend, np.zeros(self.backend.islands.count)
        unbalanced = np.linalg.norm(b.potential.gradient[:, :3], axis=1) / (b.constants.weight * self.lengths)
        np.maximum.at(out, b.islands.host, unbalanced)
        return out

    def speeds(self) -> np.ndarray:
        return np.where(self.converged, -1.0, self.speed)

    def reached(self) -> np.ndarray:
        return self.at_end

    def unproven(self, h: float | np.ndarray) -> UnprovenPaths:
        return self.backend.swept_paths.unproven(h, self.converged)

    def wake(self, islands: np.ndarray) -> None:
        self.converged = self.converged & ~islands
        self._linearized = False

    def smallest_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest gap [activations] and the last safe step of every island; infinite and 1 if converged."""
        moving = ~self.converged
        return np.where(moving, self.backend.touch.island_gaps(), np.inf), np.where(moving, self.limit, 1.0)

    def _form_model(self, progress: Progress) -> None:
        """Compute gradient and blocks at the iterate with the present regularisation."""
        regularisation = self.regularisation
        self.backend.potential.set_regularisation(regularisation.weight)
        regularisation.current_weight = regularisation.weight
        with progress.time("assembly"):
            self.backend.linear.linearize()
        self._linearized = True

    def _choose_direction(self, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest displacements (islands,) of the full step [m], and whether efforts (islands,) are settled."""
        b, regularisation, in_tolerance = self.backend, self.regularisation, self.tolerance * self.h
        moved = self._direction(progress)
        if not np.isfinite(moved[~self.converged]).all():
            raise StepFailure("not_finite", "the Newton direction is not finite")
        edges = b.system.has_uneven_forces
        settled = b.linear.effort_changes(self.converged) <= 1.0 if edges else np.ones(b.islands.count, dtype=bool)
        exact = b.system.has_exact
        if exact:
            with progress.time("linear solve"):
                moved = b.linear.close_joints(~self.converged)
        # no stretching with exact rows, which the direction closes, and near the minimum
        regularisation.stretch[exact | self.converged | (moved <= in_tolerance)] = 1.0
        if (regularisation.stretch > 1.0).any():
            b.linear.stretch(regularisation.stretch)
        return moved, settled

    def _direction(self, progress: Progress) -> np.ndarray:
        """Solve as `_solve`; repeat a model that is not convex with full regularisation."""
        try:
            with progress.time("linear solve"):
                return self._solve(progress)
        except StepFailure as failure:
            if failure.reason != "not_positive_definite":
                raise
            failed = np.unique(self.backend.islands.host[failure.concerned])
            if (self.regularisation.current_weight[failed] == 1.0).all():
                raise
        self.regularisation.weight = self.regularisation.weight.copy()
        self.regularisation.weight[failed] = 1.0
        self._form_model(progress)
        with progress.time("linear solve"):
            return self._solve(progress)

    def _solve(self, progress: Progress) -> np.ndarray:
        """Solve to the forcing tolerance, and to the tightest where a moving island may converge with this direction.

        Returns the largest displacements (islands,) of the full step [m]."""
        b, forcing, moving = self.backend, self.forcing, ~self.converged
        moved, iterations = b.linear.solve(forcing.tolerance)
        if iterations and not forcing.decides((moving & (moved <= self.tolerance * self.h)).any()):
            moved, more = b.linear.tighten()
            iterations += more
        forcing.advance(float(np.where(moving, moved, 0.0).max(initial=0.0)) / float(self.lengths.max(initial=0.0)))
        progress.linear += iterations
        return moved

    def _follow_direction(self, moved: np.ndarray, settled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the largest safe steps along the direction, with `moved` and `settled` of the islands merged on the path."""
        b, regularisation, islands = self.backend, self.regularisation, self.backend.islands
        before = islands.host
        limit = b.arcs.follow_direction(b.linear)
        if islands.host is not before:
            some = islands.carry(before, self.converged, np.logical_or)
            self.converged = islands.carry(before, self.converged, np.logical_and)
            # bodies at rest that a moving island has reached do not move in this direction
            settled = islands.carry(before, settled, np.logical_and) & (self.converged | ~some)
            moved = islands.carry(before, moved, np.maximum)
            regularisation.weight = islands.carry(before, regularisation.weight, np.maximum)
            self.tolerance = islands.carry(before, self.tolerance, np.minimum)
            self.at_end = islands.carry(before, self.at_end, np.maximum)
            self.loose = islands.carry(before, self.loose, np.minimum)
            self.balanced = islands.carry(before, self.balanced, np.minimum)
            regularisation.stretch = islands.carry(before, regularisation.stretch, np.minimum)
        b.inactive.mark_done(self.converged)
        return limit, moved, settled
