"""Steps along the trial path without Newton directions: collision-free step lengths and trial energies."""

from __future__ import annotations

import numpy as np

from abd.backends.recorded.numbers import FAILURES
from abd.errors import StepFailure
from cuda_kernels.step import control


class Arcs:
    """Trial paths of one backend along arcs, between minimisations."""

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        self.control, self.search = backend.iteration.control, backend.iteration.search

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n along the free motion; return the largest collision-free alpha (islands,).

        Prescribed bodies go to their target poses. `moving` (n,) says how each body starts (`cuda_kernels.shared.step`).

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

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the change of the energies at path(alpha) against the iterate, and the sum of their sizes, per island."""
        b, c = self.backend, self.control
        self.device.write(c.alpha, alpha)
        b.trial_path.advance(c.alpha)
        b.potential.evaluate_contacts()
        b.potential.evaluate_trial(c.alpha, c.change, c.size)
        return tuple(self.device.read_all((c.change, b.islands.count), (c.size, b.islands.count)))

    def accept(self) -> None:
        """Make the trial the iterate."""
        self.backend.potential.exchange()
        self.backend.touch.clear_touching()
        self.search.subtract_motion()

    def evaluate(self) -> None:
        """Evaluate all energies except contact at the iterate, those of settled islands included."""
        self.backend.islands.clear_done()
        self.backend.potential.evaluate()
