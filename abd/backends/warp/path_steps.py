"""Steps along arcs: how far a path leads, energies at trials on it, and the exchange of trial and iterate."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.errors import StepFailure
from abd.joints.rows.system import LIMIT_CUTS
from cuda_kernels.bodies import affine, bodies, integrators, paths
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

    def touching_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies that may touch or rub, the owner first."""
        return np.concatenate([self.contacts.candidates.pair_list(), self.friction.pair_list()])

    def launch_renumber(self) -> None:
        """Form the islands anew, for the present lists, by launches only."""
        c, f = self.contacts.candidates, self.friction
        self.islands.follow_joined(self.mobile)
        rubbing = f.pairs, f.lagged.counts, f.pair_count
        self.islands.launch_renumber(self.step.held, (c.pairs, c.counts, c.pair_count), rubbing)

    def _stopped(self, limit: np.ndarray, alpha: wp.array, proven: bool = False) -> np.ndarray:
        """The largest fractions (islands,) up to the limits, on the host and on the device, that the listed contacts allow;
        `proven` as `Contacts.times_of_impact` has it."""
        a = self.values["a"]
        self.know_contacts()
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
        self.know_contacts()
        self.launch_trial(scalars, islands.scalars("change"), islands.scalars("size"))
        return islands.read("change"), islands.read("size")

    def launch_trial(self, alpha: wp.array, change: wp.array, size: wp.array) -> None:
        """Energies at the trial, which is path(alpha): per island their change and the sum of their sizes."""
        self.contacts.evaluate(self.trial, "trial", (self.islands.island, alpha))
        self._evaluate(self.trial, "trial")
        self._differences()
        self.islands.reduce(self.values["difference"], sums.SUM, change)
        self.islands.reduce(self.values["size"], sums.SUM, size)

    def accept(self) -> None:
        """The trial becomes the current iterate."""
        self.exchange()
        islands = self.islands
        self.contacts.candidates.moved(self.path, self._motion, islands.island, islands.scalars("alpha"))

    def exchange(self) -> None:
        """The trial becomes the current iterate and the current one the trial: a record holds the arrays, which exchange what
        they hold."""
        launch, values = self.device.launch, self.values
        launch(integrators.exchange_poses, self.n, self.pose, self.trial)
        launch(integrators.exchange_values, self.n, values["current"], values["trial"])
        for part in (self.contacts, self.friction, self.joints):
            part.exchange()
        # external work counts from the current iterate, which is a new one
        self._body_energies(self.pose, "current")

    def evaluate(self) -> None:
        """Energies at the current iterate, those of settled islands too; contacts only if they are not known already."""
        self._unsettle()
        self._evaluate(self.pose, "current")

    def forget_contacts(self) -> None:
        """The contacts of the current iterate have to be evaluated again, those of resting islands too."""
        self.contacts_known, self.touched = False, None
        self._unsettle()

    def launch_energies(self) -> None:
        """Energies of all but contacts at the current iterate, by launches only."""
        self._evaluate(self.pose, "current")

    def _unsettle(self) -> None:
        self.islands.unsettle()

    def know_contacts(self) -> None:
        """Contact energies of the current iterate on the current list, if they are not there already."""
        if not self.contacts_known:
            self.contacts.evaluate(self.pose, "current")
            self.contacts_known = True

    def carry_contacts(self, before: tuple[wp.array, ...]) -> None:
        """The list was renewed at the current iterate: its contacts are those of `before` where pairs are kept, which slot
        "current" held, and new ones; resting islands are looked at again."""
        self.forget_contacts()
        self.contacts.carry(self.pose, before)
        self.contacts_known = True

    def _evaluate(self, pose, slot: str) -> None:
        self._body_energies(pose, slot)
        self.joints.evaluate(pose, slot)
        self.friction.evaluate(pose, self.rest, self.eps, slot)

    def _body_energies(self, pose, slot: str) -> None:
        done, out = self.islands.done, self.values[slot]
        self.device.launch(bodies.body_energies, self.n, self.body, self.step, self.pose, pose, done, out)

    def _differences(self) -> None:
        """Every body's change of energy from the current iterate to the trial, and the size of its terms."""
        v = self.values
        difference, size = v["difference"], v["size"]
        states = self.pose, self.trial, v["current"], v["trial"]
        self.device.launch(bodies.body_differences, self.n, self.body, self.step, *states, difference, size)
        self.joints.add_differences(difference, size)
        self.contacts.add_differences(difference, size)
        self.friction.add_differences(difference, size)
