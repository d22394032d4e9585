"""Steps along arcs: how far a path leads, energies at trials on it, and the exchange of trial and iterate."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.errors import StepFailure
from abd.joints.rows.system import LIMIT_CUTS
from cuda_kernels.bodies import affine, paths
from cuda_kernels.parallel import sums


class PathSteps:
    """The part of `WarpBackend` between a path and the next iterate."""

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n to where the motion leads for the moving bodies; returns the largest alpha per island."""
        self.device.write(self.moving, moving.astype(np.int32))
        self.device.launch(
            paths.start_paths,
            self.n, self.body, self.step, self.lower, self.upper, self.pose, self.lead, self.moving, self.path,
        )  # fmt: skip
        return self._collision_free()

    def _collision_free(self) -> np.ndarray:
        limit = np.ones(self.islands.count)
        launch, islands, alpha = self.device.launch, self.islands, self.islands.scalars("limit")
        self.device.write(alpha, limit)
        a = self.values["a"]
        launch(paths.displacements, self.n, self.lower, self.upper, self.path, islands.island, alpha, a)
        reach = islands.reduced(a, sums.MAX)
        self._speed = reach / limit
        candidates = self.contacts.candidates
        covered = candidates.covers(self.path, float(reach.max()), islands.island, alpha)
        proven = candidates.reusable and not covered
        if proven:
            # what is listed may stop a body before it leaves what the list covers
            limit = self._stopped(limit, alpha)
            self.device.write(alpha, limit)
            reach = limit * self._speed
        contacts = self.contacts.arrays("current")
        if not covered and candidates.cover(self.path, float(reach.max()), islands.island, alpha):
            self.carry_contacts(contacts)
            before = islands.host
            self.launch_renumber()
            limit = islands.carry(before, limit, np.minimum)
            self._speed = islands.carry(before, self._speed, np.maximum)
            self.device.write(alpha, limit)
        elif proven:
            return self._within_limits(limit)
        return self._within_limits(self._stopped(limit, alpha, proven))

    def _stopped(self, limit: np.ndarray, alpha: wp.array, proven: bool = False) -> np.ndarray:
        """The largest fractions (islands,) up to the limits, on the host and on the device, that the listed contacts allow;
        `proven` as `Contacts.times_of_impact` has it."""
        a = self.values["a"]
        self.potential.know_contacts()
        self.contacts.times_of_impact(self.path, self.islands.island, alpha, a, proven)
        return np.minimum(limit, self.islands.reduced(a, sums.MIN))

    def _within_limits(self, alpha: np.ndarray) -> np.ndarray:
        """The largest fractions per island that keep the gaps of all joint limits open, found by secants."""
        if not self.system.has_barriers:
            return alpha
        islands, shares = self.islands, self.values["a"]
        scalars = islands.scalars("alpha")
        self.joints.measure_gaps(self.pose)
        for _ in range(LIMIT_CUTS):
            self.device.write(scalars, alpha)
            self._advance(scalars)
            self.device.fill(shares, 1.0)
            self.joints.open_shares(self.trial, shares)
            share = islands.reduced(shares, sums.MIN)
            alpha = alpha * share
            if (share == 1.0).all():
                return alpha
        raise StepFailure("limits", f"no step keeps the joint limits after {LIMIT_CUTS} cuts")

    def _advance(self, alpha: wp.array) -> None:
        """The trial is the path at alpha (islands,)."""
        islands = self.islands
        self.device.launch(affine.advance, self.n, self.path, islands.island, islands.done, alpha, self.trial)

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies at path(alpha): their change against the current ones and the sum of their sizes, per island."""
        islands = self.islands
        scalars = islands.scalars("alpha")
        self.device.write(scalars, alpha)
        self._motion = float((alpha * self._speed).max())
        self._advance(scalars)
        self.potential.know_contacts()
        self.potential.evaluate_trial(scalars, islands.scalars("change"), islands.scalars("size"))
        return islands.read("change"), islands.read("size")

    def accept(self) -> None:
        """The trial becomes the current iterate."""
        self.exchange()
        islands = self.islands
        self.contacts.candidates.moved(self.path, self._motion, islands.island, islands.scalars("alpha"))
