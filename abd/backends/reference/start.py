"""Where a step starts: on the arc that the velocities lead along, as far as collisions allow.

A stiff body's energy is a narrow curved valley; Newton from q_n, or from the stretched inertial target, crawls along it
(docs/theory.md, "Newton's method on arcs"). Bodies start where their free motion and the forces that they remember, or
external ones, lead (`abd.backends.reference.numpy_motion.Target`), where that lowers the energy. Bodies in contact or at a
limit, and those joined to them, would be squeezed against their support by the force term: they are tried without it, and
those in contact then left where they are. The same on a device: `abd.backends.recorded.start`.
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import STAY, WITHOUT_FORCES


class Start:
    """Starts of the steps of one `NumpyBackend`."""

    def __init__(self, backend):
        self.backend = backend

    def run(self, moving: np.ndarray, touching: bool, may_sleep: np.ndarray) -> None:
        """Move the iterate from q_n to the start.

        Args:
            moving: (n,) how each body leaves (`abd.backends.answers`); touching: whether any is in contact.
            may_sleep: (n,) bool, bodies that sleep if their whole island does.
        """
        b = self.backend
        alpha = b.arcs.follow_velocity(moving)
        b.inactive.sleep(may_sleep)
        b.arcs.evaluate()
        b.touch.lag_at_begin()
        falls = self._falls(alpha)
        if not falls.all() and touching:
            moving = np.where((moving == WITHOUT_FORCES) & ~falls[b.islands.host], STAY, moving)
            alpha = b.arcs.follow_velocity(moving)
            falls = self._falls(alpha)
        if not falls.all():
            b.arcs.try_step(np.where(falls, alpha, 0.0))
        b.arcs.accept()

    def _falls(self, alpha: np.ndarray) -> np.ndarray:
        """(islands,) whether the energy at path(alpha) is no higher than at q_n."""
        change, size = self.backend.arcs.try_step(alpha)
        return change <= 1e-15 * size
