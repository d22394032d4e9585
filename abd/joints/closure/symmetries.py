"""Rigid motions of whole mechanisms that their joints and gravity leave alone: along them momenta are kept.

A mechanism that nothing holds keeps all of them; one that slides on a rail that along it, one on a vertical hinge the one about
it. They are twists fixed in space, so that a joint leaves alone at every pose what it leaves alone at the start, and wherever
that leads: found as null spaces of the rows between the mechanism and what does not move, at the start and where the motions
found there lead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abd.joint_list import JointList
from abd.joints.closure.link_graph import connected_labels
from abd.joints.closure.own_spins import own_spins
from abd.joints.rows.laws import LIMITS
from abd.joints.rows.row_laws import Role
from abd.joints.rows.rows import residual
from abd.joints.rows.sizes import half_length
from abd.joints.rows.springs import resolved, turns
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import linearize
from abd.model import WORLD, Bodies, Kind, Model
from abd.potentials.conservation import ALL, NOBODY
from abd.potentials.free_motion import rates
from abd.rotations import rotations

NONE = 1e-10
"""Share of a row's square that counts as nothing."""
SLOW = 0.1
"""Turn of a vibration per step [rad] up to which it counts as a motion of the mechanism, whatever a step takes of it."""
TRIES = 3
"""Places to which motions lead where they are looked at again."""
TURN = 0.7
"""How far they lead there [rad], or sizes of the mechanism."""

OPEN = 1e-6
"""How far a joint may be open at the start, in sizes of the mechanism, for the motions that it leaves to count."""


@dataclass(frozen=True)
class Symmetries:
    """Mechanisms of dynamic bodies that joints hold, and nothing that moves by itself (`mechanisms`).

    Attributes:
        bodies: (k,) those of all mechanisms, one after the other, each ascending; starts: (m + 1,) where they begin.
        own: (k,) spins of theirs that nothing turns (`abd.joints.closure.own_spins`).
        free: (m,) bool, nothing holds it: its motions are all, about its centre of mass.
        count: (m,) motions s; twists: (m, 6, 6) of which the first s rows are (v, w), about the origin.
    """

    bodies: np.ndarray
    starts: np.ndarray
    own: np.ndarray
    free: np.ndarray
    count: np.ndarray
    twists: np.ndarray

    def __len__(self) -> int:
        return len(self.free)


def symmetries(model: Model, system: JointSystem) -> Symmetries:
    """Of a scene at its start, with the gravity and the joints that it has."""
    bodies = model.bodies
    chosen, label = mechanisms(model, system)
    _, number, sizes = np.unique(label, return_inverse=True, return_counts=True)
    order, starts = chosen[np.argsort(number, kind="stable")], np.concatenate([[0], np.cumsum(sizes)])
    mechanism = np.full(len(bodies) + 1, -1)  # the last one stands for the world
    mechanism[chosen] = number
    place, size = np.zeros((len(sizes), 3)), np.zeros(len(sizes))
    np.add.at(place, number, bodies.q[chosen, :3] / sizes[number, None])
    reach = np.linalg.norm(bodies.q[chosen, :3] - place[number], axis=1)
    np.maximum.at(size, number, reach + half_length(bodies.mass, bodies.moment)[chosen])
    size[size == 0.0] = 1.0
    holding = _Holding(model, system, mechanism, place, size)
    twists, count = holding.motions()
    free = ~holding.held
    twists = np.where(free[:, None, None], np.eye(6), twists)
    count = np.where(free, 6, count)
    own = own_spins(model, system, order)
    own = np.where((own == ALL) | (np.repeat(count, sizes) == 0), own, NOBODY)
    return Symmetries(order, starts, own, free, count, twists)


def mechanisms(model: Model, system: JointSystem) -> tuple[np.ndarray, np.ndarray]:
    """Dynamic bodies (k,) of mechanisms, ascending, and a number (k,) that those of one mechanism have in common: what joints and
    couplings that act hold together, without those that hang on something that moves by itself, and without those that vibrate.
    Ropes and limits hold nothing while they do not push."""
    bodies, joints = model.bodies, JointList.of(model.joints)
    if not len(joints):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    n, active, row_laws = len(bodies), joints.column("active").astype(bool), system.row_laws
    holding = np.zeros(len(joints), dtype=bool)
    holding[system.linear.joint[system.linear.K.any(axis=1)]] = True
    holding[row_laws.joint[row_laws.active & ~np.isin(row_laws.law, LIMITS)]] = True
    ends, coupled = joints.bodies, []
    for coupling in model.couplings:
        of = [coupling.joint, *(term.joint for term in coupling.terms)]
        if coupling.active and active[of].all():
            coupled.append(ends[of].ravel())
    pairs = [ends[holding], *(np.stack([some[:-1], some[1:]], axis=1) for some in map(_dynamic_first(bodies), coupled))]
    pairs = np.concatenate(pairs)
    one, other = _are(bodies, pairs, Kind.DYNAMIC).T
    label = connected_labels(n, pairs[one & other])
    jointed, driven = np.unique(ends[holding][_are(bodies, ends[holding], Kind.DYNAMIC)]), np.zeros(n, dtype=bool)
    by_motion = pairs[_are(bodies, pairs, Kind.KINEMATIC).any(axis=1)]
    for others in (by_motion, ends[_vibrating(model, system, joints)]):
        driven[label[others[_are(bodies, others, Kind.DYNAMIC)]]] = True
    chosen = jointed[~driven[label[jointed]]]
    return chosen, label[chosen]


