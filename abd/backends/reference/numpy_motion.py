"""Inertial targets and momenta of all bodies in a step, from `abd.potentials.free_motion`; `abd.potentials.integrators` defines
the coefficients of the schemes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from abd.backends.body_data import BodyData, Turning
from abd.backends.reference.numpy_bodies import maps, mass_matrix, positions, state, turning
from abd.model import Kind
from abd.potentials import free_motion, gyration
from abd.potentials.integrators import Mode, Scheme, Schemes, levels
from abd.rotations import axial, nearest_rotation_vectors, rotations
from cuda_kernels.shared.bodies import PERSISTENT


@dataclass(frozen=True)
class Target:
    """Targets of a step.

    Attributes:
        q: (n, 12) inertial targets; scale: (n,) weights s_b of the inertia; rest: (n, 12) friction's reference.
        dp, w: (n, 3) displacement [m] and turn [rad] to the start of Newton's method; load: (n,) [s^2] factor of external forces
            per mass in dp without contact; push, twist: (n, 3) additions to dp [m] and w [rad] of bodies in contact.
    """

    q: np.ndarray
    scale: np.ndarray
    rest: np.ndarray
    dp: np.ndarray
    w: np.ndarray
    load: np.ndarray
    push: np.ndarray
    twist: np.ndarray


@dataclass
class HostScheme:
    """The lengths (n,) [s] of the step on the device, its scheme, the modes (n,) of the bodies
    (`abd.potentials.integrators.Mode`), their rows (n,) of its `motion`, and the target."""

    lengths: Any
    rule: Scheme | Schemes | None = None
    mode: np.ndarray | None = None
    rows: np.ndarray | None = None
    target: Target | None = None


class Motion:
    """Targets and momenta of bodies with the constants `data`."""

    def __init__(self, data: BodyData, mechanism: np.ndarray, armed: np.ndarray, arms: np.ndarray):
        self.data, self.mechanism, self.armed, self.arms = data, mechanism, armed, arms
        self.dynamic = data.kind == Kind.DYNAMIC
        self.projectors = turning(data)
        self.mass_matrix = mass_matrix(data)
        self.thin = np.where(self.dynamic & (data.rotation == Turning.FREE), gyration.thin_axis(data.moment), -1)
        self.inverse_mass = np.divide(1.0, data.mass, out=np.zeros_like(data.mass), where=data.mass > 0.0)[:, None]

    def spins(self, inertia: np.ndarray, L: np.ndarray) -> np.ndarray:
        """Return (n, 3) angular velocities from the momenta L (n, 3), within the rotational freedom of the bodies."""
        e, kind = self.data.axis, self.data.rotation
        moment = np.einsum("ni,nij,nj->n", e, inertia, e)
        along = np.divide(np.sum(e * L, axis=1), moment, out=np.zeros(len(e)), where=moment > 0.0)
        kinds = [(kind == one)[:, None] for one in (Turning.FREE, Turning.AXIS)]
        return np.select(kinds, [free_motion.spin(inertia, L), along[:, None] * e], 0.0)

    def turnings(self, q: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return (n, 3) angular velocities of rates (n, 12), within the rotational freedom of the bodies."""
        return np.einsum("nij,nj->ni", self.projectors, axial(maps(velocity) @ np.linalg.inv(maps(q))))

    def rows(self, rule: Scheme | Schemes, mode: np.ndarray, q: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return (n,) rows of `Scheme.motion` for bodies of these modes in a state (`abd.potentials.integrators.levels`)."""
        arms = np.einsum("kij,kj->ki", maps(q)[self.armed], self.arms)
        turns = np.linalg.norm(np.cross(self.turnings(q, velocity)[self.armed], arms), axis=1)
        level = np.zeros(len(mode), dtype=int)
        of = np.broadcast_to(rule.of, len(mode))[self.armed]
        for place, one in enumerate(rule.each):
            is_of_scheme = of == place
            np.maximum.at(level, self.mechanism[self.armed[is_of_scheme]], levels(one, turns[is_of_scheme]))
        return np.where(mode == Mode.SMOOTH, Mode.SMOOTH + level[self.mechanism], mode)

    def coast(
        self, rule: Scheme | Schemes, mode: np.ndarray, q: np.ndarray, velocity: np.ndarray, memory: np.ndarray,
        pulled: np.ndarray,
    ) -> Target:  # fmt: skip
        """Return the target of free rigid motion with the impulse of stored forces (n, 12) and of springs.

        mode: (n,) `rows`; pulled: (n, 12) spring forces at the start of the step (`abd.joints.rows.springs.pulls`)."""
        k, A = rule.rows(mode), maps(q)
        h = k[:, [0]]
        mean_force, mean_torque = memory[:, 6:9], memory[:, 9:]
        w, inertia = self.turnings(q, velocity), free_motion.inertia(A, self.data.moment)
        L = np.einsum("nij,nj->ni", inertia, w)
        free = (self.data.rotation == Turning.FREE)[:, None, None]
        Q = np.where(free, free_motion.free_rotation(inertia, L, h[:, 0]), rotations(h * w))
        # torques act on the body in its attitude at the end, as in the implicit part of the step
        known = memory.reshape(-1, 2, 6)
        along = self.thin_axes(A)
        ends = np.einsum("nij,nj->ni", Q, along)
        ratio, extra_impulse, last, old = self.spun(k, known, inertia, L)
        kick, lead = (blended(k, column, known) + sign * extra_impulse for column, sign in ((2, 1.0), (11, -h)))
        ends_by = (ratio / np.where(self.dynamic, k[:, 4], 1.0))[:, None] * pulled[:, 6:]
        kick, lead = kick + 0.5 * h * pulled[:, :6] - ends_by / h, lead + ends_by
        dp = h * (velocity[:, :3] + self.inverse_mass * kick[:, :3])
        ahead = dp + self.inverse_mass * lead[:, :3]
        last = gyration.carried(last, along, ends)
        e = L / np.where(old == 0.0, 1.0, np.linalg.norm(L, axis=1))[:, None]
        across = last - np.sum(e * last, axis=1, keepdims=True) * e
        turned = h * (old.real[:, None] * across + old.imag[:, None] * np.cross(e, across))
        turned -= np.sum(turned * ends, axis=1, keepdims=True) * ends
        kick, lead = (gyration.carried(one[:, 3:], along, ends) + sign * turned for one, sign in ((kick, 1.0), (lead, -h)))
        thin_now = np.where(free, Q @ inertia @ Q.transpose(0, 2, 1), inertia)
        kicked, extra = h * self.spins(thin_now, kick), self.spins(thin_now, lead)
        Q = rotations(kicked) @ Q
        lead = nearest_rotation_vectors(rotations(extra) @ Q, h * w)
        pushed = (self.dynamic & (mode == Mode.DISSIPATIVE))[:, None]
        push = h * h * self.inverse_mass * mean_force
        twist = h * h * self.spins(thin_now, mean_torque)
        moves = self.dynamic[:, None]
        return Target(
            q=np.where(moves, state(positions(q) + dp, Q @ A), q),
            scale=np.where(self.dynamic, k[:, 1] / ratio, 1.0),
            rest=q - h * self.surface_rates(A),
            dp=np.where(moves, ahead, 0.0),
            w=np.where(moves, lead, 0.0),
            load=np.where(self.dynamic, k[:, 13], 0.0),
            push=np.where(pushed, push, 0.0),
            twist=np.where(pushed, twist, 0.0),
        )

    def surface_rates(self, A: np.ndarray) -> np.ndarray:
        """Return (n, 12) rates of the surface material relative to bodies with maps A (n, 3, 3)."""
        return np.pad(np.einsum("nij,nj->ni", A, self.data.surface), ((0, 0), (0, 9)))

    def thin_axes(self, A: np.ndarray) -> np.ndarray:
        """Return (n, 3) unit vectors along the thin axes of bodies, zero for others."""
        return np.where((self.thin >= 0)[:, None], own_axes(A, self.thin), 0.0)

    def spun(
        self, k: np.ndarray, known: np.ndarray, inertia: np.ndarray, L: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return corrections for bodies that spin with momenta L (n, 3) (`abd.potentials.gyration`).

        These are D1 / beta (n,); an addition to the impulse of stored forces `known` (n, 2, 6); the mean torques of the last step
        (n, 3), and the fraction (n,), complex, of their part across L that is added."""
        free, root = self.data.rotation == Turning.FREE, k[:, 14]
        h, middle, size = k[:, 0], np.linalg.eigvalsh(inertia)[:, 1], np.linalg.norm(L, axis=1)
        spins = self.dynamic & free & (root >= 0.0) & (middle > 0.0) & (size > 0.0)
        root, beta = np.where(spins, root, 0.0), 1.0 / (1.0 + np.where(spins, root, 0.0)) ** 2
        new, old = gyration.displacement_factors(np.where(spins, h * size / np.where(spins, middle, 1.0), 0.0), root)
        last = known[:, 1]
        extra_impulse = np.where(spins, h * (new - beta), 0.0)[:, None] * (blended(k, 6, known) - last)
        return np.where(spins, new / beta, 1.0), extra_impulse, last[:, 3:], np.where(spins, old - (0.5 - new), 0.0)

    def keep(
        self, rule: Scheme | Schemes, mode: np.ndarray, target: Target, q: np.ndarray, now: np.ndarray, velocity: np.ndarray,
        memory: np.ndarray, pulled: np.ndarray, pulls: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return velocities and stored forces (n, 12) after a step from `now` to q.

        velocity: before the step; pulled, pulls: (n, 12) spring forces before and after it (`abd.joints.rows.springs.pulls`)."""
        k, A = rule.rows(mode), maps(q)
        fresh = self.end_wrenches(k, target, q) - pulls[:, 6:]
        known = memory.reshape(-1, 2, 6)
        along, thin_now = self.thin_axes(maps(now)), self.thin_axes(A)
        impulse, mean = (blended(k, column, known) for column in (9, 6))
        first, last = (0.5 * k[:, [0]] * one[:, :6] for one in (pulled, pulls))
        gain = k[:, [8]] * fresh + impulse + first + last
        mean[:, 3:] = gyration.carried(mean[:, 3:], along, thin_now)
        mean = k[:, [5]] * fresh + mean
        dissipative = (mode == Mode.DISSIPATIVE)[:, None]
        for part in (slice(0, 3), slice(3, 6)):
            mean[:, part] = np.where(dissipative, persistent_force(fresh[:, part], memory[:, part]), mean[:, part])
        kept = np.concatenate([fresh, mean], axis=1)
        v = velocity[:, :3] + self.inverse_mass * gain[:, :3]
        inertia = free_motion.inertia(maps(now), self.data.moment)
        old = np.einsum("nij,nj->ni", inertia, self.turnings(now, velocity))
        about = k[:, 8] * np.sum(thin_now * fresh[:, 3:], axis=1) + np.sum(along * impulse[:, 3:], axis=1)
        about += np.sum(thin_now * last[:, 3:], axis=1) + np.sum(along * first[:, 3:], axis=1)
        L = old + gain[:, 3:]
        L = self.about_thin(k, maps(now), inertia, old, A, L, thin_now, about)
        w = self.spins(free_motion.inertia(A, self.data.moment), L)
        rigid = state(v, free_motion.rates(A, w))
        other = (q - now) / np.reshape(rule.h, (-1, 1))  # mean rates of the step
        moves = self.dynamic[:, None]
        return np.where(moves, rigid, other), np.where(moves, kept, memory)

    def end_wrenches(self, k: np.ndarray, target: Target, q: np.ndarray) -> np.ndarray:
        """Return (n, 6) net forces and torques at the end of a step to q, by rows k (n, 16) of `Scheme.motion`."""
        stiffness = k[:, 4] * (target.scale / np.where(self.dynamic, k[:, 1], 1.0))
        pushed = stiffness[:, None] * self.mass_matrix * (q - target.q)
        return np.concatenate([pushed[:, :3], free_motion.torque(maps(pushed), maps(q))], axis=1)

    def about_thin(
        self, k: np.ndarray, now: np.ndarray, inertia: np.ndarray, old: np.ndarray, A: np.ndarray, L: np.ndarray,
        thin_now: np.ndarray, about: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Return momenta L (n, 3) at A with components about thin axes by Euler's equation (`abd.potentials.gyration`).

        These follow from impulses `about` them (n,), and from the free motion from `now` with momenta `old` (n, 3)."""
        some, h = self.thin >= 0, k[:, 0]
        Q = free_motion.free_rotation(inertia, old, h)
        free = free_motion.spin(Q @ inertia @ Q.transpose(0, 2, 1), old)
        w = self.spins(free_motion.inertia(A, self.data.moment), L)
        second, third = (np.where(some, (self.thin + turn) % 3, 0) for turn in (1, 2))
        rows = np.arange(len(L))
        apart = self.data.moment[rows, third] - self.data.moment[rows, second]  # J_2 - J_3
        at = Q @ now
        end_product, free_product = (
            np.prod([np.sum(own_axes(one, axis) * rate, axis=1) for axis in (second, third)], axis=0)
            for one, rate in ((A, w), (at, free))
        )
        ends = np.einsum("nij,nj->ni", Q, self.thin_axes(now))
        about = about + np.sum(ends * old, axis=1) + 0.5 * h * apart * (end_product - free_product)
        return L + (about - np.sum(thin_now * L, axis=1))[:, None] * thin_now


def blended(k: np.ndarray, column: int, known: np.ndarray) -> np.ndarray:
    """Return (n, 6) combinations of the last and the mean stored forces (n, 2, 6) by two columns of `Scheme.motion`."""
    return np.einsum("nk,nkj->nj", k[:, column : column + 2], known)


def own_axes(A: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return (n, 3) unit vectors along the own axes (n,) of bodies with maps A (n, 3, 3)."""
    e = np.take_along_axis(A, np.maximum(axis, 0)[:, None, None], axis=2)[:, :, 0]
    return e / np.linalg.norm(e, axis=1, keepdims=True)


def persistent_force(force: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return forces (n, 3) that did not grow beyond `PERSISTENT` times those of the step before; zero for others."""
    size, old = (np.linalg.norm(one, axis=1, keepdims=True) for one in (force, before))
    return np.where(size > PERSISTENT * old, 0.0, force)
