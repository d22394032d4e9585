"""Rebounds: velocities after the impacts of a step, and the previous state that the integrator then uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.answers import NO_PAIRS
from abd.backends.protocol import Backend
from abd.contact.forces import FrictionPoints, friction_points
from abd.contact.pair_rows import PairRows, keys
from abd.model import Model
from abd.step.articulations import Articulations
from abd.step.contact_parameters import became_active
from abd.step.host_copies import HostCopies
from abd.step.impacts.impact_pairs import ImpactPairs, Rebound
from abd.step.impacts.limit_impacts import limit_impact_pairs
from abd.step.impacts.restitution import Restitution
from cuda_kernels.shared.contact import SLIDE

Pair = tuple[np.ndarray, np.ndarray]


class Rebounds:
    """Impacts of the steps of one scene.

    Attributes:
        rebounded: (n,) bool, bodies with impacts in the last step.
        impact_pairs: (k, 2) pairs of bodies that an impact made active in the last step.
    """

    def __init__(self, model: Model, backend: Backend, articulations: Articulations, copies: HostCopies):
        self.model, self.settings, self.backend = model, model.settings, backend
        self.articulations, self.copies = articulations, copies
        self.restitution, self.rebounded = Restitution(model), articulations.none
        self.kinematic = np.flatnonzero(self.restitution.kinematic)
        self.impact_pairs = NO_PAIRS

    def forget(self) -> None:
        self.rebounded, self.impact_pairs = self.articulations.none, NO_PAIRS

    def rebound(self, h: float | np.ndarray, previous_h: float | np.ndarray, limited: np.ndarray) -> Rebound | None:
        """Set the velocities after impacts in a step of h after one of `previous_h` [s], scalars or (n,).

        Limits push on `limited` (n,) bodies; see `Restitution.rebound`."""
        backend, model, joints = self.backend, self.model, self.backend.system
        touching = self.articulations.dynamic & (backend.touch.touching() != 0)
        ends = joints.ends
        has_contact = touching | limited if len(ends) else touching
        if not has_contact.any():
            return None
        before, after = self._with_mean_velocities(h, previous_h)
        # excluded bodies must not supply energy
        if (inactive := self.articulations.dynamic & ~backend.inactive.mobile).any():
            before = tuple(np.where(inactive[:, None], end, begin) for begin, end in zip(before, after, strict=True))
        speed, tolerance = self.restitution.speeds(before[1], after[1]), self.settings.tolerance
        if not (has_contact & (speed > tolerance)).any():
            return None
        contacts = backend.readings.contact_impulses()
        if not (some := np.linalg.norm(contacts[1][:, :3], axis=1) > 0.0).all():
            contacts = tuple(one[some] for one in contacts)
        limits = ImpactPairs.none()
        if len(ends) and limited.any():
            memory, applied = self.copies.memory, self.copies.applied
            limits = limit_impact_pairs(model, joints, ends, memory, applied, after[0], h)
        # only pairs that move have impacts; pairs at rest take part in those of others
        moves = speed[contacts[0]].sum(axis=1) > 2.0 * tolerance
        possible = np.flatnonzero(moves & self._are_possible(*contacts, before[1], after[1], h))

        def impact_pairs(rows: np.ndarray) -> ImpactPairs:
            return ImpactPairs.of_contacts(model, *(one[rows] for one in contacts), after[0])

        some = ImpactPairs.joined(impact_pairs(possible), limits)
        if not len(some):
            return None
        step = self.restitution.step(before, after, np.isin(np.arange(len(model.bodies)), some.pairs))
        closing = self.restitution.approach(some, step, h)
        fresh = closing > 0.0
        if (has_contact := fresh & some.is_contact).any():
            fresh[has_contact] = became_active(backend, some.pairs[has_contact], closing[has_contact])
            self.impact_pairs = some.pairs[fresh & some.is_contact]
        if not self.restitution.has_impacts(some, step, h, fresh):
            return None
        all_pairs = ImpactPairs.joined(impact_pairs(moves), limits, impact_pairs(~moves))
        all_pairs = replace(all_pairs, friction=self._friction(all_pairs, after[0], h))
        is_fresh = np.zeros(len(all_pairs), dtype=bool)
        count = int(moves.sum())
        is_fresh[np.cumsum(moves)[possible] - 1] = fresh[: len(possible)]
        is_fresh[count : count + len(limits)] = fresh[len(possible) :]
        step = self.restitution.step(before, after)
        rebound = self.restitution.rebound(all_pairs, step, h, is_fresh, joints, backend.sweep)
        if rebound is not None:
            velocity = rebound.velocity.copy()
            velocity[self.kinematic] = self.copies.state[1][self.kinematic]
            self.copies.set_velocity(velocity)
            if joints.has_rotors:
                self.copies.memory = joints.after_impacts(self.copies.memory, after[0], rebound.velocity - after[1])
        return rebound

    def friction_points(self, q: np.ndarray) -> FrictionPoints:
        """Return the points with friction in the last step, which led to q (n, 12)."""
        pair, *lagged = self.backend.readings.frozen_friction()
        return friction_points(pair, *lagged, q, self.backend.at.eps[pair[:, 0].astype(int)], self.settings.eps_v)

    def _friction(self, impact_pairs: ImpactPairs, q: np.ndarray, h: float | np.ndarray) -> np.ndarray:
        """Return (k, 3) impulses of friction on the first bodies of pairs in the last step, of h [s], scalar or (n,) [N s]."""
        points, n = self.friction_points(q), len(q)
        points = points[points.kind == SLIDE]
        rows, out = PairRows(points.pair, n), np.zeros((len(impact_pairs), 3))
        if not rows.count:
            return out
        forces, lengths = rows.sums(points.force), np.broadcast_to(h, n)
        for sign, pairs in ((1.0, impact_pairs.pairs), (-1.0, impact_pairs.pairs[:, ::-1])):
            key = keys(pairs, n)
            at = np.minimum(np.searchsorted(rows.key, key), len(rows.key) - 1)
            is_known = (rows.key[at] == key) & impact_pairs.is_contact
            out[is_known] += sign * (lengths[pairs[:, 0], None] * forces[at])[is_known]
        return out

    def _are_possible(
        self, pairs: np.ndarray, on_i: np.ndarray, on_j: np.ndarray, before: np.ndarray, after: np.ndarray, h: float | np.ndarray
    ) -> np.ndarray:
        """Return (k,) bool, pairs (k, 2) that may have become active by an impact, or have one, by bounds of their speeds.

        on_i, on_j: (k, 12) impulses; before, after: (n, 12) velocities; h: length of the step [s], scalar or (n,)."""
        then, now = self.restitution.speed_bounds(pairs, on_i, on_j, before, after)
        length = np.broadcast_to(h, len(before))[pairs[:, 0]]
        possible = self.restitution.are_fast(then, now, length)
        rest = np.flatnonzero(~possible & (then > 2.0 * self.settings.tolerance))
        possible[rest] = became_active(self.backend, pairs[rest], (then * length)[rest])
        return possible

    def _with_mean_velocities(self, h: float | np.ndarray, previous_h: float | np.ndarray) -> tuple[Pair, Pair]:
        """Return states and velocities (n, 12) before and after the last step, with mean velocities of prescribed bodies.

        Implicit Euler gives mean velocities to the bodies that they carry. Their own are of second order, ``v = m + (m - m_0)
        h / (h + h_0)`` with the mean velocities m, m_0 of the last two steps."""
        (q_0, v_0), (q, v), some = self.copies.previous, self.copies.state, self.kinematic
        if self.settings.integrator != "generalized_alpha" or not len(some):
            return (q_0, v_0), (q, v)
        h, h_0 = (np.broadcast_to(length, len(q))[some, None] for length in (h, previous_h))
        mean, v_0, second_order, v = (q - q_0)[some] / h, v_0.copy(), v[some], v.copy()
        v[some] = mean
        v_0[some] = mean - (second_order - mean) * (h + np.where(h_0 > 0.0, h_0, h)) / h
        return (q_0, v_0), (q, v)

    def fit_velocities(self, bodies: np.ndarray, driven: dict[tuple[int, str], float]) -> None:
        """Fit velocities of bodies (n,) bool, from implicit Euler, to their joints and drives (`Restitution.fitted`)."""
        (q, qd), joints = self.copies.state, self.backend.system
        fitted = self.restitution.fitted(bodies, q, qd, joints, driven)
        if fitted is not None:
            self.copies.set_velocity(fitted)
            if joints.has_rotors:
                self.copies.memory = joints.after_impacts(self.copies.memory, q, fitted - qd)

    def begin_from(self, bodies: np.ndarray, h: float | np.ndarray) -> None:
        """Record that impacts changed the velocities of bodies (b,).

        bdf2 uses two states: the previous one becomes the start of a free fall to the present one with the new velocity.
        """
        self.rebounded = self.articulations.none.copy()
        self.rebounded[bodies] = True
        if self.settings.integrator == "bdf2":
            self.set_previous(*self.copies.previous, h)

    def set_previous(self, q: np.ndarray, qd: np.ndarray, h: float | np.ndarray) -> None:
        """Set states and velocities (n, 12) before the last step, now one of h [s], scalar or (n,); rebounded bodies get those of
        a free fall."""
        if self.settings.integrator == "bdf2" and self.rebounded.any():
            q, qd = q.copy(), qd.copy()
            now, velocity, some = *self.copies.state, self.rebounded
            q[some], qd[some] = before_fall(
                now[some], velocity[some], self.settings.gravity, np.broadcast_to(h, len(now))[some, None]
            )
        self.copies.set_previous(q, qd)


def before_fall(q: np.ndarray, qd: np.ndarray, gravity: np.ndarray, h: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return states (k, 12) and velocities from which free fall over h [s], scalar or (k, 1), leads to q, qd (k, 12)."""
    q, qd = q - h * qd, qd.copy()
    q[:, :3] += 0.5 * h * h * gravity
    qd[:, :3] -= h * gravity
    return q, qd