def _vibrating(model: Model, system: JointSystem, joints: JointList) -> np.ndarray:
    """(j,) bool, joints with springs, or a compliance, that turn by more than `SLOW` in a step, and fade: what a step takes of
    their vibrations is not for the slow motions of the mechanism to have. Penalties, which loads strain once, do not count."""
    fading = (turns(model, system) > SLOW) & ~resolved(model, system)
    out = np.zeros(len(joints), dtype=bool)
    out[system.row_laws.joint[fading]] = True
    return out


def _dynamic_first(bodies: Bodies) -> Callable[[np.ndarray], np.ndarray]:
    """Orders indices (k,), the world's left out, by kind, so that neighbours tie all dynamic ones to one another, and the
    last of them to one that moves by itself."""
    rank = {Kind.DYNAMIC: 0, Kind.KINEMATIC: 1}

    def ordered(some: np.ndarray) -> np.ndarray:
        some = some[some != WORLD]
        return some[np.argsort([rank.get(Kind(int(bodies.kind[b])), 2) for b in some], kind="stable")]

    return ordered


def _are(bodies: Bodies, which: np.ndarray, kind: Kind) -> np.ndarray:
    """(...) bool, indices of bodies of a kind; the world is of none."""
    return np.append(bodies.kind == kind, False)[which]


