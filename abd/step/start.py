"""Where a step starts: on the arc that the velocities lead along, as far as collisions allow.

A stiff body's energy is a narrow curved valley; Newton from q_n, or from the stretched inertial target, crawls along it
(docs/theory.md, "Newton's method on arcs"). Bodies start where their free motion and the forces that they remember, or
external ones, lead (`abd.backends.reference.numpy_motion.Target`), where that lowers the energy. Bodies in contact, and
those joined to them, would be squeezed against their support by the force term: they are tried without it, and then left
where they are.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import STAY, WITH_FORCES, WITHOUT_FORCES
from abd.backends.protocol import Backend


def start(backend: Backend, touching: np.ndarray, may_sleep: np.ndarray) -> None:
    """Move the iterate from q_n to the start.

    Args:
        touching: (n,) bool, bodies in contact at the end of the last step, or joined to one.
        may_sleep: (n,) bool, bodies that sleep if their whole island does (`abd.step.sleep`).
    """
    gentle = np.select([may_sleep, touching], [STAY, WITHOUT_FORCES], WITH_FORCES)
    backend.start.run(gentle, bool(touching.any()), may_sleep)
