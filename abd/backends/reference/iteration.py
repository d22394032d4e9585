"""A Newton iteration by the definitions: what the recorded one (`abd.backends.recorded.iteration`) does on a device.

    g, H = gradient and projected Hessian at q, cautious where the last model was too soft
    H d = -g
    alpha = largest collision-free, strain-limited fraction of the arc along d
    halve alpha until E decreases
    lambda += K C for the exact joint rows C

All bodies of an island share alpha and the convergence test; islands that have converged, or sleep, stand still.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import RELENT, UNSEEN, Status, UnprovenPaths
from abd.backends.progress import Progress
from abd.backends.reference.forcing import Forcing
from abd.backends.reference.line_search import search
from abd.backends.reference.regularisation import Regularisation
from abd.errors import StepFailure


class Iteration:
    """Newton iterations of one `NumpyBackend`.

    Attributes, all (islands,): converged; tolerance of Newton's method [m/s]; speed [m/s] that the last full step would have
    given, 0 where converged; at_end: the one with which an island converged [m/s]; free: the last safe step.
    """

    def __init__(self, backend):
        self.backend = backend

    def begin(
        self, tolerance: float, friction_tolerance: float, h: float | np.ndarray, tightest: float,
        moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, balanced: float | np.ndarray = 0.0,
    ) -> bool:  # fmt: skip
        b = self.backend
        self.lengths, self.free, self.loose = np.full(b.n, h), np.ones(b.islands.count), np.zeros(b.islands.count)
        self.tolerance = np.full(b.islands.count, tolerance)
        frictional = b.system.friction_bodies
        frictional = np.concatenate([b.friction.owners, frictional[b.inactive.mobile[frictional]]])
        self.tolerance[b.islands.host[frictional]] = friction_tolerance
        self.balanced, owners = np.full(b.islands.count, np.inf), b.friction.owners
        self.loose[b.islands.host[owners]] = np.full(b.n, loose)[owners]
        if np.any(balanced):
            bounded = owners if tolerance != friction_tolerance else np.flatnonzero(b.inactive.mobile)
            self.balanced[b.islands.host[bounded]] = np.full(b.n, balanced)[bounded]
        self.forcing, self.regularisation = Forcing(tightest), Regularisation(b.islands.count)
        self.converged = b.inactive.asleep(moving)
        self.speed, self.at_end = np.zeros(b.islands.count), np.zeros(b.islands.count)
        self._linearized, self._begun = False, False
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
        if not self._begun:
            # once with all bodies: those that sleep keep blocks that can be factorised
            self._form_model(progress)
            self._begun = True
        b.inactive.settle(self.converged)
        if not self._linearized:
            self._form_model(progress)
        progress.newton += 1
        moved, settled = self._choose_direction(progress)
        with progress.time("collision"):
            free, moved, settled = self._follow(moved, settled)
        speed = self.speed = np.where(self.converged, 0.0, moved / self.h)
        residual = self._residual()
        small = self._within(speed, residual) & settled
        with progress.time("line search"):
            slope = b.linear.descent()
            alpha, change, tried = search(b, free, small, slope)
        self.free, self._linearized = free, False
        regularisation.advance(change, slope, alpha, free)
        progress.trials += tried
        # where energies differ only by rounding the search may shorten a step that is within the tolerance already
        near = ~self.converged & small & (free == 1.0)
        reached = near & self._within(speed * regularisation.farther, residual)
        still_open = 0.0
        if exact:
            error = b.rows.errors() if near.any() else np.full(b.islands.count, np.inf)
            reached &= error <= 1.0
            still_open = float(error[near & ~reached].max(initial=0.0))
        moving = ~self.converged & ~reached
        self.balanced[moving & (speed <= self.tolerance)] *= RELENT
        worst = float(speed[reached].max(initial=0.0))
        progress.tolerance = max(progress.tolerance, worst)
        self.converged, self.at_end = self.converged | reached, np.where(reached, speed, self.at_end)
        gap = least = np.inf
        if not moving.any():
            b.inactive.settle(np.zeros(b.islands.count, dtype=bool))
        else:
            if exact:
                b.inactive.settle(self.converged)
                b.rows.update_multipliers(b.linear.direction, b.inactive.settled)
            gap, least = float(b.touch.island_gaps()[moving].min()), float(free[moving].min())
        return Status(
            failure=0, covered=True, reach=0.0, moving=bool(moving.any()), worst=worst, gap=gap, least=least,
            open=still_open, trials=progress.trials - trials, linear=progress.linear - linear,
        )  # fmt: skip

    def _within(self, speed: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """(islands,) whether directions of these vertex speeds, and what forces are off, end a minimisation [m/s]."""
        balanced = (residual <= self.balanced) | (speed <= UNSEEN * self.tolerance)
        return ((speed <= self.tolerance) & balanced) | (np.maximum(speed, residual) <= self.loose)

    def _residual(self) -> np.ndarray:
        """(islands,) largest change of a body's velocity by what the forces on it are off [m/s]."""
        b, out = self.backend, np.zeros(self.backend.islands.count)
        off = np.linalg.norm(b.potential.gradient[:, :3], axis=1) / (b.constants.weight * self.lengths)
        np.maximum.at(out, b.islands.host, off)
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
        """Of every island its smallest gap in activations and its last safe step; infinite and 1 where it has converged."""
        moving = ~self.converged
        return np.where(moving, self.backend.touch.island_gaps(), np.inf), np.where(moving, self.free, 1.0)

    def _form_model(self, progress: Progress) -> None:
        """Gradient and blocks at the iterate, with the present regularisation."""
        regularisation = self.regularisation
        self.backend.potential.set_regularisation(regularisation.share)
        regularisation.formed = regularisation.share
        with progress.time("assembly"):
            self.backend.linear.linearize()
        self._linearized = True

    def _choose_direction(self, progress: Progress) -> tuple[np.ndarray, np.ndarray]:
        """The largest displacements (islands,) of the full step [m], and whether friction in joints and drives are settled."""
        b, regularisation, near = self.backend, self.regularisation, self.tolerance * self.h
        moved = self._direction(progress)
        if not np.isfinite(moved[~self.converged]).all():
            raise StepFailure("not_finite", "the Newton direction is not finite")
        edges = b.system.has_edges
        settled = b.linear.effort_changes(self.converged) <= 1.0 if edges else np.ones(b.islands.count, dtype=bool)
        exact, closing = b.system.has_exact, ~self.converged & (moved <= near)
        if exact and closing.any():
            with progress.time("linear solve"):
                moved = b.linear.close_joints(closing)
        # exact rows are closed by the direction as it is, and so is what is near
        regularisation.stretch[exact | self.converged | (moved <= near)] = 1.0
        if (regularisation.stretch > 1.0).any():
            b.linear.stretch(regularisation.stretch)
        return moved, settled

    def _direction(self, progress: Progress) -> np.ndarray:
        """As `_solve`; a model that is not convex is formed again with full regularisation."""
        try:
            with progress.time("linear solve"):
                return self._solve(progress)
        except StepFailure as failure:
            if failure.reason != "not_positive_definite":
                raise
            failed = np.unique(self.backend.islands.host[failure.islands])
            if (self.regularisation.formed[failed] == 1.0).all():
                raise
        self.regularisation.share = self.regularisation.share.copy()
        self.regularisation.share[failed] = 1.0
        self._form_model(progress)
        with progress.time("linear solve"):
            return self._solve(progress)

    def _solve(self, progress: Progress) -> np.ndarray:
        """A direction as exact as the progress asks for, and as can be where one of a moving island seems to end it; the
        largest displacements (islands,) of the full step [m]."""
        b, forcing, moving = self.backend, self.forcing, ~self.converged
        moved, iterations = b.linear.solve(forcing.tolerance)
        if iterations and not forcing.decides((moving & (moved <= self.tolerance * self.h)).any()):
            moved, more = b.linear.tighten()
            iterations += more
        forcing.advance(float(np.where(moving, moved, 0.0).max(initial=0.0)) / float(self.lengths.max(initial=0.0)))
        progress.linear += iterations
        return moved

    def _follow(self, moved: np.ndarray, settled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The largest safe steps along the direction; what islands have become on the way, with `moved` and `settled`."""
        b, regularisation, islands = self.backend, self.regularisation, self.backend.islands
        before = islands.host
        free = b.arcs.follow_direction(b.linear)
        if islands.host is not before:
            some = islands.carry(before, self.converged, np.logical_or)
            self.converged = islands.carry(before, self.converged, np.logical_and)
            # bodies at rest that a moving island has reached stood still in this direction
            settled = islands.carry(before, settled, np.logical_and) & (self.converged | ~some)
            moved = islands.carry(before, moved, np.maximum)
            regularisation.share = islands.carry(before, regularisation.share, np.maximum)
            self.tolerance = islands.carry(before, self.tolerance, np.minimum)
            self.at_end = islands.carry(before, self.at_end, np.maximum)
            self.loose = islands.carry(before, self.loose, np.minimum)
            self.balanced = islands.carry(before, self.balanced, np.minimum)
            regularisation.stretch = islands.carry(before, regularisation.stretch, np.minimum)
        b.inactive.settle(self.converged)
        return free, moved, settled
