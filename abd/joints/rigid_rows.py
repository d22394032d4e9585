"""All joint rows seen by rigid bodies: their values and their derivatives by the twists of the bodies.

A dynamic body moves by a twist (v; w) at its centre of mass, world axes; with ``dp = v`` and ``dA = [w] A`` the
derivative of a row by the twist follows from its derivative (g_p, G) by the affine state as ``(g_p, axial(G A^T))``.
Bodies that are to move as one form a *cluster* with a single twist at the mean of their centres. Lengths are measured
in units of `RigidRows.length`, so that metres and radians weigh alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from abd.joints import TYPES
from abd.joints.measured_rows import MeasuredRows, collect, factor, power_series, spline
from abd.joints.measured_rows import evaluate as row_values
from abd.joints.table import MeasureTable, linearize, tabulate, values
from abd.model import WORLD, CouplingTerm, Joint, Kind, Model
from abd.potentials.arap import polar

GROUND = -1
"""Cluster of everything that does not move."""


RIGID = 1e-14
"""Largest entry of A A^T - 1 of a map that counts as a rotation."""


class Part(IntEnum):
    """What a row is."""

    CONSTRAINT = 0
    GAP = 1
    COUPLING = 2
    COORDINATE = 3


@dataclass(frozen=True)
class RigidRows:
    """R rows over m measures.

    Attributes:
        table, rows: the measures, and the rows over them.
        part: (R,) `Part`; joint: (R,) owner (couplings: the joint of q0); coupling: (R,) its index, else -1.
        name: of the row, coordinate or coupling; rotary: (R,) radians rather than metres.
        held: (R,) bool, constraint and coupling rows of active joints; gaps count among them once they are closed.
        yields: (R,) bool, rows with a compliance.
        target: (R,) value of a closed row; coordinates: their initial value.
        initial: (m,) values near which angles are counted at first.
        length: unit of length [m].
        movable: (n,) bool, dynamic bodies with any freedom; free: (n,) those with all six.
        basis: (n, 6, 6) projectors onto the twists that each body may have.
    """

    table: MeasureTable
    rows: MeasuredRows
    part: np.ndarray
    joint: np.ndarray
    coupling: np.ndarray
    name: list[str]
    rotary: np.ndarray
    held: np.ndarray
    yields: np.ndarray
    target: np.ndarray
    initial: np.ndarray
    length: float
    movable: np.ndarray
    free: np.ndarray
    basis: np.ndarray

    def __len__(self) -> int:
        return len(self.joint)

    @property
    def scale(self) -> np.ndarray:
        """(R,) factors that make rows pure numbers."""
        return np.where(self.rotary, 1.0, 1.0 / self.length)

    def coordinates(self) -> np.ndarray:
        """(c,) indices of the coordinate rows, joint by joint."""
        return np.flatnonzero(self.part == Part.COORDINATE)

    def values(self, q: np.ndarray, reference: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows (R,) and measures (m,) of rigid states q (n, 12); angles nearest to `reference` (m,)."""
        measured = values(self.table, q, self.initial if reference is None else reference)
        return row_values(self.rows, measured)[0], measured

    def jacobian(self, q: np.ndarray, reference: np.ndarray | None = None):
        """Sparse (R, 6 n) derivatives of the rows, pure numbers, by the twists ``(v / length; w)`` of all bodies."""
        from scipy.sparse import csr_matrix

        measured, child, parent = linearize(self.table, q, self.initial if reference is None else reference)
        slope = row_values(self.rows, measured)[1]
        t, terms = self.table, self.rows.term_measure
        blocks, owners = [], []
        for gradient, body in ((child, t.child), (parent, t.parent)):
            twist = _by_twist(gradient, q[body, 3:].reshape(-1, 3, 3))
            twist[:, :3] *= self.length
            twist[body == WORLD] = 0.0
            blocks.append(slope[:, None] * twist[terms])
            owners.append(np.maximum(body, 0)[terms])
        data = np.concatenate(blocks) * np.tile(self.scale[self.rows.term_row], 2)[:, None]
        row = np.repeat(np.tile(self.rows.term_row, 2), 6)
        column = (6 * np.concatenate(owners)[:, None] + np.arange(6)).ravel()
        return csr_matrix((data.ravel(), (row, column)), shape=(len(self), 6 * len(q)))