class _Holding:
    """What holds mechanisms, by twists (v, w size) about their places."""

    def __init__(self, model: Model, system: JointSystem, mechanism: np.ndarray, place: np.ndarray, size: np.ndarray):
        self.model, self.mechanism, self.place, self.size = model, mechanism, place, size
        self.held = np.zeros(len(place), dtype=bool)
        a, rows = system.row_laws, system.rows
        counted = a.active & ~np.isin(a.law, LIMITS)
        counted &= ~np.isin(a.role, (Role.FRICTION, Role.ARMATURE, Role.FORCE, Role.APPLIED))
        of_rows = np.zeros(len(system.table), dtype=bool)
        of_rows[rows.term_measure[counted[rows.term_row]]] = True
        self.opaque = np.zeros(len(place), dtype=bool)  # what a user's function measures says nothing of its own
        custom = np.zeros(len(system.table), dtype=bool)
        for group in system.table.custom:
            custom[group.measure] = True
        outer = self._outer(system.table.parent, system.table.child)
        self.opaque[self._of(system.table.parent, system.table.child)[outer & custom]] = True
        self.measures = np.flatnonzero(outer & of_rows & ~custom)
        self.table = system.table.part(self.measures)
        linear = self.linear = system.linear
        self.rows = np.flatnonzero(self._outer(linear.parent, linear.child) & linear.K.any(axis=1))
        # where a joint is open, as after it was seated anew, twists about where it was say nothing of where it is
        open_by = np.abs(np.where(linear.K > 0.0, residual(linear, model.bodies.q), 0.0)).max(axis=1, initial=0.0)[self.rows]
        of = self._of(linear.parent, linear.child)[self.rows]
        self.opaque[of[open_by > OPEN * size[of]]] = True

    def _of(self, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
        """(k,) mechanism of rows, -1 for none."""
        return np.maximum(self.mechanism[parent], self.mechanism[child])

    def _outer(self, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
        """(k,) bool, rows between a mechanism and what does not move."""
        one, other = self.mechanism[parent], self.mechanism[child]
        return ((one < 0) != (other < 0)) & (np.maximum(one, other) >= 0)

    def motions(self) -> tuple[np.ndarray, np.ndarray]:
        """(m, 6, 6) twists about the origin that nothing holds, and how many."""
        q, m = self.model.bodies.q, len(self.place)
        S = self._squares(q)
        self.held = (np.trace(S, axis1=1, axis2=2) > 0.0) | self.opaque
        S[self.opaque] += np.eye(6)
        g = np.asarray(self.model.settings.gravity, dtype=float)
        if g.any():
            S[:, 3:, 3:] += np.eye(3) - np.outer(g, g) / (g @ g)
        chance = np.random.default_rng(0)
        for _ in range(TRIES):
            values, vectors = np.linalg.eigh(S)
            loose = values <= NONE
            if not (loose.any(axis=1) & self.held).any():
                break
            share = np.where(loose, chance.standard_normal((m, 6)), 0.0)
            way = np.einsum("mij,mj->mi", vectors, share)
            length = np.linalg.norm(way, axis=1, keepdims=True)
            S = S + self._squares(self._moved(q, TURN * way / np.where(length > 0.0, length, 1.0)))
        values, vectors = np.linalg.eigh(S)
        found = vectors.transpose(0, 2, 1)  # rows, those of nothing first
        w = found[:, :, 3:] / self.size[:, None, None]
        v = found[:, :, :3] - np.cross(w, self.place[:, None, :])
        return np.concatenate([v, w], axis=2), np.count_nonzero(values <= NONE, axis=1)

    def _moved(self, q: np.ndarray, way: np.ndarray) -> np.ndarray:
        """States (n, 12) that twists (m, 6) lead to."""
        out, some = q.copy(), np.flatnonzero(self.mechanism[:-1] >= 0)
        of = self.mechanism[some]
        R = rotations(way[of, 3:])
        out[some, :3] = self.place[of] + self.size[of, None] * _along(way)[of]
        out[some, :3] += np.einsum("nij,nj->ni", R, q[some, :3] - self.place[of])
        out[some, 3:] = (R @ q[some, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
        return out

    def _squares(self, q: np.ndarray) -> np.ndarray:
        """(m, 6, 6) sums of g g^T over the rows' unit gradients g by twists."""
        S = np.zeros((len(self.place), 6, 6))
        for of, g in (self._measured(q), self._straight(q), self._locked()):
            length = np.linalg.norm(g, axis=1)
            g = g / np.where(length > 0.0, length, 1.0)[:, None]
            np.add.at(S, of, g[:, :, None] * g[:, None, :])
        return S

    def _measured(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table = self.table
        if not len(self.measures):
            return np.zeros(0, dtype=int), np.zeros((0, 6))
        _, child, parent = linearize(table, q)
        mine = self.mechanism[table.child] >= 0
        return self._by_twist(q, np.where(mine, table.child, table.parent), np.where(mine[:, None], child, parent))

    def _straight(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the components of linear rows."""
        rows, k = self.linear, self.rows
        mine = self.mechanism[rows.child[k]] >= 0
        body, Y = np.where(mine, rows.child[k], rows.parent[k]), np.where(mine[:, None], rows.Yc[k], rows.Yp[k])
        g = np.zeros((len(k), 3, 12))
        for r in range(3):
            g[:, r, r] = Y[:, 0]
            g[:, r, 3 + 3 * r : 6 + 3 * r] = Y[:, 1:]
        counts = rows.mask[k].astype(bool)
        return self._by_twist(q, np.repeat(body, counts.sum(axis=1)), g[counts])

    def _by_twist(self, q: np.ndarray, body: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mechanisms (k,) and gradients (k, 6) by their twists of what has gradients (k, 12) by states."""
        of, A = self.mechanism[body], q[body, 3:].reshape(-1, 3, 3)
        size = self.size[of]
        out = np.zeros((len(body), 6))
        out[:, :3] = size[:, None] * g[:, :3]
        for axis in range(3):
            e = np.broadcast_to(np.eye(3)[axis], (len(body), 3))
            moved = np.concatenate([np.cross(e, q[body, :3] - self.place[of]), rates(A, e).reshape(-1, 9)], axis=1)
            out[:, 3 + axis] = np.sum(g * moved, axis=1)
        return of, out

    def _locked(self) -> tuple[np.ndarray, np.ndarray]:
        """Degrees of freedom that bodies do not have."""
        bodies, some = self.model.bodies, np.flatnonzero(self.mechanism[:-1] >= 0)
        of, found = self.mechanism[some], []
        for axis in range(3):
            held = some[~np.asarray(bodies.free_translation, dtype=bool)[some, axis]]
            e = np.eye(3)[axis]
            arm = bodies.q[held, :3] - self.place[self.mechanism[held]]
            turned = np.cross(arm, e) / self.size[self.mechanism[held], None]
            found.append((self.mechanism[held], np.concatenate([np.broadcast_to(e, (len(held), 3)), turned], axis=1)))
        about = np.asarray(bodies.free_rotation)[some]
        some, of, about = (one[about != 3] for one in (some, of, about))
        P = np.eye(3) - bodies.rotation_axis[some, :, None] * bodies.rotation_axis[some, None, :]
        P = np.where((about == 1)[:, None, None], P, np.eye(3))
        for axis in range(3):
            found.append((of, np.concatenate([np.zeros((len(some), 3)), P[:, axis]], axis=1)))
        return np.concatenate([one for one, _ in found]), np.concatenate([g for _, g in found])


def _along(way: np.ndarray) -> np.ndarray:
    """(m, 3) displacements of the places of screws (m, 6)."""
    v, w = way[:, :3], way[:, 3:]
    turn = np.linalg.norm(w, axis=1, keepdims=True)
    size = np.where(turn > 1e-6, turn, 1.0)
    first = np.where(turn > 1e-6, (1.0 - np.cos(size)) / size**2, 0.5)
    second = np.where(turn > 1e-6, (size - np.sin(size)) / size**3, 1.0 / 6.0)
    across = np.cross(w, v)
    return v + first * across + second * np.cross(w, across)
