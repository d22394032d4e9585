"""Lagging of friction within a step: a second one where loads change, or laggings until forces balance.

Friction is lagged at the start of a step, with the normal forces of that state. A pair of bodies has *changed* if

- its load ``mu lambda`` differs from the lagged one by more than half of the larger one, and
- the difference may change the velocity of one of its bodies by more than gravity does in half a step, and by more than `eps_v`
  and ten times the tolerance.

A tenth of the load and of the velocity suffices for a contact that had less than a tenth of its load: a body that is set down has
friction from its first step in contact. The load of the second lagging is that of a converged state (`loose_tolerance`).

With ``friction_iterations = -1``, Newton's method and lagging alternate until a lagging leaves a converged state. The iteration
cycles where a larger load makes the next one smaller by as much, or where contact points jump from one feature to another.
Changes that do not shrink end it; a shorter substep helps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np

from abd.backends.answers import NO_PAIRS, PairLoads
from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.contact.pair_rows import PairRows
from abd.errors import StepFailure

CHANGE, CHANGE_OF_NEW = 0.5, 0.1
"""Smallest relative change of a load that causes a second lagging: usually, and of a new contact."""
UNBALANCED = 0.05
"""Residual force on a body in contact before the last direction, over its weight."""
WINDOW, CONTRACTION = 4, 0.5
"""Laggings in which the smallest change must decrease by the second factor."""
BALANCED_ITERATIONS = 100
"""Largest number of Newton iterations of a balance at the final tolerance, or `max_newton` if that is more."""
FIRST_TOLERANCE, TOLERANCE_FACTOR = 1000.0, 0.5
"""First tolerance of a balance over the final one; each next tolerance over the speed that the last minimisation reached."""


def least_change(settings, h: float | np.ndarray, is_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest changes of velocity (k,) [m/s] and fractions (k,) of a load that cause a second lagging.

    h: step [s], scalar or (k,); is_new: (k,) bool, new contacts."""
    fraction = np.where(is_new, CHANGE_OF_NEW, CHANGE)
    fall = h * float(np.linalg.norm(settings.gravity))
    return np.maximum(max(settings.eps_v, 10.0 * settings.friction_tolerance), fraction * fall), fraction


def residual_bound(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Return the bound of residual forces on a body in contact, as a change of velocity [m/s].

    The force of a stiff contact is undetermined within Newton's tolerance. An island that misses only this bound gets
    `BOUND_GROWTH` times it in the next iteration (`cuda_kernels.shared.step`). h: step [s], scalar or (n,)."""
    return np.maximum(settings.friction_tolerance, UNBALANCED * h * float(np.linalg.norm(settings.gravity)))


def loose_tolerance(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Return the smallest relevant change of velocity [m/s], to which a step of h [s], scalar or (n,), must converge before loads
    are compared."""
    return least_change(settings, h, np.full(np.shape(h), True))[0]


def changed(
    frozen: PairLoads, current: PairLoads, inverse_mass: np.ndarray, settings, h: float | np.ndarray
) -> np.ndarray:
    """Return (k, 2) pairs of bodies whose loads have changed in a step of h [s], scalar or (n,).

    Args:
        inverse_mass: (n,) largest change of velocity per load [1/(kg s)], 0 for bodies that are not dynamic.
    """
    if not len(frozen.pairs) and not len(current.pairs):
        return NO_PAIRS
    rows = PairRows(np.concatenate([frozen.pairs, current.pairs]), len(inverse_mass))
    loads = np.zeros((rows.count, 2))
    loads[: len(frozen.pairs), 0], loads[len(frozen.pairs) :, 1] = frozen.load, current.load
    (before, after), pairs = rows.sums(loads).T, rows.pairs
    i, j = pairs.T
    is_new = before < CHANGE_OF_NEW * after  # 0 but for rounding, where a pair starts at its activation distance
    speed, fraction = least_change(settings, np.broadcast_to(h, len(inverse_mass))[i], is_new)
    difference = np.abs(after - before)
    mobility = np.maximum(inverse_mass[i], inverse_mass[j])
    is_changed = (difference > fraction * np.maximum(before, after)) & (mobility * difference > speed)
    return pairs[is_changed]


def balance(
    backend: Backend, settings, progress: Progress, minimise: Callable[[Progress, float], StepFailure | None]
) -> StepFailure | None:
    """Minimise and lag friction until a lagging leaves a converged state. Minimisations before the last may be inexact.

    Args:
        minimise: with the lagged friction, a progress of its own and a tolerance [m/s].

    Returns:
        the failure of a minimisation, or of a balance that was not reached.
    """
    friction_tolerance, mobility = settings.friction_tolerance, backend.steps.mobility()
    tolerance, newton = FIRST_TOLERANCE * friction_tolerance, 0
    changes: list[float] = []
    for lagging in count():
        if lagging:
            frozen, current = backend.touch.friction_loads()
            if newton:
                change = np.abs(current.load - frozen.of(current.pairs))
                changes.append(float((mobility[current.pairs].max(axis=1) * change).max(initial=0.0)))
            backend.touch.lag_friction()
        part = Progress(stages=progress.stages)
        failure = minimise(part, tolerance)
        progress.newton, progress.linear = progress.newton + part.newton, progress.linear + part.linear
        progress.trials += part.trials
        if failure is not None:
            return failure
        if lagging > 0 and part.newton <= 1 and part.tolerance <= friction_tolerance:
            progress.tolerance = max(progress.tolerance, part.tolerance)
            return None
        if tolerance == friction_tolerance:
            newton += part.newton
        if newton > max(BALANCED_ITERATIONS, settings.max_newton) or not _shrink(changes):
            message = f"friction and contact forces did not balance in {lagging + 1} laggings"
            return StepFailure("not_converged", message)
        tolerance = max(friction_tolerance, TOLERANCE_FACTOR * part.tolerance)


def _shrink(changes: list[float]) -> bool:
    """Return whether the last changes are smaller than those before, or too few to compare."""
    last, before = changes[-WINDOW:], changes[:-WINDOW]
    return len(before) < WINDOW or min(last) < CONTRACTION * min(before)