def _by_twist(gradient: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(k, 6) derivatives by twists from those by states (k, 12) of bodies with the rotations A (k, 3, 3)."""
    B = gradient[:, 3:].reshape(-1, 3, 3) @ A.transpose(0, 2, 1)
    axial = np.stack([B[:, 2, 1] - B[:, 1, 2], B[:, 0, 2] - B[:, 2, 0], B[:, 1, 0] - B[:, 0, 1]], axis=1)
    return np.concatenate([gradient[:, :3], axial], axis=1)


@dataclass(frozen=True)
class Clusters:
    """Bodies that move as one.

    Attributes:
        of: (n,) cluster of every body, `GROUND` for those that stay.
        count: number of clusters.
        freedoms: (count, 6, 6) projectors onto the twists of the clusters.
        pivot: (count,) body at whose centre a cluster's twist acts, -1 for the mean of the centres.
    """

    of: np.ndarray
    count: int
    freedoms: np.ndarray
    pivot: np.ndarray

    def centres(self, q: np.ndarray) -> np.ndarray:
        """(count, 3) points at which the twists act."""
        inside = self.of >= 0
        total = np.zeros((self.count, 3))
        np.add.at(total, self.of[inside], q[inside, :3])
        mean = total / np.maximum(np.bincount(self.of[inside], minlength=self.count), 1)[:, None]
        return np.where((self.pivot >= 0)[:, None], q[self.pivot, :3], mean)

    def spread(self, q: np.ndarray, length: float):
        """Sparse (6 n, 6 count): twists of all bodies from those of the clusters, lengths in units of `length`."""
        from scipy.sparse import csr_matrix

        body = np.flatnonzero(self.of >= 0)
        cluster = self.of[body]
        arm = (q[body, :3] - self.centres(q)[cluster]) / length
        block = np.tile(np.eye(6), (len(body), 1, 1))
        block[:, :3, 3:] = -_cross(arm)
        block = block @ self.freedoms[cluster]
        row = 6 * body[:, None, None] + np.arange(6)[:, None] + np.zeros(6, dtype=int)
        column = 6 * cluster[:, None, None] + np.arange(6) + np.zeros((6, 1), dtype=int)
        return csr_matrix((block.ravel(), (row.ravel(), column.ravel())), shape=(6 * len(q), 6 * self.count))

    def move(self, q: np.ndarray, twists: np.ndarray, length: float) -> np.ndarray:
        """States q (n, 12) after twists (count, 6) of the clusters, by the exponential of their rotations."""
        out = q.copy()
        body = np.flatnonzero(self.of >= 0)
        cluster = self.of[body]
        twists = np.einsum("cij,cj->ci", self.freedoms, twists)
        R = rotations(twists[:, 3:])[cluster]
        centre = self.centres(q)[cluster]
        arm = np.einsum("bij,bj->bi", R, q[body, :3] - centre)
        out[body, :3] = centre + length * twists[cluster, :3] + arm
        out[body, 3:] = polar(R @ q[body, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
        return out


def single_clusters(rows: RigidRows) -> Clusters:
    """Every movable body on its own."""
    return clusters_of(rows, np.where(rows.movable, np.arange(len(rows.movable)), GROUND))


def clusters_of(rows: RigidRows, label: np.ndarray) -> Clusters:
    """Clusters of bodies with equal labels (n,) >= 0, of which one at most lacks some freedom."""
    used, of = np.unique(label[label >= 0], return_inverse=True)
    full = np.full(len(label), GROUND)
    full[label >= 0] = of
    freedoms, pivot = np.tile(np.eye(6), (len(used), 1, 1)), np.full(len(used), -1)
    partly = np.flatnonzero((full >= 0) & ~rows.free)
    freedoms[full[partly]], pivot[full[partly]] = rows.basis[partly], partly
    return Clusters(full, len(used), freedoms, pivot)


def rotations(w: np.ndarray) -> np.ndarray:
    """(k, 3, 3) rotations by the vectors w (k, 3) [rad]."""
    angle = np.linalg.norm(w, axis=1)
    K = _cross(w)
    first = np.sinc(angle / np.pi)[:, None, None]
    second = (0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2)[:, None, None]
    return np.eye(3) + first * K + second * (K @ K)


def _cross(v: np.ndarray) -> np.ndarray:
    """(k, 3, 3) matrices of the cross products with v (k, 3)."""
    K = np.zeros((len(v), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return K - K.transpose(0, 2, 1)


def rigid_states(q: np.ndarray) -> np.ndarray:
    """States q (n, 12) without strain: affine maps that are no rotations to `RIGID` are replaced by the nearest one."""
    out = np.array(q, dtype=float)
    A = out[:, 3:].reshape(-1, 3, 3)
    strained = np.abs(A @ A.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0) > RIGID
    if strained.any():
        out[strained, 3:] = polar(A[strained]).reshape(-1, 9)
    return out


def rigid_rows(model: Model) -> RigidRows:
    """The rows of a model's joints and couplings."""
    table, terms, rows, facts = [], [], [], []
    coordinate: dict[tuple[int, str], int] = {}

    def measure(k, one):
        table.append((k, one))
        return len(table) - 1

    def add(pieces, part, k, name, rotary, held, yields=False, target=0.0, coupling=-1):
        rows.append(pieces)
        facts.append((part, k, coupling, name, rotary, held, yields, target))

    for k, joint in enumerate(model.joints):
        for pieces, part, name, rotary, yields, target in _own_rows(joint, lambda one, k=k: measure(k, one)):
            add(pieces, part, k, name, rotary, joint.active, yields, target)
        initial = {settings.name: settings.initial for settings in joint.coordinates}
        for one in TYPES[joint.type].coordinates(joint):
            index = coordinate[k, one.name] = measure(k, one)
            terms.append((index, initial.get(one.name, 0.0)))
            add(
                [(index, factor(1.0))], Part.COORDINATE, k, one.name, one.rotary, False,
                target=initial.get(one.name, 0.0),
            )  # fmt: skip
    for k, coupling in enumerate(model.couplings):
        first = coordinate[coupling.joint, coupling.coordinate]
        pieces = [(first, factor(1.0))]
        pieces += [(coordinate[t.joint, t.coordinate], _pieces(t, -coupling.scale)) for t in coupling.terms]
        held = coupling.active and model.joints[coupling.joint].active
        yields = coupling.enforcement == "compliant" and coupling.compliance > 0.0
        add(pieces, Part.COUPLING, coupling.joint, coupling.name, table[first][1].rotary, held, yields, coupling=k)

    initial_values = np.zeros(len(table))
    for index, value in terms:
        initial_values[index] = value
    columns = list(zip(*facts, strict=True)) if facts else [()] * 8
    movable, free, basis = _freedoms(model)
    return RigidRows(
        table=tabulate(model.joints, table),
        rows=collect(rows),
        part=np.array(columns[0], dtype=int),
        joint=np.array(columns[1], dtype=int),
        coupling=np.array(columns[2], dtype=int),
        name=list(columns[3]),
        rotary=np.array(columns[4], dtype=bool),
        held=np.array(columns[5], dtype=bool),
        yields=np.array(columns[6], dtype=bool),
        target=np.array(columns[7], dtype=float),
        initial=initial_values,
        length=_length(model),
        movable=movable,
        free=free,
        basis=basis,
    )


def _own_rows(joint: Joint, measure):
    """(pieces, part, name, rotary, yields, target) of a joint's constraint rows and gaps."""
    module = TYPES[joint.type]
    bilateral = [one for one in module.constraints(joint) if not one.unilateral]
    for i, one in enumerate(bilateral):
        soft = joint.enforcement == "compliant" and i < len(joint.compliance) and joint.compliance[i] > 0.0
        yield [(measure(one), factor(1.0))], Part.CONSTRAINT, one.name, one.rotary, soft, 0.0
    for one in module.combined(joint) if hasattr(module, "combined") else []:
        if one.stiffness is None:
            pieces = [(measure(m), factor(w)) for m, w in zip(one.measures, one.weights, strict=True)]
            yield pieces, Part.CONSTRAINT, one.name, one.rotary, False, one.rest
    for one in module.measured(joint):
        if one.unilateral:
            yield [(measure(one), factor(1.0))], Part.GAP, one.name, one.rotary, False, 0.0


def _pieces(term: CouplingTerm, weight: float):
    """f of a coupling's term, times a weight."""
    if term.table is not None:
        return spline(term.table, weight)
    return power_series([weight * c for c in term.polynomial])


def _freedoms(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`movable`, `free` and `basis` of `RigidRows`."""
    bodies = model.bodies
    n = len(bodies)
    dynamic = bodies.kind == Kind.DYNAMIC
    basis = np.zeros((n, 6, 6))
    basis[:, [0, 1, 2], [0, 1, 2]] = bodies.free_translation
    axis = bodies.rotation_axis
    turns = np.where(
        (bodies.free_rotation == 3)[:, None, None],
        np.eye(3),
        np.where((bodies.free_rotation == 1)[:, None, None], axis[:, :, None] * axis[:, None, :], 0.0),
    )
    basis[:, 3:, 3:] = turns
    movable = dynamic & (np.abs(basis).sum(axis=(1, 2)) > 0.0)
    free = dynamic & bodies.free_translation.all(axis=1) & (bodies.free_rotation == 3)
    basis[~dynamic] = 0.0
    return movable, free, basis


def _length(model: Model) -> float:
    """Root mean square distance [m] of the joints' points from the bodies' centres, 1 m where that vanishes."""
    arms = [joint.child_frame[:3, 3] for joint in model.joints]
    arms += [joint.parent_frame[:3, 3] for joint in model.joints if joint.parent != WORLD]
    length = float(np.sqrt(np.mean(np.sum(np.square(arms), axis=1)))) if arms else 0.0
    return length if length > 0.0 else 1.0
