"""Start of a step on the arc of the velocities, as far as collisions allow.

The energy of a stiff body is a narrow curved valley. Newton's method from q_n or from the stretched inertial target converges
slowly along it (docs/theory.md, "Newton's method on arcs"). Bodies start at the end of their free motion with stored or external
forces (`abd.backends.reference.numpy_motion.Target`) if that decreases the energy. The force term would press bodies in
contact or at a limit, and bodies jointed to them, on their supports: they are tried without it. In contact, they otherwise
start at q_n. `abd.backends.recorded.start` is the device version.
"""

from __future__ import annotations

import numpy as np

from cuda_kernels.shared.step import ROUNDING, STAY, WITHOUT_FORCES


class Start:
    """Starts of the steps of one `NumpyBackend`."""

    def __init__(self, backend):
        self.backend = backend

    def run(self, moving: np.ndarray, touching: bool, may_sleep: np.ndarray) -> None:
        """Move the iterate from q_n to the start.

        Args:
            moving: (n,) start of each body (`cuda_kernels.shared.step`); touching: whether any is in contact.
            may_sleep: (n,) bool, bodies that sleep if their whole island does.
        """
        b = self.backend
        alpha = b.arcs.follow_velocity(moving)
        b.inactive.sleep(may_sleep)
        b.arcs.evaluate()
        b.touch.lag_at_start()
        decreases = self._decreases(alpha)
        if not decreases.all() and touching:
            moving = np.where((moving == WITHOUT_FORCES) & ~decreases[b.islands.host], STAY, moving)
            alpha = b.arcs.follow_velocity(moving)
            decreases = self._decreases(alpha)
        if not decreases.all():
            b.arcs.try_step(np.where(decreases, alpha, 0.0))
        b.arcs.accept()

    def _decreases(self, alpha: np.ndarray) -> np.ndarray:
        """Return (islands,) whether the energy at path(alpha) is no higher than at q_n."""
        change, size = self.backend.arcs.try_step(alpha)
        return change <= ROUNDING * size
