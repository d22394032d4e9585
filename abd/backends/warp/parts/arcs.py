"""Steps along the trial path without Newton directions: collision-free step lengths and trial energies."""

from __future__ import annotations

import numpy as np

from abd.backends.warp.iterate import Scratch
from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.trial_path import TrialPath
from abd.errors import StepFailure
from abd.joints.rows.system import LIMIT_CUTS
from cuda_kernels.parallel import sums


class Arcs:
    """Implementation of `abd.backends.protocol.Arcs`."""

    def __init__(self, potential: Potential, trial_path: TrialPath, touch: Touch, scratch: Scratch):
        self.potential, self.trial_path, self.touch, self.scratch = potential, trial_path, touch, scratch
        self.device, self.islands, self.contacts = potential.device, potential.islands, potential.contacts

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n along the predicted motion of moving bodies; returns the largest alpha (islands,)."""
        islands, candidates, path, a = self.islands, self.contacts.candidates, self.trial_path.path, self.scratch.a
        limit, speed = islands.scalars("limit"), islands.scalars("speed")
        self.trial_path.start(moving)
        self.device.fill(limit, 1.0)
        islands.reduce(self.trial_path.displacements(limit, a), sums.MAX, speed)
        contacts = self.contacts.arrays("current")
        if candidates.cover(path, speed, islands.island, limit):
            self.touch.carry(contacts)
            islands.keep_numbering()
            self.touch.launch_renumber()
            islands.launch_carry(speed, sums.MAX, speed)
        self._speed = islands.read("speed")
        self.potential.evaluate_contacts()
        self.contacts.times_of_impact(path, islands.island, limit, a)
        return self._within_limits(np.minimum(1.0, islands.reduced(a, sums.MIN)))

    def _within_limits(self, alpha: np.ndarray) -> np.ndarray:
        """Return the fractions (islands,) that keep the gaps of all joint limits open, found by secants."""
        joints = self.potential.joints
        if not joints.system.has_barriers:
            return alpha
        islands, fractions = self.islands, self.scratch.a
        scalars = islands.scalars("alpha")
        joints.measure_gaps(self.potential.at.current)
        for _ in range(LIMIT_CUTS):
            self.device.write(scalars, alpha)
            self.trial_path.advance(scalars)
            self.device.fill(fractions, 1.0)
            joints.open_fractions(self.potential.at.trial, fractions)
            cut = islands.reduced(fractions, sums.MIN)
            alpha = alpha * cut
            if (cut == 1.0).all():
                return alpha
        raise StepFailure("limits", f"no step satisfies the joint limits after {LIMIT_CUTS} reductions")

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        islands = self.islands
        scalars = islands.scalars("alpha")
        self.device.write(scalars, alpha)
        self._motion = alpha * self._speed
        self.trial_path.advance(scalars)
        self.potential.evaluate_contacts()
        self.potential.evaluate_trial(scalars, islands.scalars("change"), islands.scalars("size"))
        return islands.read("change"), islands.read("size")

    def accept(self) -> None:
        self.potential.exchange()
        self.touch.clear_touching()
        islands = self.islands
        self.device.write(islands.scalars("speed"), self._motion)
        path, motion, alpha = self.trial_path.path, islands.scalars("speed"), islands.scalars("alpha")
        self.contacts.candidates.subtract_motion(path, motion, islands.island, alpha)

    def evaluate(self) -> None:
        self.islands.clear_done()
        self.potential.evaluate()
