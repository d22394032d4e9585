"""Where a step starts: on the arc that the velocities lead along, as far as collisions allow.

A stiff body's energy is a narrow curved valley; Newton from q_n, or from the stretched inertial target, crawls along
it (formulation.md section 2). Bodies start where their free motion and the forces that they remember, or external ones,
lead (`abd.backends.reference.numpy_motion.Target`), where that lowers the energy. Bodies in contact, and those joined to them,
would be squeezed against their support by the force term: they are tried without it, and then left where they are.
"""

from __future__ import annotations

import numpy as np

STAY, WITH_FORCES, WITHOUT_FORCES = 0, 1, 2


def start(backend, touching: np.ndarray, ripe: np.ndarray) -> None:
    """Move the iterate from q_n to the start.

    Args:
        touching: (n,) bool, bodies in contact at the end of the last step, or joined to one.
        ripe: (n,) bool, bodies that sleep if their whole island does (`abd.step.sleep`).
    """
    gentle = np.select([ripe, touching], [STAY, WITHOUT_FORCES], WITH_FORCES)
    if backend.start is not None:
        backend.start.run(gentle, bool(touching.any()), ripe)
        return
    alpha = backend.follow_velocity(gentle)
    backend.sleep(ripe)
    backend.evaluate()
    backend.lag_friction()
    falls = _falls(backend, alpha)
    if not falls.all() and touching.any():
        gentle = np.where(touching & ~falls[backend.islands.host], STAY, gentle)
        alpha = backend.follow_velocity(gentle)
        falls = _falls(backend, alpha)
    if not falls.all():
        backend.try_step(np.where(falls, alpha, 0.0))
    backend.accept()


def _falls(backend, alpha: np.ndarray) -> np.ndarray:
    """(islands,) whether the energy at path(alpha) is no higher than at q_n."""
    change, size = backend.try_step(alpha)
    return change <= 1e-15 * size
