"""Rebounds: velocities after the impacts of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from abd.backends.answers import NO_PAIRS
from abd.by_bodies import PerBody
from abd.contact.forces import FrictionPoints, friction_points
from abd.contact.pair_rows import keys
from abd.joints.rows.laws import Law
from abd.model import Model
from abd.step.contact_parameters import new_contacts
from abd.step.host_copies import HostCopies
from abd.step.impacts.impact_pairs import ImpactPairs, Reactions, Rebound
from abd.step.impacts.patches import cancelled, patches
from abd.step.impacts.restitution import Restitution
from abd.step.integrators import Articulations
from cuda_kernels.shared import slots

CELLS = 317.18
"""Number of cells per size of a body. Contact points are sorted by the cells of their places, so that rounding does not change
their order; no integer, because points of regular shapes would lie on the borders of cells."""


class Rebounds:
    """Impacts of the steps of one scene.

    Attributes:
        impact_pairs: (k, 2) pairs of bodies that an impact made active in the last step.
    """

    def __init__(self, model: Model, articulations: Articulations, copies: HostCopies):
        self.model, self.settings, self.backend = model, model.settings, copies.backend
        self.articulations, self.copies, self.restitution = articulations, copies, Restitution(model)
        self.forget()

    def forget(self) -> None:
        self.impact_pairs = NO_PAIRS

    def rebound(self, before: tuple[np.ndarray, np.ndarray] | None, h: PerBody, limited: np.ndarray) -> Rebound | None:
        """Set the velocities after impacts in a step of h [s], scalar or (n,).

        Args:
            before: (n, 12) velocities before the step and (n, 12) before the one before; None for the stored ones. Prescribed
                bodies have the mean velocities of steps, which implicit Euler gives to the bodies that they carry.
            limited: (n,) bool, bodies that limits push."""
        backend, model, joints = self.backend, self.model, self.backend.system
        touching = backend.touch.touching() != 0
        has_contact = touching | limited if joints.has_barriers else touching
        if not has_contact.any():
            return None
        (q_0, v_0), after = self.copies.previous, self.copies.present
        then, earlier = (v_0, v_0) if before is None else before
        before = q_0, then
        speeds = np.maximum(self.restitution.speeds(then), self.restitution.speeds(after[1]))
        if not (has_contact & (speeds > self.settings.tolerance)).any():
            return None
        step = self.restitution.step(before, after, then - earlier, h)
        twists, n = step.then + step.changes, len(step.then)
        points, contacts, pair, is_fresh = self._contacts(h, after[0], twists, step.now)
        limits = points[:0]
        if len(joints.hard_limits) and limited.any():
            limits = ImpactPairs.of_limits(model, joints, self.copies.memory, self.copies.applied, after[0], h)
        fresh = is_fresh, self._fresh_limits(limits, twists)
        self.impact_pairs = contacts.pairs[fresh[0]]
        pairs = ImpactPairs.joined(contacts, limits)
        is_seed = self.restitution.impacts(pairs, step, h, np.concatenate(fresh)).is_seed
        if not is_seed.any():
            return None
        in_impact = np.isin(np.arange(n), pairs.pairs[is_seed]) & self.restitution.dynamic
        patch, places = patches(points, in_impact)
        pairs = ImpactPairs.joined(points.summed(patch, places), limits)
        pairs = replace(pairs, friction=self._friction(pairs, after[0], h))
        impacts = self.restitution.impacts(pairs, step, h, np.append(fresh[0][pair[places]], fresh[1]))
        if not impacts.is_seed.any():  # parts of a contact that turns may open before it does
            return None
        rebound = self.restitution.rebound(impacts, step, joints, backend.sweep)
        if rebound is not None:
            rebound = replace(rebound, rotor_energy=self._set_velocity(rebound.velocity, rebound.velocity - after[1]))
        return rebound

    def fit_velocities(
        self, bodies: np.ndarray, driven: dict[tuple[int, str], float], compliant: np.ndarray
    ) -> tuple[float, list[Callable[[], Reactions]]]:
        """Fit velocities of bodies (n,) bool to joints and drives; return the work of drives [J] and the reactions of joints
        (`Restitution.fitted`). Rows `compliant` (R,) bool of compliant joints keep their rates."""
        if not bodies.any():
            return 0.0, []
        (q, qd), rates = self.copies.present, self.copies.memory.history[slots.RATE]
        velocity, work, reactions = self.restitution.fitted(bodies, q, qd, self.backend.system, driven, compliant, rates)
        if (velocity == qd).all():
            return 0.0, []
        self._set_velocity(velocity, velocity - qd)
        self.copies.memory.history[slots.RATE, compliant] = rates[compliant]
        return work, reactions

    def friction_points(self, q: np.ndarray) -> FrictionPoints:
        """Return the points with friction in the last step, which led to q (n, 12)."""
        pair, *lagged = self.backend.readings.frozen_friction()
        return friction_points(pair, *lagged, q, self.backend.at.eps[pair[:, 0].astype(int)], self.settings.eps_v)

    def ahead(self, h: PerBody) -> np.ndarray:
        """Return (n,) bool, the bodies that joints and contacts connect with contacts that will have an impact.

        They are those at the iterate of a substep of h [s], scalar or (n,)."""
        (q_0, _), q = self.copies.present, self.backend.states.read_positions()
        then = self.restitution.twists(*self.copies.present)
        moved = self.restitution.twists(q, (q - q_0) / np.broadcast_to(h, len(q))[:, None])
        _, contacts, _, fresh = self._contacts(h, q, then, moved)
        least = self.restitution.least(contacts, h, fresh)
        bodies = np.isin(np.arange(len(then)), contacts.pairs[_closing(contacts, then) > least])
        return self.articulations.touching(bodies, contacts.pairs)

    def _contacts(
        self, h: PerBody, q: np.ndarray, twists: np.ndarray, moved: np.ndarray
    ) -> tuple[ImpactPairs, ImpactPairs, np.ndarray, np.ndarray]:
        """Return the contact points in the states q (n, 12) at the end of a substep of h [s], their sums by pair of bodies, the
        pair of every point, and (k,) bool, pairs that became active in the substep and close with twists (n, 6).

        moved: (n, 6) mean twists of the substep.

        Pairs that have only just reached their activation distance are not included; the next substep has their impacts."""
        pressing = self.backend.readings.pressing()
        points = ImpactPairs.of_contacts(self.model, pressing[(pressing.force != 0.0).any(axis=1)], h)
        # the same order on all devices and in turned scenes, because sweeps depend on it
        i = points.pairs[:, 0]
        rest = np.einsum("kij,ki->kj", q[i, 3:].reshape(-1, 3, 3), points.place - q[i, :3])
        size = self.restitution.reach[i, None]
        cell = np.round(CELLS * rest / np.where(size > 0.0, size, 1.0))
        points = points[np.lexsort([*cell.T, *points.pairs.T[::-1]])]
        key, pair = np.unique(keys(points.pairs, len(q)), return_inverse=True)
        points = points[~cancelled(points.size, pair, len(key))[pair]]
        contacts, pair = _by_pair(points, len(q))
        closes = _closing(contacts, twists) > 2.0 * self.settings.tolerance
        if not closes.any():
            return points, contacts, pair, closes
        gaps = points.distances - self.settings.minimum_separation
        approach = _closing(points, moved) * np.broadcast_to(h, len(q))[points.pairs[:, 0]]
        is_new, arrives = new_contacts(self.backend.pair_law, contacts.pairs, pair, points.size, gaps + approach, gaps)
        fresh, arrives = closes & is_new, closes & arrives
        if arrives.any():
            points, fresh = points[~arrives[pair]], fresh[~arrives]
            contacts, pair = _by_pair(points, len(q))
        return points, contacts, pair, fresh

    def _fresh_limits(self, limits: ImpactPairs, twists: np.ndarray) -> np.ndarray:
        """Return (k,) bool, limits without a barrier force when the step began, and ropes, if they close with twists (n, 6)."""
        laws, last_gap = self.backend.system.row_laws, self.copies.applied.p[limits.row, slots.LAST_GAP]
        in_reach = (laws.law[limits.row] == Law.BARRIER) & (last_gap < laws.distance[limits.row])
        return ~in_reach & (_closing(limits, twists) > 2.0 * self.settings.tolerance)

    def _friction(self, pairs: ImpactPairs, q: np.ndarray, h: float | np.ndarray) -> np.ndarray:
        """Return (k, 3) impulses of friction on the first bodies of pairs in the last step, of h [s], scalar or (n,) [N s]."""
        out, contact = np.zeros((len(pairs), 3)), pairs[pairs.is_contact]
        lengths = np.broadcast_to(h, len(q))[contact.pairs[:, 0]]
        out[pairs.is_contact] = lengths[:, None] * self.friction_points(q).at_points(contact.pairs, contact.place)[0]
        return out

    def _set_velocity(self, velocity: np.ndarray, change: np.ndarray) -> float:
        """Set the velocities (n, 12), and those of joint rows by a change (n, 12) of the bodies' velocities; return the energy
        [J] that rotors gain."""
        joints = self.backend.system
        self.copies.set_velocity(velocity)
        before = joints.rotor_energy(self.copies.memory)
        self.copies.memory = joints.after_impacts(self.copies.memory, self.copies.q, change)
        return joints.rotor_energy(self.copies.memory) - before


def _by_pair(points: ImpactPairs, bodies: int) -> tuple[ImpactPairs, np.ndarray]:
    """Return the sums of the points by pair of bodies, and the pair of every point."""
    _, first, pair = np.unique(keys(points.pairs, bodies), return_index=True, return_inverse=True)
    return points.summed(pair, first), pair


def _closing(pairs: ImpactPairs, twists: np.ndarray) -> np.ndarray:
    """Return (k,) closing speeds of pairs with twists (n, 6) [m/s]."""
    return -pairs.power(twists) / pairs.size
