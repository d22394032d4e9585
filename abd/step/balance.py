"""Balance of friction and contact forces: ``friction_iterations = -1``.

Newton's method and lagging alternate until a lagging leaves a converged state. This is a fixed-point iteration of loads,
``L -> G(L)``. It cycles where a larger load makes the next one smaller by as much. Each pair of bodies therefore has a
relaxation factor s from its last two changes (Aitken),

    L' = L + s (G(L) - L),    s' = s d / (d - d')   with d, d' the changes G(L) - L of this lagging and the next,

at most 1 and at least `SMALLEST_FACTOR`. A state balanced with factors below 1 is lagged once more with 1. Relaxation cannot help
where contact points jump from one feature to another, but shorter steps can: changes that do not shrink end the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np

from abd.backends.answers import PairLoads
from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.errors import StepFailure

BALANCED_LAGGINGS = 30
"""Laggings at the final tolerance after which the iteration fails as not converged."""
WINDOW, CONTRACTION = 4, 0.5
"""Laggings in which the smallest change must decrease by the second factor."""
BALANCED_ITERATIONS = 100
"""Largest number of Newton iterations at the final tolerance, or `max_newton` if that is more."""
FIRST_TOLERANCE, TOLERANCE_FACTOR = 1000.0, 0.5
"""First tolerance over the final one; each next tolerance over the speed that the last minimisation reached."""
SMALLEST_FACTOR = 0.2
"""Smallest relaxation factor."""


def balance(
    backend: Backend, settings, progress: Progress, minimise: Callable[[Progress, float], StepFailure | None]
) -> StepFailure | None:
    """Minimise and lag friction until a lagging leaves a converged state. Minimisations before the last may be inexact.

    Args:
        minimise: with the lagged friction, a progress of its own and a tolerance [m/s].

    Returns:
        the failure of a minimisation, or of a balance that was not reached.
    """
    friction_tolerance = settings.friction_tolerance
    tolerance, exact, newton = FIRST_TOLERANCE * friction_tolerance, 0, 0
    relaxation, whole = Relaxation(backend.steps.mobility()), True
    changes: list[float] = []
    for lagging in count():
        if lagging:
            whole = relaxation.lag(backend, whole)
            if exact:
                changes.append(relaxation.largest)
        part = Progress(stages=progress.stages)
        failure = minimise(part, tolerance)
        progress.newton, progress.linear = progress.newton + part.newton, progress.linear + part.linear
        progress.trials += part.trials
        if failure is not None:
            return failure
        is_converged = lagging > 0 and part.newton <= 1 and part.tolerance <= friction_tolerance
        if is_converged and whole:
            progress.tolerance = max(progress.tolerance, part.tolerance)
            return None
        if tolerance == friction_tolerance:
            exact, newton = exact + 1, newton + part.newton
        if exact == BALANCED_LAGGINGS or newton > max(BALANCED_ITERATIONS, settings.max_newton) or not _converges(changes):
            message = f"friction and contact forces did not balance in {exact} laggings, {newton} iterations, to the tolerance"
            return StepFailure("not_converged", message)
        tolerance, whole = max(friction_tolerance, TOLERANCE_FACTOR * part.tolerance), is_converged


def _converges(changes: list[float]) -> bool:
    """Return whether the last changes are smaller than those before, or too few to compare."""
    last, before = changes[-WINDOW:], changes[:-WINDOW]
    return len(before) < WINDOW or min(last) < CONTRACTION * min(before)


class Relaxation:
    """Relaxation factors of the loads of pairs of bodies.

    Attributes:
        largest: largest change of a body's velocity by the last lagging [m/s].
    """

    def __init__(self, mobility: np.ndarray) -> None:
        """Args: mobility: (n,) largest change of velocity per load [1/(kg s)] (`abd.step.friction_lag.changed`)."""
        self.mobility, self.largest = mobility, 0.0
        empty = np.zeros((0, 2), dtype=np.int64)
        self.factor, self.change = PairLoads(empty, np.zeros(0)), PairLoads(empty, np.zeros(0))

    def lag(self, backend: Backend, whole: bool) -> bool:
        """Lag friction, relaxed unless `whole`; return whether it was not relaxed."""
        frozen, current = backend.touch.friction_loads()
        backend.touch.lag_friction()
        factor, is_loaded = self.next(frozen, current), current.load > 0.0
        if whole or (factor == 1.0).all():
            return True
        before, pairs, after = frozen.of(current.pairs)[is_loaded], current.pairs[is_loaded], current.load[is_loaded]
        backend.touch.scale_friction(PairLoads(pairs, (before + factor[is_loaded] * (after - before)) / after))
        return False

    def next(self, frozen: PairLoads, current: PairLoads) -> np.ndarray:
        """Compute and store the factors (k,) of the pairs with loads."""
        pairs = current.pairs
        change, factor = current.load - frozen.of(pairs), self.factor.of(pairs, 1.0)
        before = self.change.of(pairs)
        turn = before - change
        factor = np.where(turn * before > 0.0, factor * before / np.where(turn == 0.0, 1.0, turn), 1.0)
        factor = np.clip(factor, SMALLEST_FACTOR, 1.0)
        self.factor, self.change = PairLoads(pairs, factor), PairLoads(pairs, change)
        self.largest = float((self.mobility[pairs].max(axis=1) * np.abs(change)).max(initial=0.0))
        return factor
