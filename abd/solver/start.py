"""Where a step starts: on the arc that the velocities lead along, as far as collisions allow.

A stiff body's energy is a narrow curved valley; Newton from q_n, or from the stretched inertial target, crawls along
it (formulation.md section 2). Bodies without contact start at ``p = pt + c h^2 f/m``, ``A = exp(h [w]) A_n``; bodies in
contact, and those joined to them, would be squeezed against their support by the force term, so the start is kept only
where it lowers the energy, first for all bodies, then for those that touch nothing.
"""

from __future__ import annotations

import numpy as np


def start(backend, h: float, touching: np.ndarray) -> np.ndarray:
    """Move the iterate from q_n to the start.

    Args:
        touching: (n,) bool, bodies in contact at the end of the last step, or joined to one.

    Returns:
        (islands,) the fraction of the first path that was free of collisions.
    """
    everybody = np.ones(len(touching), dtype=bool)
    alpha = free = backend.follow_velocity(h, everybody)
    backend.evaluate()
    backend.lag_friction()
    change, size = backend.try_step(alpha)
    falls = change <= 1e-15 * size
    if falls.all():
        backend.accept()
        return free
    if touching.any() and not touching.all():
        chosen = ~touching | falls[backend.islands.host]
        alpha = backend.follow_velocity(h, chosen)
        change, size = backend.try_step(alpha)
        falls = change <= 1e-15 * size
    backend.try_step(np.where(falls, alpha, 0.0))
    backend.accept()
    return free
