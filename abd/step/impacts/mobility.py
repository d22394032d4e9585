"""W: how the bodies that impacts reach move by impulses, through joints too.

Twists are ``(v; w)``, impulses ``(P; L)`` about the centres of mass, in world axes. Free bodies have blocks W_b, the inverse of
their mass matrix within the motions that they may have; joint rows J v = 0 that hold take

    W = W_0 - W_0 J^T (J W_0 J^T + C)^-1 J W_0

with C = 0. Rows of coordinates with which a rotor of the inertia a turns do not hold, but add a J^T J to the mass matrix:
that is the same with C = 1/a (Woodbury).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg

from abd.joints.rows.rigid_rows import RigidRows

FITTED = 1e-9
"""Error of J v, over the largest sum of its terms, that counts as zero."""


@dataclass(frozen=True)
class Mobility:
    """Of the bodies that are connected with some pairs by contacts and joints.

    Attributes:
        chosen: (k,) indices of the pairs that take part.
        blocks: (n, 6, 6) W_b, zero for bodies that do not move or are not reached.
        free: (6 n, 6 n) of them; J: (R, 6 n) joint rows, slack: (R,) their C; factor: of ``J W_0 J^T + C``, None without rows.
        joined: (n,) bool, bodies in these rows; reached: of the given rows those that are in J, bool.
    """

    chosen: np.ndarray
    blocks: np.ndarray
    free: sparse.csr_matrix
    J: sparse.csr_matrix
    slack: np.ndarray
    factor: object
    joined: np.ndarray
    reached: np.ndarray

    @property
    def jointed(self) -> bool:
        """Whether joints take part."""
        return self.factor is not None

    @classmethod
    def of(
        cls,
        mass: np.ndarray,
        inertia: np.ndarray,
        rows: RigidRows,
        J: sparse.csr_matrix,
        slack: np.ndarray,
        pairs: np.ndarray,
        seeds: np.ndarray,
    ) -> Mobility:
        """Mobility of all bodies connected with the pairs `seeds`.

        Args:
            mass: (n,) [kg]; inertia: (n, 3, 3) about the centres of mass, world axes [kg m^2].
            rows: whose `movable` and `basis` say how each body may move; J: (R, 6 n) rows that hold, by (v; w);
                slack: (R,) the diagonal of C.
            pairs: (k, 2) bodies.
        """
        n, movable, body = len(mass), rows.movable, J.indices // 6
        row = np.repeat(np.arange(J.shape[0]), np.diff(J.indptr))
        # bodies and, behind them, joint rows as nodes: components are connected through bodies that move
        ends = np.concatenate([pairs, np.stack([body, n + row], axis=1)])
        both = movable[ends[:, 0]] & ((ends[:, 1] >= n) | movable[np.minimum(ends[:, 1], n - 1)])
        size = n + J.shape[0]
        graph = sparse.coo_matrix((np.ones(both.sum()), tuple(ends[both].T)), shape=(size, size))
        label = sparse.csgraph.connected_components(graph, directed=False)[1]
        i, j = pairs.T
        of_pair = np.where(movable[i], label[i], label[j])
        wanted = np.unique(of_pair[seeds])
        chosen = np.flatnonzero(np.isin(of_pair, wanted))
        blocks = _blocks(mass, inertia, rows.basis, movable & np.isin(label[:n], wanted))
        free = sparse.bsr_matrix((blocks, np.arange(n), np.arange(n + 1)), shape=(6 * n, 6 * n)).tocsr()
        reached = np.isin(label[n:], wanted)
        J, slack = J[reached].tocsr(), slack[reached]
        joined = np.zeros(n, dtype=bool)
        if not J.shape[0]:
            return cls(chosen, blocks, free, J, slack, None, joined, reached)
        joined[J.indices // 6] = True
        S = (J @ free @ J.T).tocsc()
        weight = S.diagonal()
        # rows that are redundant, or hold nothing that moves, get no more than their share
        S = S + sparse.diags(slack + np.where(weight > 0.0, 1e-11 * weight, 1.0))
        return cls(chosen, blocks, free, J, slack, scipy.sparse.linalg.splu(S.tocsc()), joined, reached)

    def apply(self, impulses: np.ndarray) -> np.ndarray:
        """Twists (6 n, ...) of impulses."""
        moved = self.free @ impulses
        if self.factor is not None:
            moved = moved - self.free @ (self.J.T @ self.factor.solve(self.J @ moved))
        return moved

    def fit(self, twists: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """Smallest change of twists (6 n,), in the norm of the mass matrix, with which rows that hold are J v = `speeds` (R,).

        It is zero for twists that have been fitted."""
        off = np.where(self.slack > 0.0, 0.0, self.J @ twists - speeds)
        if np.abs(off).max() <= FITTED * (abs(self.J) @ np.abs(twists)).max():
            return np.zeros(len(twists))
        return -(self.free @ (self.J.T @ self.factor.solve(off)))

    def rows_met(self, P: sparse.csr_matrix) -> int:
        """Joint rows times the pairs among P (k, 6 n) that meet a joined body."""
        meets = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))[self.joined[P.indices // 6]]
        return len(np.unique(meets)) * self.J.shape[0]

    def between(self, P: sparse.csr_matrix) -> sparse.csr_matrix:
        """(k, k) ``P W P^T`` of rows P (k, 6 n): sparse but for those that meet joints."""
        A = P @ self.free @ P.T
        if self.factor is not None:
            C = (self.J @ self.free @ P.T).tocsc()
            meets = np.flatnonzero(np.diff(C.indptr))
            if len(meets):
                dense = C[:, meets].toarray()
                block = dense.T @ self.factor.solve(dense)
                place = np.repeat(meets, len(meets)), np.tile(meets, len(meets))
                A = A - sparse.coo_matrix((block.ravel(), place), shape=A.shape)
        A = sparse.csr_matrix(0.5 * (A + A.T))
        A.sort_indices()
        return A


def _blocks(mass: np.ndarray, inertia: np.ndarray, basis: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """(n, 6, 6) inverses of the mass matrices within the motions `basis` (n, 6, 6), zero for bodies that are not reached."""
    out = np.zeros((len(mass), 6, 6))
    some = np.flatnonzero(reached)
    # lengths in units of the radius of gyration, so that the size of a body does not decide what counts as none
    radius = np.sqrt(np.trace(inertia[some], axis1=1, axis2=2) / np.where(mass[some] > 0.0, 2.0 * mass[some], 1.0))
    unit = np.ones((len(some), 6))
    unit[:, 3:] = np.where(radius > 0.0, radius, 1.0)[:, None]
    M = np.zeros((len(some), 6, 6))
    M[:, :3, :3], M[:, 3:, 3:] = mass[some, None, None] * np.eye(3), inertia[some]
    M = basis[some] @ (M / (unit[:, :, None] * unit[:, None, :])) @ basis[some].transpose(0, 2, 1)
    out[some] = np.linalg.pinv(M, rcond=1e-13, hermitian=True) / (unit[:, :, None] * unit[:, None, :])
    return out
