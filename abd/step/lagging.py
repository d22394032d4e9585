"""Whether friction, which acts with the normal forces of its last lagging, has to be lagged again within a step.

Friction is lagged where a step begins. A contact that is made in the step had no normal force then, one that an impact has
loaded had little, and in the step after the impact it has too much. A pair of bodies counts as *changed* if its load
``mu lambda`` differs from what was frozen by more than half of the larger one, and if the difference may change the velocity
of one of its bodies by more than gravity does in half a step, and by more than `eps_v` and ten times the tolerance (a load
sums up what is left in a stack): what is less follows in the next step. After a step that was lagged again a tenth is
enough, of the load and of the velocity, so that an impact that takes several steps leaves no part of its load behind.
Without lagging again, every load acts one step late, and all of it acts; a load that is replaced within a step must be
right, for what it was wrong by is never made good. So it is taken from a state that has converged to friction's tolerance.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import PairLoads

SHARE, FOLLOWING = 0.5, 0.1
"""Change of a load, of the larger one, from which it counts; after a step that was lagged again."""


def least_change(settings, h: float, following: bool) -> tuple[float, float]:
    """Least change of velocity [m/s], and share of a load, for which a step of h [s] is worth to be lagged again;
    `following` one that was."""
    share = FOLLOWING if following else SHARE
    fall = h * float(np.linalg.norm(settings.gravity))
    return max(settings.eps_v, 10.0 * settings.friction_tolerance, share * fall), share


def changed(frozen: PairLoads, acting: PairLoads, inverse_mass: np.ndarray, speed: float, share: float) -> bool:
    """Whether the load of any pair has changed.

    Args:
        inverse_mass: (n,) largest change of velocity per load [1/(kg s)], 0 for bodies that are not moved by forces.
        speed: that counts [m/s]; share: of the larger load.
    """
    if not len(frozen.pairs) and not len(acting.pairs):
        return False
    n = len(inverse_mass)
    keys = [part.pairs[:, 0].astype(np.int64) * n + part.pairs[:, 1] for part in (frozen, acting)]
    every = np.union1d(*keys)
    before, after = np.zeros(len(every)), np.zeros(len(every))
    for key, part, load in zip(keys, (frozen, acting), (before, after), strict=True):
        load[np.searchsorted(every, key)] = part.load
    difference = np.abs(after - before)
    mobility = np.maximum(inverse_mass[every // n], inverse_mass[every % n])
    return bool(((difference > share * np.maximum(before, after)) & (mobility * difference > speed)).any())
