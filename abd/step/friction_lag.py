"""Whether friction, which acts with the normal forces of its last lagging, has to be lagged again within a step.

Friction is lagged where a step begins. A contact that is made in the step had no normal force then, one that an impact has
loaded had little, and in the step after the impact it has too much. A pair of bodies counts as *changed* if its load
``mu lambda`` differs from what was frozen by more than half of the larger one, and if the difference may change the velocity
of one of its bodies by more than gravity does in half a step, and by more than `eps_v` and ten times the tolerance (a load
sums up what is left in a stack): what is less follows in the next step. After a step that was lagged again, and of a new
contact, a tenth is enough, of the load and of the velocity, so that an impact that takes several steps leaves no part of its
load behind, and a body that is set down has friction from the first step on.
Without lagging again, every load acts one step late, and all of it acts; a load that is replaced within a step must be
right, for what it was wrong by is never made good. So it is taken from a state that has converged as far as loads count
(`loose_tolerance`). To converge further before would be in vain: other loads move the state by much more.

An island is lagged again if one of its pairs has changed. The others are where they are, with what they were lagged with.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import NO_PAIRS, PairLoads

SHARE, FOLLOWING = 0.5, 0.1
"""Change of a load, of the larger one, from which it counts; after a step that was lagged again."""
UNBALANCED = 0.05
"""Share of its weight by which the forces on a body in frictional contact may be off before the last direction."""


def least_change(settings, h: float | np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least changes of velocity (k,) [m/s], and shares (k,) of a load, for which a step of h [s], of all or (k,), is worth to be
    lagged again; `following` (k,) bool, one that was."""
    share = np.where(following, FOLLOWING, SHARE)
    fall = h * float(np.linalg.norm(settings.gravity))
    return np.maximum(max(settings.eps_v, 10.0 * settings.friction_tolerance), share * fall), share


def balanced(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Change of velocity [m/s] by the residual forces on a body in frictional contact, before the last direction of a step of h
    [s], of all or (n,), below which its normal forces are exact enough for friction. A stiff contact may have any force while
    all displacements are within Newton's tolerance. An island that is within it but for this gets `RELENT` times the bound
    (`abd.backends.answers`), so that slow convergence does not hold it up."""
    least = np.maximum(settings.friction_tolerance, UNBALANCED * h * float(np.linalg.norm(settings.gravity)))
    return least if isinstance(h, np.ndarray) else float(least)


def loose_tolerance(settings, h: float | np.ndarray) -> float | np.ndarray:
    """Speed [m/s] to which a step of h [s], of all or (n,), has to have converged before loads are compared: the least change
    that counts."""
    least = least_change(settings, h, np.full(np.shape(h), True))[0]
    return least if isinstance(h, np.ndarray) else float(least)


def changed(
    frozen: PairLoads, current: PairLoads, inverse_mass: np.ndarray, settings, h: float | np.ndarray,
    loaded: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(k, 2) pairs of bodies whose loads have changed in a step of h [s], of all or (n,).

    Args:
        inverse_mass: (n,) largest change of velocity per load [1/(kg s)], 0 for bodies that are not moved by forces.
        loaded: (n,) bool, bodies whose friction was lagged again in the step before.
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
