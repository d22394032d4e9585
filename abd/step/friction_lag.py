"""Second lagging of friction within a step.

Friction is lagged where a step begins, with the normal forces of that state. A contact that is made in the step had none, one
that an impact has loaded had too little, and in the step after the impact it has too much. A pair of bodies has *changed* if

- its load ``mu lambda`` differs from the lagged one by more than half of the larger one, and
- the difference may change the velocity of one of its bodies by more than gravity does in half a step, and by more than `eps_v`
  and ten times the tolerance.

Smaller changes act in the next step. After a step that was lagged twice, and for a new contact, a tenth is enough, of the load
and of the velocity: an impact that takes several steps then leaves no part of its load behind, and a body that is set down has
friction from the first step on. A load that is lagged again must be right, because its error is not corrected later. It is
therefore taken from a state that has converged as far as loads count (`loose_tolerance`).

An island is lagged again if one of its pairs has changed. Other islands keep their state and their lagged loads.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import NO_PAIRS, PairLoads

SHARE, FOLLOWING = 0.5, 0.1
"""Change of a load, over the larger one, from which it counts: usually, and after a step that was lagged twice."""
UNBALANCED = 0.05
"""Residual force on a body in frictional contact before the last direction, over its weight."""


def least_change(settings, h: float | np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest changes of velocity (k,) [m/s] and fractions (k,) of a load for which a step of h [s] is lagged again.

    h: scalar or (k,); following: (k,) bool, whether the step before was lagged twice, or the contact is new."""
    share = np.where(following, FOLLOWING, SHARE)
    fall = h * float(np.linalg.norm(settings.gravity))
    return np.maximum(max(settings.eps_v, 10.0 * settings.friction_tolerance), share * fall), share


def balanced(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Bound of the residual forces on a body in frictional contact before the last direction, as a change of velocity [m/s].

    A stiff contact may have any force while all displacements are within Newton's tolerance; below the bound its normal force is
    exact enough for friction. An island that misses only this bound gets `RELENT` times it in the next iteration
    (`abd.backends.answers`). h: step [s], scalar or (n,)."""
    least = np.maximum(settings.friction_tolerance, UNBALANCED * h * float(np.linalg.norm(settings.gravity)))
    return least if isinstance(h, np.ndarray) else float(least)


def loose_tolerance(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Speed [m/s] to which a step of h [s], scalar or (n,), must have converged before loads are compared.

    It is the smallest change that counts."""
    least = least_change(settings, h, np.full(np.shape(h), True))[0]
    return least if isinstance(h, np.ndarray) else float(least)


def changed(
    frozen: PairLoads, current: PairLoads, inverse_mass: np.ndarray, settings, h: float | np.ndarray,
    loaded: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(k, 2) pairs of bodies whose loads have changed in a step of h [s], scalar or (n,).

    Args:
        inverse_mass: (n,) largest change of velocity per load [1/(kg s)], 0 for bodies that are not dynamic.
        loaded: (n,) bool, bodies whose friction was lagged twice in the step before.
    """
    if not len(frozen.pairs) and not len(current.pairs):
        return NO_PAIRS
    pairs = np.unique(np.concatenate([frozen.pairs, current.pairs]).astype(np.int64), axis=0)
    before, after = frozen.of(pairs), current.of(pairs)
    i, j = pairs.T
    speed, share = least_change(settings, np.broadcast_to(h, len(loaded))[i], loaded[i] | loaded[j] | (before == 0.0))
    difference = np.abs(after - before)
    mobility = np.maximum(inverse_mass[i], inverse_mass[j])
    counts = (difference > share * np.maximum(before, after)) & (mobility * difference > speed)
    return pairs[counts]
