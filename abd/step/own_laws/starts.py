"""Laws of the pairs of bodies that start within their activation, so that the start itself moves nobody.

A body set down at a gap g below the activation d of the pair is not compressed to that: the pair takes an activation of its
own for which its force at the start is the load that it carries, ``F phi(g/a) = load``. With no load, as between neighbours
side by side, that is a = g. Where the load is far beyond F, as under a much heavier body, the pair carries a multiple.

Loads come from Gauss's principle of least constraint: of all pushes ``l >= 0`` along the pairs' normals, at the points
where they act, those that leave the least acceleration,

    min  1/2 sum over bodies (f + sum of pushes)^T M^-1 (f + sum of pushes),

forces and torques together. Bodies that joints connect count as one rigid body, and as ground where a joint or a member
is fixed. Loads are found without friction; what friction holds follows from them (`abd.step.own_laws.holds`).
"""

from __future__ import annotations

import numpy as np

from abd.contact.pair_law import OwnLaws, PairLaw
from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.model import Kind, Model
from abd.potentials import mollifier
from abd.potentials.barrier import barrier
from abd.potentials.contact import FIRST, Contacts, closest, thresholds
from abd.potentials.sticking import Anchors
from abd.step.own_laws.holds import holding

DEEP = 0.3
"""Gap, in activations, that a pair should rest at or above; a larger load multiplies its force."""
BISECTIONS = 48
TOGETHER = 400
"""Pairs among which loads are found exactly (non-negative least squares, dense); more are found without the sign first."""
REGULAR = 1e-10
"""Share of a load's own square in what is minimised: where several distributions do as well, pairs carry as they can."""


