"""Friction and contact forces that balance: ``friction_iterations = -1``.

Minimise and lag friction until a lagging leaves a state that is converged as it is. As a fixed point of loads,
``L -> G(L)``, this goes round where a load that grows makes the next one fall by as much: so every pair of bodies takes
its new load by a share alone, as far as its last two changes say (Aitken),

    L' = L + s (G(L) - L),    s' = s d / (d - d')   with d, d' the changes G(L) - L of this lagging's and the next,

at most 1 and at least `LEAST`. What balances by shares is lagged once more whole. Where points of contact jump from one
feature to another no shares help, but shorter steps do: where the changes do not shrink it is given up.
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
"""Laggings to the tolerance after which ``friction_iterations = -1`` gives up as not converged."""
WATCHED, SHRINK = 4, 0.5
"""So many laggings to the tolerance have to make the smallest change smaller than this share of what it was before."""
BALANCING = 100
"""Newton iterations to the tolerance among which they have to balance, or `max_newton` if that is more."""
LOOSE, TIGHTER = 1000.0, 0.5
"""Tolerance of the first of these minimisations, over the one that holds; and of each one that follows, over the speed that
the one before has reached."""
LEAST = 0.2
"""Smallest share of a change that a pair takes."""


def balance(
    backend: Backend, settings, progress: Progress, minimise: Callable[[Progress, float], StepFailure | None]
) -> StepFailure | None:
    """Minimise and lag friction until a lagging leaves a state that is converged as it is. What is found before is only
    where friction is lagged next, and needs not be more exact than the lagging is.

    Args:
        minimise: with friction as lagged, counted in a progress of its own, to a tolerance [m/s].

    Returns:
        the failure of a minimisation, or of friction and contact forces that go on changing.
    """
    friction_tolerance = settings.friction_tolerance
    tolerance, exact, spent = LOOSE * friction_tolerance, 0, 0
    shares, whole = Shares(backend.steps.mobility()), True
    changes: list[float] = []
    for lagging in count():
        if lagging:
            whole = shares.lag(backend, whole)
            if exact:
                changes.append(shares.largest)
        part = Progress(stages=progress.stages)
        failure = minimise(part, tolerance)
        progress.newton, progress.linear = progress.newton + part.newton, progress.linear + part.linear
        progress.trials += part.trials
        if failure is not None:
            return failure
        unmoved = lagging > 0 and part.newton <= 1 and part.tolerance <= friction_tolerance
        if unmoved and whole:
            progress.tolerance = max(progress.tolerance, part.tolerance)
            return None
        if tolerance == friction_tolerance:
            exact, spent = exact + 1, spent + part.newton
        if exact == BALANCED_LAGGINGS or spent > max(BALANCING, settings.max_newton) or not _shrink(changes):
            message = f"friction and contact forces did not balance in {exact} laggings, {spent} iterations, to the tolerance"
            return StepFailure("not_converged", message)
        tolerance, whole = max(friction_tolerance, TIGHTER * part.tolerance), unmoved


def _shrink(changes: list[float]) -> bool:
    """Whether the last changes are smaller than those before, or too few to tell."""
    last, before = changes[-WATCHED:], changes[:-WATCHED]
    return len(before) < WATCHED or min(last) < SHRINK * min(before)


class Shares:
    """By which share the pairs of bodies take their next loads.

    Attributes:
        largest: change of the last lagging, by the velocity [m/s] that it gives to a body.
    """

    def __init__(self, mobility: np.ndarray) -> None:
        """Args: mobility: (n,) largest change of velocity per load [1/(kg s)] (`abd.step.friction_lag.changed`)."""
        self.mobility, self.largest = mobility, 0.0
        nothing = np.zeros((0, 2), dtype=np.int64)
        self.share, self.change = PairLoads(nothing, np.zeros(0)), PairLoads(nothing, np.zeros(0))

    def lag(self, backend: Backend, whole: bool) -> bool:
        """Lag friction, by shares unless it is to be `whole`; whether it was whole."""
        frozen, current = backend.touch.friction_loads()
        backend.touch.lag_friction()
        share, acts = self.next(frozen, current), current.load > 0.0
        if whole or (share == 1.0).all():
            return True
        before, pairs, after = frozen.of(current.pairs)[acts], current.pairs[acts], current.load[acts]
        backend.touch.weigh_friction(PairLoads(pairs, (before + share[acts] * (after - before)) / after))
        return False

    def next(self, frozen: PairLoads, current: PairLoads) -> np.ndarray:
        """Shares (k,) of the pairs that press now, which are remembered."""
        pairs = current.pairs
        change, share = current.load - frozen.of(pairs), self.share.of(pairs, 1.0)
        before = self.change.of(pairs)
        turn = before - change
        share = np.where(turn * before > 0.0, share * before / np.where(turn == 0.0, 1.0, turn), 1.0)
        share = np.clip(share, LEAST, 1.0)
        self.share, self.change = PairLoads(pairs, share), PairLoads(pairs, change)
        self.largest = float((self.mobility[pairs].max(axis=1) * np.abs(change)).max(initial=0.0))
        return share
