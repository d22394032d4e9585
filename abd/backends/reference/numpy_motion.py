"""Inertial targets and momenta of all bodies in a step, from `abd.potentials.free_motion`; `abd.step.integrators` says
what a scheme's numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.reference.numpy_bodies import maps, positions, state, turning
from abd.backends.warp.body_data import BodyData, Turning
from abd.contact.path import axial, rotations
from abd.model import Kind
from abd.potentials import free_motion, gyration
from abd.step.integrators import LASTING, Mode, Scheme


@dataclass(frozen=True)
class Target:
    """What a step begins with.

    Attributes:
        q: (n, 12) inertial targets; scale: (n,) weights s_b of the inertia; rest: (n, 12) friction's reference.
        dp, w: (n, 3) displacement [m] and turn [rad] to where Newton starts; load: (n,) [s^2] what external forces per mass
            add to dp where nothing is in the way; push, twist: (n, 3) what bodies in contact add to dp [m] and w [rad].
    """

    q: np.ndarray
    scale: np.ndarray
    rest: np.ndarray
    dp: np.ndarray
    w: np.ndarray
    load: np.ndarray
    push: np.ndarray
    twist: np.ndarray


class Motion:
    """Targets and momenta of bodies with the constants `data`."""

    def __init__(self, data: BodyData):
        self.data = data
        self.dynamic = data.kind == Kind.DYNAMIC
        self.projectors = turning(data)
        self.mass_matrix = np.concatenate([np.repeat(data.mass[:, None], 3, 1), *[data.moment] * 3], axis=1)
        self.inverse_mass = np.divide(1.0, data.mass, out=np.zeros_like(data.mass), where=data.mass > 0.0)[:, None]

    def spins(self, inertia: np.ndarray, L: np.ndarray) -> np.ndarray:
        """(n, 3) angular velocities that the bodies' freedom to turn leaves the momenta L (n, 3)."""
        e, kind = self.data.axis, self.data.rotation
        moment = np.einsum("ni,nij,nj->n", e, inertia, e)
        along = np.divide(np.sum(e * L, axis=1), moment, out=np.zeros(len(e)), where=moment > 0.0)
        kinds = [(kind == one)[:, None] for one in (Turning.FREE, Turning.AXIS)]
        return np.select(kinds, [free_motion.spin(inertia, L), along[:, None] * e], 0.0)

    def turnings(self, q: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(n, 3) angular velocities in rates (n, 12), as far as the bodies may turn."""
        return np.einsum("nij,nj->ni", self.projectors, axial(maps(velocity) @ np.linalg.inv(maps(q))))

    def coast(self, rule: Scheme, mode: np.ndarray, q: np.ndarray, velocity: np.ndarray, memory: np.ndarray) -> Target:
        """By the free rigid motion of the step with the impulse of what is remembered (n, 12)."""
        h, k, A = rule.h, rule.motion[mode], maps(q)
        force, torque, mean_force, mean_torque = np.split(memory, 4, axis=1)
        w, inertia = self.turnings(q, velocity), free_motion.inertia(A, self.data.moment)
        L = np.einsum("nij,nj->ni", inertia, w)
        free = (self.data.rotation == Turning.FREE)[:, None, None]
        share, spun = self.spun(k, memory, inertia, L)
        impulse = k[:, [2]] * force + k[:, [3]] * mean_force + spun[:, :3]
        dp = h * (velocity[:, :3] + self.inverse_mass * impulse)
        ahead = dp + self.inverse_mass * (k[:, [11]] * force + k[:, [12]] * mean_force - h * spun[:, :3])
        Q = np.where(free, free_motion.free_rotation(inertia, L, h), rotations(h * w))
        # what forces turn is the body as it will stand, like the implicit part of the step
        stands = np.where(free, Q @ inertia @ Q.transpose(0, 2, 1), inertia)
        kicked = h * self.spins(stands, k[:, [2]] * torque + k[:, [3]] * mean_torque + spun[:, 3:])
        extra = self.spins(stands, k[:, [11]] * torque + k[:, [12]] * mean_torque - h * spun[:, 3:])
        Q = rotations(kicked) @ Q
        lead = free_motion.nearest_turn(rotations(extra) @ Q, h * w)
        pushed = (self.dynamic & (mode == Mode.DISSIPATIVE))[:, None]
        push = h * h * self.inverse_mass * lasting(force, mean_force)
        twist = h * h * self.spins(stands, lasting(torque, mean_torque))
        moves = self.dynamic[:, None]
        return Target(
            q=np.where(moves, state(positions(q) + dp, Q @ A), q),
            scale=np.where(self.dynamic, k[:, 1] / share, 1.0),
            rest=q,
            dp=np.where(moves, ahead, 0.0),
            w=np.where(moves, lead, 0.0),
            load=np.where(self.dynamic, k[:, 13], 0.0),
            push=np.where(pushed, push, 0.0),
            twist=np.where(pushed, twist, 0.0),
        )

    def spun(
        self, k: np.ndarray, memory: np.ndarray, inertia: np.ndarray, L: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """By what bodies that spin with momenta L (n, 3) answer other forces than those at rest (`abd.potentials.gyration`):
        D1 / beta (n,), and what is added to the impulse of what they remember (n, 6)."""
        free, root = self.data.rotation == Turning.FREE, k[:, 16]
        h, middle, size = k[:, 0], np.linalg.eigvalsh(inertia)[:, 1], np.linalg.norm(L, axis=1)
        spins = self.dynamic & free & (root >= 0.0) & (middle > 0.0) & (size > 0.0)
        root, beta = np.where(spins, root, 0.0), 1.0 / (1.0 + np.where(spins, root, 0.0)) ** 2
        new, old = gyration.shares(np.where(spins, h * size / np.where(spins, middle, 1.0), 0.0), root)
        known = memory.reshape(-1, 2, 6)
        last = np.einsum("nk,nkj->nj", k[:, 14:16], known)
        added = (h * (new - beta))[:, None] * (np.einsum("nk,nkj->nj", k[:, 6:8], known) - last)
        e, torque = L / np.where(spins, size, 1.0)[:, None], last[:, 3:]
        across = torque - np.sum(e * torque, axis=1, keepdims=True) * e
        turned = (old.real - (0.5 - new))[:, None] * across + old.imag[:, None] * np.cross(e, across)
        added[:, 3:] += h[:, None] * turned
        return np.where(spins, new / beta, 1.0), np.where(spins[:, None], added, 0.0)

    def keep(
        self, rule: Scheme, mode: np.ndarray, target: Target, q: np.ndarray, now: np.ndarray, before: np.ndarray,
        velocity: np.ndarray, memory: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Velocities and memory (n, 12) after a step from `now` to q; `velocity` before it."""
        k, A = rule.motion[mode], maps(q)
        stiffness = k[:, 4] * (target.scale / np.where(self.dynamic, k[:, 1], 1.0))
        pushed = stiffness[:, None] * self.mass_matrix * (q - target.q)
        fresh = np.concatenate([pushed[:, :3], free_motion.torque(maps(pushed), A)], axis=1)
        last, mean = memory[:, :6], memory[:, 6:]
        gain = k[:, [8]] * fresh + k[:, [9]] * last + k[:, [10]] * mean
        kept = np.concatenate([fresh, k[:, [5]] * fresh + k[:, [6]] * last + k[:, [7]] * mean], axis=1)
        v = velocity[:, :3] + self.inverse_mass * gain[:, :3]
        inertia = free_motion.inertia(maps(now), self.data.moment)
        L = np.einsum("nij,nj->ni", inertia, self.turnings(now, velocity)) + gain[:, 3:]
        w = self.spins(free_motion.inertia(A, self.data.moment), L)
        rigid = state(v, free_motion.rates(A, w))
        other = difference(rule, q, now, before)
        moves = self.dynamic[:, None]
        return np.where(moves, rigid, other), np.where(moves, kept, memory)

    def chord(
        self, rule: Scheme, q: np.ndarray, before: np.ndarray, velocity: np.ndarray, earlier: np.ndarray
    ) -> Target:
        """On the chords of the last two steps."""
        u = rule.weights[1]
        target = u[0] * q + u[1] * before + u[2] * velocity + u[3] * earlier
        return Target(
            q=target,
            scale=np.ones(len(q)),
            rest=u[4] * q + u[5] * before,
            dp=positions(target) - positions(q),
            w=rule.h * self.turnings(q, velocity),
            load=np.full(len(q), rule.c * rule.h**2),
            push=np.zeros((len(q), 3)),
            twist=np.zeros((len(q), 3)),
        )


def lasting(force: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Forces (n, 3) that did not grow beyond `LASTING` times what they were in the step before; zero for those that did."""
    size, old = (np.linalg.norm(one, axis=1, keepdims=True) for one in (force, before))
    return np.where(size > LASTING * old, 0.0, force)


def difference(rule: Scheme, q: np.ndarray, now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(n, 12) rates at q by the differences to the states before it."""
    return rule.weights[1, 6] * (q - now) + rule.weights[1, 8] * (before - now)
