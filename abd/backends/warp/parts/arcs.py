"""Steps along the trial path without Newton directions: collision-free step lengths and trial energies."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.scratch import Scratch
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
        self.trial_path.start(moving)
        return self._collision_free()

    def _collision_free(self) -> np.ndarray:
        limit = np.ones(self.islands.count)
        path, islands, alpha = self.trial_path.path, self.islands, self.islands.scalars("limit")
        self.device.write(alpha, limit)
        reach = islands.reduced(self.trial_path.displacements(alpha, self.scratch.a), sums.MAX)
        self._speed = reach / limit
        candidates = self.contacts.candidates
        covered = candidates.covers(path, reach, islands.island, alpha)
        proven = candidates.reusable and not covered
        if proven:
            # listed contacts may stop a body before it leaves the range that the list covers
            limit = self._stopped(limit, alpha)
            self.device.write(alpha, limit)
            reach = limit * self._speed
        contacts = self.contacts.arrays("current")
        if not covered and candidates.cover(path, reach, islands.island, alpha):
            self.touch.carry(contacts)
            before = islands.host
            self.touch.launch_renumber()
            limit = islands.carry(before, limit, np.minimum)
            self._speed = islands.carry(before, self._speed, np.maximum)
            self.device.write(alpha, limit)
        elif proven:
            return self._within_limits(limit)
        return self._within_limits(self._stopped(limit, alpha, proven))

    def _stopped(self, limit: np.ndarray, alpha: wp.array, proven: bool = False) -> np.ndarray:
        """Return the collision-free fractions (islands,) for the listed contacts, at most `limit`.

        `alpha` holds the limits on the device; `proven` as in `Contacts.times_of_impact`."""
        a = self.scratch.a
        self.potential.evaluate_contacts()
        self.contacts.times_of_impact(self.trial_path.path, self.islands.island, alpha, a, proven)
        return np.minimum(limit, self.islands.reduced(a, sums.MIN))

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
        self.contacts.candidates.moved(self.trial_path.path, self._motion, islands.island, islands.scalars("alpha"))

    def evaluate(self) -> None:
        self.islands.clear_done()
        self.potential.evaluate()
