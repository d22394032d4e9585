"""All joint rows seen by rigid bodies: their values and their derivatives by the twists of the bodies.

A dynamic body moves by a twist (v; w) at its centre of mass, world axes; with ``dp = v`` and ``dA = [w] A`` the
derivative of a row by the twist follows from its derivative (g_p, G) by the affine state as ``(g_p, axial(G A^T))``.
Joints that hold some axes of the world while their parent moves have no measures: their rows are components of vector
rows, and come last. Bodies that are to move as one form a *cluster* with a single twist at the mean of their centres.
Lengths are measured in units of `RigidRows.length`, so that metres and radians weigh alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from abd.joints.rows.measured_rows import MeasuredRows
from abd.joints.rows.measured_rows import evaluate as row_values
from abd.joints.rows.table import MeasureTable, linearize, values
from abd.model import WORLD
from abd.rotations import polar, rotations, skew

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
class Components:
    """l components ``e . (Q_child Y_child - Q_parent Y_parent)`` of vector rows, in world axes.

    Attributes:
        child, parent: (l,) bodies; Yc, Yp: (l, 4) as in `abd.joints.rows.rows`; e: (l, 3) unit vectors.
    """

    child: np.ndarray
    parent: np.ndarray
    Yc: np.ndarray
    Yp: np.ndarray
    e: np.ndarray

    def arms(self, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(bodies (l,), ``A Y`` (l, 3), Y_0 (l,)) of the child and of the parent, the latter negative."""
        out = []
        for body, Y, sign in ((self.child, self.Yc, 1.0), (self.parent, self.Yp, -1.0)):
            A = np.where((body == WORLD)[:, None, None], np.eye(3), q[body, 3:].reshape(-1, 3, 3))
            out.append((body, sign * np.einsum("lij,lj->li", A, Y[:, 1:]), sign * Y[:, 0]))
        return out

    def values(self, q: np.ndarray) -> np.ndarray:
        """(l,) [m] or [-]."""
        x = np.zeros(len(self.e))
        for body, arm, weight in self.arms(q):
            origin = np.where((body == WORLD)[:, None], 0.0, q[body, :3])
            x += np.einsum("li,li->l", self.e, arm + weight[:, None] * origin)
        return x

    def by_twists(self, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """(bodies (l,), derivatives by their twists (l, 6)) of the child and of the parent."""
        return [
            (body, np.concatenate([weight[:, None] * self.e, np.cross(arm, self.e)], axis=1))
            for body, arm, weight in self.arms(q)
        ]


@dataclass(frozen=True)
class RigidRows:
    """R rows: those over m measures, then l components of vector rows.

    Attributes:
        table, rows: the measures, and the rows over them; components: the other rows.
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
    components: Components
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
        return np.concatenate([row_values(self.rows, measured)[0], self.components.values(q)]), measured

    def jacobian(self, q: np.ndarray, reference: np.ndarray | None = None):
        """Sparse (R, 6 n) derivatives of the rows, pure numbers, by the twists ``(v / length; w)`` of all bodies."""
        from scipy.sparse import csr_matrix

        measured, child, parent = linearize(self.table, q, self.initial if reference is None else reference)
        slope = row_values(self.rows, measured)[1]
        t, terms, term_row = self.table, self.rows.term_measure, self.rows.term_row
        last = np.arange(len(self.rows), len(self))
        parts = [(last, *part) for part in self.components.by_twists(q)]
        for gradient, body in ((child, t.child), (parent, t.parent)):
            twist = derivatives_by_twists(gradient, q[body, 3:].reshape(-1, 3, 3))
            parts.append((term_row, body[terms], slope[:, None] * twist[terms]))
        row, body, twist = (np.concatenate(column) for column in zip(*parts, strict=True))
        twist = twist * self.scale[row][:, None] * np.repeat([self.length, 1.0], 3)
        twist[body == WORLD] = 0.0
        column = 6 * np.maximum(body, 0)[:, None] + np.arange(6)
        return csr_matrix((twist.ravel(), (np.repeat(row, 6), column.ravel())), shape=(len(self), 6 * len(q)))


def derivatives_by_twists(gradient: np.ndarray, A: np.ndarray) -> np.ndarray:
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
        block[:, :3, 3:] = -skew(arm)
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


def rigid_states(q: np.ndarray) -> np.ndarray:
    """States q (n, 12) without strain: affine maps that are no rotations to `RIGID` are replaced by the nearest one."""
    out = np.array(q, dtype=float)
    A = out[:, 3:].reshape(-1, 3, 3)
    strained = np.abs(A @ A.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0) > RIGID
    if strained.any():
        out[strained, 3:] = polar(A[strained]).reshape(-1, 9)
    return out