class Meetings:
    """The pairs that act, and their forces for trial activations.

    Args:
        contacts: m candidates, of pairs of bodies that are near; radius: (n,) contact radii of all bodies [m].

    Attributes:
        key: (P,) of the pairs, sorted; gap: (P,) smallest ones [m]; i, j: (P,) bodies, i < j.
        normal: (P, 3) direction of the force on body i at the common activation, or twice the gap if that is more; point:
            (P, 3) where it acts [m]; strength: (P,) how large it is, over F: edges and corners that pass by hardly count.
    """

    def __init__(self, law: PairLaw, contacts: Contacts, q: np.ndarray, radius: np.ndarray):
        x = contacts.positions(q)
        near = closest(x, contacts)
        distance = np.sqrt(near.D)
        first, second = contacts.first.astype(np.int64), contacts.second.astype(np.int64)
        self.law, self.contacts, self.distance = law, contacts, distance
        self.key, self.of = np.unique(law.keys(first, second), return_inverse=True)
        self.i, self.j = law.bodies_of(self.key)
        self.gap = np.full(len(self.key), np.inf)
        np.minimum.at(self.gap, self.of, distance - contacts.xi)
        side = np.where(first == self.i[self.of], 1.0, -1.0)
        self.direction = (side / np.maximum(distance, 1e-300))[:, None] * near.r
        self.weight = mollifier.value(x, thresholds(contacts)) * contacts.stiffness
        usual = law.regular(self.i, self.j)
        reach = np.maximum(usual, 2.0 * self.gap)
        each = self._forces(reach)
        self.normal = self._per_pair(each[:, None] * self.direction)
        size = np.maximum(np.linalg.norm(self.normal, axis=1), 1e-300)
        self.normal /= size[:, None]
        xi = np.zeros(len(self.key))
        xi[self.of] = contacts.xi
        self.strength = size / law.force(self.i, self.j, xi)
        points = np.einsum("mk,mki->mi", FIRST[contacts.stencil] * near.w, x)
        points -= (radius[first] / np.maximum(distance, 1e-300))[:, None] * near.r
        total = np.maximum(self._per_pair(each[:, None])[:, 0], 1e-300)
        self.point = self._per_pair(each[:, None] * points) / total[:, None]
        self._points, self._act = points, each > 0.0

    def extents(self, axes: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """(k, 2) how far the points of the chosen pairs reach from their middle along two axes (k, 2, 3) [m], on the side on
        which they reach less far."""
        place = np.full(len(self.key), -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero((place[self.of] >= 0) & self._act)
        mine = place[self.of[rows]]
        along = np.einsum("max,mx->ma", axes[mine], self._points[rows] - self.point[self.of[rows]])
        far = np.zeros((2, len(chosen), 2))
        np.maximum.at(far[0], mine, along)
        np.maximum.at(far[1], mine, -along)
        return far.min(axis=0)

    def force(self, a: np.ndarray) -> np.ndarray:
        """(P,) forces [N] along the normals for activations a (P,) [m]."""
        along = np.einsum("mi,mi->m", self.direction, self.normal[self.of])
        return np.bincount(self.of, self._forces(a) * along, minlength=len(self.key))

    def _forces(self, a: np.ndarray) -> np.ndarray:
        """(m,) normal forces [N] of the candidates."""
        c, law, a = self.contacts, self.law, a[self.of]
        i, j = self.i[self.of], self.j[self.of]
        kappa = self.weight * law.force(i, j, c.xi) / law.force_scale(a, c.xi)
        return -2.0 * kappa * self.distance * barrier(law.barrier, self.distance**2, a, c.xi)[1]

    def _per_pair(self, values: np.ndarray) -> np.ndarray:
        """(P, k) sums of values (m, k)."""
        out = np.zeros((len(self.key), values.shape[1]))
        np.add.at(out, self.of, values)
        return out


def starting_laws(
    model: Model, law: PairLaw, contacts: Contacts, q: np.ndarray, qd: np.ndarray | None = None
) -> tuple[OwnLaws, Anchors]:
    """The own laws of the pairs that are within their activation in the state q (n, 12); with its velocities qd (n, 12), what
    friction holds of them too."""
    if not len(contacts):
        return OwnLaws(), Anchors()
    meetings = Meetings(law, contacts, q, model.bodies.radius)
    usual = law.regular(meetings.i, meetings.j)
    within = (meetings.gap < usual) & (meetings.gap > 0.0)
    parts = _Parts.of(model, q)
    loads = np.where(within, _loads(parts, meetings, within), 0.0)
    deep = meetings.force(np.maximum(meetings.gap, 1e-300) / DEEP)
    factor = np.maximum(1.0, loads / np.maximum(deep, 1e-300)) if not law.given else np.ones(len(usual))
    most = law.largest * usual
    low, high = np.log(np.where(within, meetings.gap, usual)), np.log(most)
    carries = factor * meetings.force(most) > loads
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        too_much = factor * meetings.force(np.exp(middle)) > loads
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    activation = np.where(carries, np.exp(low), usual)
    own = within & ((activation != usual) | (factor > 1.0))
    laws = OwnLaws(meetings.key, activation, factor)[own]
    if qd is None:
        return laws, Anchors()
    mu = model.materials.mu[model.bodies.material[meetings.i], model.bodies.material[meetings.j]]
    return laws, holding(parts, meetings, loads, q, qd, mu, model.settings.eps_v)


def _loads(parts: _Parts, meetings: Meetings, within: np.ndarray) -> np.ndarray:
    """(P,) loads [N] of the pairs `within` their activation, 0 of the others."""
    from scipy.sparse.csgraph import connected_components

    chosen = np.flatnonzero(within)
    loads = np.zeros(len(within))
    pushes = _pushes(parts, meetings, chosen)
    link = (abs(pushes.T) @ abs(pushes)).tocsr()
    groups, of = connected_components(link, directed=False)
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(groups + 1))
    columns = pushes.tocsc()
    lightness = meetings.law.lightness[meetings.i] + meetings.law.lightness[meetings.j]
    even = (np.sqrt(REGULAR * lightness) / np.maximum(meetings.strength, 1e-6))[chosen]
    for k in range(groups):
        members = order[starts[k] : starts[k + 1]]
        block = columns[:, members].tocsr()
        rows = np.unique(block.nonzero()[0])
        loads[chosen[members]] = _least_constraint(block[rows], -parts.forces[rows], even[members])
    return loads


def _least_constraint(pushes, wanted: np.ndarray, even: np.ndarray) -> np.ndarray:
    """(p,) non-negative l with the least ``|pushes l - wanted|^2 + |even l|^2``."""
    from scipy.optimize import nnls
    from scipy.sparse import diags, vstack
    from scipy.sparse.linalg import lsqr

    size = 1.0 / np.sqrt(np.asarray(pushes.multiply(pushes).sum(axis=0)).ravel() + even**2)
    if len(even) <= TOGETHER:
        dense = np.concatenate([pushes.toarray(), np.diag(even)]) * size
        return size * nnls(dense, np.concatenate([wanted, np.zeros(len(even))]), maxiter=30 * len(even))[0]
    system = vstack([pushes, diags(even)]) @ diags(size)
    found = lsqr(system, np.concatenate([wanted, np.zeros(len(even))]), atol=1e-9, btol=1e-9, iter_lim=2000)[0]
    return size * np.maximum(found, 0.0)


class _Parts:
    """What moves as one: bodies, or bodies that joints connect.

    Attributes:
        part: (n,) part of every body, -1 of what does not move.
        center: (c, 3) [m]; scale: (c, 6, 6) inverse square roots of mass and inertia, 0 along what is fixed.
        forces: (6 c,) scaled forces and torques from outside.
    """

    @classmethod
    def of(cls, model: Model, q: np.ndarray) -> _Parts:
        """Of a state q (n, 12)."""
        bodies, joints = model.bodies, JointList.of(model.joints)
        dynamic = (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
        label = np.unique(joined_components(model), return_inverse=True)[1]
        grounded = np.zeros(label.max(initial=-1) + 1, dtype=bool)
        active = joints.column("active").astype(bool)
        parent, child = joints.column("parent")[active].astype(int), joints.column("child")[active].astype(int)
        moves = np.append(dynamic, False)  # the last one stands for the world, -1
        for one, other in ((parent, child), (child, parent)):
            grounded[label[one[moves[one] & ~moves[other]]]] = True
        grounded[label[~dynamic]] = True
        free, part = np.unique(label[~grounded[label]]), np.full(len(bodies), -1)
        part[~grounded[label]] = np.searchsorted(free, label[~grounded[label]])
        self, some, count = cls(), np.flatnonzero(part >= 0), len(free)
        mass, p = bodies.mass[some], q[some, :3]
        mine = part[some]
        total = np.bincount(mine, mass, minlength=count)
        sums = np.zeros((count, 3))
        np.add.at(sums, mine, mass[:, None] * p)
        center = sums / np.maximum(total, 1e-300)[:, None]
        A = q[some, 3:].reshape(-1, 3, 3)
        second = np.einsum("nij,nj,nkj->nik", A, bodies.moment[some], A)
        r = p - center[mine]
        second += mass[:, None, None] * np.einsum("ni,nj->nij", r, r)
        whole = np.zeros((count, 3, 3))
        np.add.at(whole, mine, second)
        inertia = np.trace(whole, axis1=1, axis2=2)[:, None, None] * np.eye(3) - whole
        values, axes = np.linalg.eigh(inertia) if count else (np.zeros((0, 3)), np.zeros((0, 3, 3)))
        turns = np.where(values > 1e-9 * values.max(axis=1, initial=0.0)[:, None], 1.0, 0.0)
        root = np.einsum("cij,cj,ckj->cik", axes, turns / np.sqrt(np.where(turns > 0.0, values, 1.0)), axes)
        scale = np.zeros((count, 6, 6))
        scale[:, :3, :3] = np.eye(3) / np.sqrt(np.maximum(total, 1e-300))[:, None, None]
        scale[:, 3:, 3:] = root
        alone = np.bincount(mine, minlength=count)[mine] == 1
        for b, c in zip(some[alone], mine[alone], strict=True):
            if not bodies.free_translation[b].all():
                scale[c, :3, :3] *= bodies.free_translation[b][:, None]
            if bodies.free_rotation[b] != 3:
                axis = bodies.rotation_axis[b]
                scale[c, 3:, 3:] = np.outer(axis, axis) @ scale[c, 3:, 3:]
        push = mass[:, None] * model.settings.gravity + bodies.force[some]
        wrench = np.zeros((count, 6))
        np.add.at(wrench, mine, np.concatenate([push, np.cross(r, push) + bodies.torque[some]], axis=1))
        self.part, self.center, self.scale = part, center, scale
        self.forces = np.einsum("cij,cj->ci", scale, wrench).ravel()
        return self

    def accelerations(self, i: np.ndarray, j: np.ndarray, point: np.ndarray, wrenches: np.ndarray):
        """(6 c, w k) sparse: scaled forces and torques of w wrenches (k, w, 6) that act at points (k, 3) on the parts of bodies
        i, and oppositely on those of j."""
        from scipy.sparse import coo_matrix

        width, shape = wrenches.shape[1], (6 * len(self.center), wrenches.shape[1] * len(point))
        rows, columns, values = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)], [np.zeros(0)]
        for sign, body in ((1.0, i), (-1.0, j)):
            part = self.part[body]
            moves = np.flatnonzero(part >= 0)
            own = part[moves]
            moved = sign * wrenches[moves]
            moved[..., 3:] += np.cross((point[moves] - self.center[own])[:, None], moved[..., :3])
            which = moves[:, None] * width + np.arange(width)
            rows.append(np.broadcast_to(6 * own[:, None, None] + np.arange(6), moved.shape).ravel())
            columns.append(np.repeat(which.ravel(), 6))
            values.append(np.einsum("mij,mwj->mwi", self.scale[own], moved).ravel())
        return coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape).tocsc()

    def accelerations_of(self, meetings: Meetings, chosen: np.ndarray, loads: np.ndarray) -> np.ndarray:
        """(6 c,) scaled forces and torques of the loads (k,) of chosen pairs [N]."""
        return _pushes(self, meetings, chosen) @ loads


def _pushes(parts: _Parts, meetings: Meetings, chosen: np.ndarray):
    """(6 c, p) sparse: scaled wrenches of unit pushes of the chosen pairs."""
    normal = meetings.normal[chosen]
    wrenches = np.concatenate([normal, np.zeros_like(normal)], axis=1)[:, None]
    return parts.accelerations(meetings.i[chosen], meetings.j[chosen], meetings.point[chosen], wrenches)
