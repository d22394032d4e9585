"""Motion of prescribed bodies along arcs to their target poses, between minimisations."""

from __future__ import annotations

import numpy as np

from abd.backends.recorded.numbers import FAILURES
from abd.errors import StepFailure
from cuda_kernels.step import control


class Arcs:
    """Arcs of one backend from the iterate."""

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        self.control, self.search = backend.iteration.control, backend.iteration.search

    def aim_at_targets(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from the iterate to the targets of prescribed bodies; return the largest collision-free alpha (islands,).

        Args:
            moving: (n,) bool, bodies that move; dynamic ones move by their free motion.

        Raises:
            StepFailure: no fraction of the path satisfies the joint limits.
        """
        b, c, device = self.backend, self.control, self.device
        device.write(b.trial_path.moving, moving.astype(np.int32))
        b.trial_path.launch_start()
        device.fill(c.limit, 1.0)
        self.search.measure()
        if not self.search.covers():
            b.touch.renew(self.search.motion, c.limit)
            b.iteration.carry_numbers()
        b.potential.evaluate_contacts()
        device.launch(control.begin_iteration, 1, c)
        self.search.stop_at_contacts()
        self.search.keep_limits()
        if failure := int(device.read(c.flags)[control.FAILURE]):
            raise StepFailure(*FAILURES[failure])
        return device.read(c.limit, b.islands.count)

    def move(self, alpha: np.ndarray) -> None:
        """Move the iterate along the path by alpha (islands,)."""
        self.device.write(self.control.alpha, alpha)
        self.backend.potential.evaluate_contacts()
        self.search.evaluate_trial()
        self._exchange()

    def move_back(self) -> None:
        """Undo the last `move`."""
        self._exchange()

    def _exchange(self) -> None:
        """Exchange the iterate and the trial."""
        self.backend.potential.exchange()
        self.backend.touch.clear_touching()
        self.search.subtract_motion()
