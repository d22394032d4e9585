"""Mobility W of the bodies in impacts: their velocities from impulses, with joints.

Twists are ``(v; w)``, impulses ``(P; L)`` about the centres of mass, in world axes. Free bodies have blocks W_b, the inverse of
their mass matrix within their allowed motions; constraints J v = 0 of joints give

    W = W_0 - W_0 J^T (J W_0 J^T + C)^-1 J W_0

with C = 0. A rotor of inertia a on a coordinate is no constraint, but adds a J^T J to the mass matrix: this is the same with
C = 1/a (Woodbury).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from abd.joints.rows.rigid_rows import RigidRows
from abd.model import Bodies
from abd.potentials import free_motion
from abd.step.impacts.impact_pairs import ImpulseRows

COLUMNS = 16
"""Right-hand sides that SuperLU solves at once: with hundreds it takes more than ten times as long."""
FITTED = 1e-9
"""Relative error of J v that counts as rounding, over the largest sum of the magnitudes of its terms."""


@dataclass(frozen=True)
class Mobility:
    """Mobility of the bodies that contacts and joints connect with chosen pairs.

    Attributes:
        chosen: (k,) indices of the connected pairs.
        free: (n, 6, 6) W_b, zero for bodies that do not move or are not connected.
        J: (R, 6 n) joint rows, moved: (R, 6 n) ``J W_0``, slack: (R,) their C; factor: of ``J W_0 J^T + C``, None without rows.
        joined: (n,) bool, bodies in these rows; reached: mask of the given rows that are in J.
        of_bodies (n,), of_pairs (k,), of_rows (R,): numbers of their components, of bodies that pairs and joints connect.
    """

    chosen: np.ndarray
    free: np.ndarray
    J: sparse.csr_matrix
    moved: sparse.csr_matrix
    slack: np.ndarray
    factor: object
    joined: np.ndarray
    reached: np.ndarray
    of_bodies: np.ndarray
    of_pairs: np.ndarray
    of_rows: np.ndarray

    @classmethod
    def of(
        cls, bodies: Bodies, q: np.ndarray, rows: RigidRows, J: sparse.csr_matrix, slack: np.ndarray, pairs: np.ndarray,
        seeds: np.ndarray,
    ) -> Mobility:  # fmt: skip
        """Return the mobility of all bodies connected with the pairs `seeds`; their pairs are `chosen`, sorted by components.

        Args:
            q: (n, 12); rows: its `movable` and `basis` are the allowed motions of each body; pairs: (k, 2) bodies.
            J: (R, 6 n) constraints by (v; w); slack: (R,) the diagonal of C.
        """
        n, movable, body = len(q), rows.movable, J.indices // 6
        row = np.repeat(np.arange(J.shape[0]), np.diff(J.indptr))
        # the nodes are bodies and, after them, joint rows: components are connected through bodies that move
        ends = np.concatenate([pairs, np.stack([body, n + row], axis=1)])
        both = movable[ends[:, 0]] & ((ends[:, 1] >= n) | movable[np.minimum(ends[:, 1], n - 1)])
        size = n + J.shape[0]
        graph = sparse.coo_matrix((np.ones(both.sum()), tuple(ends[both].T)), shape=(size, size))
        label = sparse.csgraph.connected_components(graph, directed=False)[1]
        i, j = pairs.T
        of_pair = np.where(movable[i], label[i], label[j])
        chosen_labels = np.unique(of_pair[seeds])
        chosen = np.flatnonzero(np.isin(of_pair, chosen_labels))
        chosen = chosen[np.argsort(of_pair[chosen], kind="stable")]
        free = _blocks(bodies, q, rows.basis, np.flatnonzero(movable & np.isin(label[:n], chosen_labels)))
        reached = np.isin(label[n:], chosen_labels)
        J, slack, joined, factor = J[reached], slack[reached], np.zeros(n, dtype=bool), None
        joined[J.indices // 6], moved = True, J
        if J.shape[0]:
            moved = (J @ sparse.bsr_matrix((free, np.arange(n), np.arange(n + 1)))).tocsr()
            S = (moved @ J.T).tocsc()
            weight = S.diagonal()
            # regularise rows that are redundant or have no mobile body
            factor = scipy.sparse.linalg.splu((S + sparse.diags(slack + np.where(weight > 0.0, 1e-11 * weight, 1.0))).tocsc())
        return cls(chosen, free, J, moved, slack, factor, joined, reached, label[:n], of_pair[chosen], label[n:][reached])

    def rates(self, twists: np.ndarray) -> np.ndarray:
        """Return (R,) rates J v of twists (n, 6)."""
        return self.J @ twists.ravel()

    def apply(self, impulses: np.ndarray) -> np.ndarray:
        """Return twists (n, 6) of impulses (n, 6)."""
        return np.einsum("nij,nj->ni", self.free, impulses) + self.by_joints(self.reactions(impulses))

    def by_joints(self, impulses: np.ndarray) -> np.ndarray:
        """Return twists (n, 6) of impulses (R,) of the rows in J."""
        return (self.moved.T @ impulses).reshape(-1, 6)

    def reactions(self, impulses: np.ndarray) -> np.ndarray:
        """Return (R,) impulses of the rows in J against impulses (n, 6) on the bodies."""
        if self.factor is None:
            return np.zeros(self.J.shape[0])
        return -self.factor.solve(self.moved @ impulses.ravel())

    def fit(self, twists: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """Return the impulses (R,) of the rows that change twists (n, 6) such that J v = `speeds` (R,).

        They are zero for twists that satisfy it already."""
        error = np.where(self.slack > 0.0, 0.0, self.rates(twists) - speeds)
        if np.abs(error).max() <= FITTED * (abs(self.J) @ np.abs(twists.ravel())).max():
            return np.zeros(len(error))
        return -self.factor.solve(error)

    def coupling_size(self, rows: ImpulseRows) -> int:
        """Return the number of entries of the largest dense matrix of `pair_matrix`."""
        count = np.count_nonzero(self.joined[rows.bodies].any(axis=1))
        return count * max(count, self.J.shape[0])

    def free_powers(self, rows: ImpulseRows) -> np.ndarray:
        """Return (k,) the diagonal of `pair_matrix` [J] without joints."""
        return np.einsum("kbi,kbij,kbj->k", rows.impulses, self.free[rows.bodies], rows.impulses)

    def pair_matrix(self, rows: ImpulseRows) -> sparse.csr_matrix:
        """Return (k, k) ``P W P^T`` of k rows P: dense for pairs with joined bodies, else sparse."""
        n = len(self.free)
        P = rows.matrix(n)
        A = ImpulseRows(rows.bodies, np.einsum("kbij,kbj->kbi", self.free[rows.bodies], rows.impulses)).matrix(n) @ P.T
        if self.factor is not None:
            C = (self.moved @ P.T).tocsc()
            joined_pairs = np.flatnonzero(np.diff(C.indptr))
            if len(joined_pairs):
                dense = C[:, joined_pairs].toarray()
                columns = np.split(dense, range(COLUMNS, dense.shape[1], COLUMNS), axis=1)
                block = dense.T @ np.concatenate([self.factor.solve(one) for one in columns], axis=1)
                place = np.repeat(joined_pairs, len(joined_pairs)), np.tile(joined_pairs, len(joined_pairs))
                A = A - sparse.coo_matrix((block.ravel(), place), shape=A.shape)
        A.sort_indices()
        return A


def _blocks(bodies: Bodies, q: np.ndarray, basis: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return (n, 6, 6) inverse mass matrices of some bodies within the motions `basis` (n, 6, 6), zero for others."""
    out, mass = np.zeros((len(q), 6, 6)), bodies.mass[some]
    inertia = free_motion.inertia(q[some, 3:].reshape(-1, 3, 3), bodies.moment[some])
    # the radius of gyration as unit of length makes the rank independent of the size of a body
    radius = np.sqrt(np.trace(inertia, axis1=1, axis2=2) / np.where(mass > 0.0, 2.0 * mass, 1.0))
    unit = np.ones((len(some), 6))
    unit[:, 3:] = np.where(radius > 0.0, radius, 1.0)[:, None]
    M = np.zeros((len(some), 6, 6))
    M[:, :3, :3], M[:, 3:, 3:] = mass[:, None, None] * np.eye(3), inertia
    M = basis[some] @ (M / (unit[:, :, None] * unit[:, None, :])) @ basis[some].transpose(0, 2, 1)
    out[some] = np.linalg.pinv(M, rcond=1e-13, hermitian=True) / (unit[:, :, None] * unit[:, None, :])
    return out
