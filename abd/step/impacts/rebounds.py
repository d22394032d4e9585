"""Rebounds: velocities after the impacts of a step, and the previous state that the integrator then uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.answers import NO_PAIRS
from abd.contact.forces import FrictionPoints, friction_points
from abd.contact.pair_rows import PairRows, keys, places
from abd.model import Model
from abd.step.contact_parameters import became_active
from abd.step.host_copies import HostCopies
from abd.step.impacts.impact_pairs import ImpactPairs, Rebound
from abd.step.impacts.restitution import Restitution, Step
from abd.step.integrators import Articulations
from cuda_kernels.shared.contact import SLIDE

Pair = tuple[np.ndarray, np.ndarray]


class Rebounds:
    """Impacts of the steps of one scene.

    Attributes:
        impact_pairs: (k, 2) pairs of bodies that an impact made active in the last step.
    """

    def __init__(self, model: Model, articulations: Articulations, copies: HostCopies):
        self.model, self.settings, self.backend = model, model.settings, copies.backend
        self.articulations, self.copies, self.restitution = articulations, copies, Restitution(model)
        self.kinematic = np.flatnonzero(self.restitution.kinematic)
        self.forget()

    def forget(self) -> None:
        self.impact_pairs = NO_PAIRS

    def rebound(self, h: float | np.ndarray, previous_h: float | np.ndarray, limited: np.ndarray) -> Rebound | None:
        """Set the velocities after impacts in a step of h after one of `previous_h` [s], scalars or (n,).

        Limits push on `limited` (n,) bodies; see `Restitution.rebound`."""
        backend, model, joints = self.backend, self.model, self.backend.system
        touching = backend.touch.touching() != 0
        has_contact = touching | limited if len(joints.ends) else touching
        if not has_contact.any():
            return None
        before, after = self._with_mean_velocities(h, previous_h)
        # excluded bodies must not supply energy
        if (inactive := self.articulations.dynamic & ~backend.inactive.mobile).any():
            before = tuple(np.where(inactive[:, None], end, begin) for begin, end in zip(before, after, strict=True))
        if not (has_contact & (self.restitution.speeds(before[1], after[1]) > self.settings.tolerance)).any():
            return None
        pairs = ImpactPairs.of_contacts(model, *backend.readings.contact_impulses(), after[0])
        if len(joints.ends) and limited.any():
            limits = ImpactPairs.of_limits(model, joints, self.copies.memory, self.copies.applied, after[0], h)
            pairs = ImpactPairs.joined(pairs, limits)
        step = self.restitution.step(before, after)
        impacts, is_seed = self.restitution.impacts(pairs, step, h, self._are_fresh(pairs, step, h))
        if not is_seed.any():
            return None
        impacts = replace(impacts, impact_pairs=replace(pairs, friction=self._friction(pairs, after[0], h)))
        rebound = self.restitution.rebound(impacts, is_seed, step, joints, backend.sweep)
        if rebound is not None:
            velocity = rebound.velocity.copy()
            velocity[self.kinematic] = self.copies.qd[self.kinematic]
            self._set_velocity(velocity, rebound.velocity - after[1])
            if self.settings.integrator == "bdf2":
                self._fall_before(rebound.bodies, h)
        return rebound

    def fit_velocities(self, bodies: np.ndarray, driven: dict[tuple[int, str], float]) -> None:
        """Fit velocities of bodies (n,) bool, from implicit Euler, to their joints and drives (`Restitution.fitted`)."""
        q, qd = self.copies.present
        fitted = self.restitution.fitted(bodies, q, qd, self.backend.system, driven)
        if fitted is not None:
            self._set_velocity(fitted, fitted - qd)

    def friction_points(self, q: np.ndarray) -> FrictionPoints:
        """Return the points with friction in the last step, which led to q (n, 12)."""
        pair, *lagged = self.backend.readings.frozen_friction()
        return friction_points(pair, *lagged, q, self.backend.at.eps[pair[:, 0].astype(int)], self.settings.eps_v)

    def _are_fresh(self, pairs: ImpactPairs, step: Step, h: float | np.ndarray) -> np.ndarray:
        """Return (k,) bool, pairs that became active in a step of h [s], scalar or (n,), and closed; record those of bodies."""
        closing = -pairs.power(step.then) / pairs.size
        fresh = closing > 2.0 * self.settings.tolerance
        if (contacts := fresh & pairs.is_contact).any():
            some, lengths = pairs.pairs[contacts], np.broadcast_to(h, len(step.then))
            fresh[contacts] = became_active(self.backend, some, closing[contacts] * lengths[some[:, 0]])
            self.impact_pairs = pairs.pairs[fresh & pairs.is_contact]
        return fresh

    def _friction(self, pairs: ImpactPairs, q: np.ndarray, h: float | np.ndarray) -> np.ndarray:
        """Return (k, 3) impulses of friction on the first bodies of pairs in the last step, of h [s], scalar or (n,) [N s]."""
        points, n = self.friction_points(q), len(q)
        points = points[points.kind == SLIDE]
        sliding, out = PairRows(points.pair, n), np.zeros((len(pairs), 3))
        forces, lengths = sliding.sums(points.force), np.broadcast_to(h, n)[pairs.pairs[:, 0]]
        for sign, each in ((1.0, pairs.pairs), (-1.0, pairs.pairs[:, ::-1])):
            at, is_known = places(sliding.key, keys(each, n))
            is_known &= pairs.is_contact
            out[is_known] += sign * lengths[is_known, None] * forces[at[is_known]]
        return out

    def _with_mean_velocities(self, h: float | np.ndarray, previous_h: float | np.ndarray) -> tuple[Pair, Pair]:
        """Return states and velocities (n, 12) before and after the last step, with mean velocities of prescribed bodies.

        Implicit Euler gives mean velocities to the bodies that they carry. Their own are of second order, ``v = m + (m - m_0)
        h / (h + h_0)`` with the mean velocities m, m_0 of the last two steps."""
        (q_0, v_0), (q, v), some = self.copies.previous, self.copies.present, self.kinematic
        if self.settings.integrator != "generalized_alpha" or not len(some):
            return (q_0, v_0), (q, v)
        h, h_0 = (np.broadcast_to(length, len(q))[some, None] for length in (h, previous_h))
        mean, v_0, second_order, v = (q - q_0)[some] / h, v_0.copy(), v[some], v.copy()
        v[some] = mean
        v_0[some] = mean - (second_order - mean) * (h + np.where(h_0 > 0.0, h_0, h)) / h
        return (q_0, v_0), (q, v)

    def _set_velocity(self, velocity: np.ndarray, change: np.ndarray) -> None:
        """Set the velocities (n, 12), and those of rotors by a change (n, 12) of the bodies' velocities."""
        joints = self.backend.system
        self.copies.set_velocity(velocity)
        if joints.has_rotors:
            self.copies.memory = joints.after_impacts(self.copies.memory, self.copies.q, change)

    def _fall_before(self, bodies: np.ndarray, h: float | np.ndarray) -> None:
        """Set the previous state of bodies (b,) with impacts to the start of a free fall over h [s] to the present state, since
        bdf2 uses two states."""
        (q, qd), (q_0, v_0) = self.copies.present, self.copies.previous
        q_0, v_0, h = q_0.copy(), v_0.copy(), np.broadcast_to(h, len(q))[bodies, None]
        q_0[bodies], v_0[bodies] = q[bodies] - h * qd[bodies], qd[bodies]
        q_0[bodies, :3] += 0.5 * h * h * self.settings.gravity
        v_0[bodies, :3] -= h * self.settings.gravity
        self.copies.set_previous(q_0, v_0)
