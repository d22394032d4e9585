"""Elements of a pair potential, in the form that is pulled back to affine bodies.

A point with homogeneous rest coordinates ``Y = (1, X)``, or an edge vector with ``Y = (0, E)``, moves as ``Q Y`` with
``Q = [p | A]``. A force f on it has the body gradient ``f Y^T`` (3x4), a stiffness K between two of them the block
``K (x) Y_a Y_b^T``. Jacobians are not assembled (docs/theory.md, "Affine bodies").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.tables import Table

STATE_ORDER = np.array([[r if k == 0 else 3 + 3 * r + k - 1 for k in range(4)] for r in range(3)])
"""(3, 4) index in q = (p; row 1; row 2; row 3 of A) of the entry (r, k) of Q."""


@dataclass(frozen=True)
class Elements(Table):
    """e elements of a potential between two bodies i and j.

    Attributes:
        source: (e,) index of the contact of an element.
        f_i, f_j: (e, 3) derivatives of the energy by the positions ``Q_i Y_i``, ``Q_j Y_j`` [N]; minus the forces.
        K_ii, K_ij, K_jj: (e, 3, 3) blocks of the positive semidefinite second derivative [N/m].
        Y_i, Y_j: (e, 4) homogeneous rest coordinates.
    """

    source: np.ndarray
    f_i: np.ndarray
    f_j: np.ndarray
    K_ii: np.ndarray
    K_ij: np.ndarray
    K_jj: np.ndarray
    Y_i: np.ndarray
    Y_j: np.ndarray

    @classmethod
    def between(cls, source: np.ndarray, f: np.ndarray, K: np.ndarray, Y_i: np.ndarray, Y_j: np.ndarray) -> Elements:
        """Elements of forces f (e, 3) and stiffnesses K (e, 3, 3) between two points; Y_j = 0 has no effect on body j."""
        return cls(source, f, -f, K, -K, K, Y_i, Y_j)

    def exchanged(self, where: np.ndarray) -> Elements:
        """Elements with i and j exchanged where the mask (e,) is true."""
        row, block = where[:, None], where[:, None, None]
        return Elements(
            source=self.source,
            f_i=np.where(row, self.f_j, self.f_i),
            f_j=np.where(row, self.f_i, self.f_j),
            K_ii=np.where(block, self.K_jj, self.K_ii),
            K_ij=np.where(block, self.K_ij.transpose(0, 2, 1), self.K_ij),
            K_jj=np.where(block, self.K_ii, self.K_jj),
            Y_i=np.where(row, self.Y_j, self.Y_i),
            Y_j=np.where(row, self.Y_i, self.Y_j),
        )

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """(e, 12) gradients by q_i and by q_j."""
        return body_gradient(self.f_i, self.Y_i), body_gradient(self.f_j, self.Y_j)

    def blocks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(e, 12, 12) blocks ii, ij and jj of the second derivative."""
        return (
            body_block(self.K_ii, self.Y_i, self.Y_i),
            body_block(self.K_ij, self.Y_i, self.Y_j),
            body_block(self.K_jj, self.Y_j, self.Y_j),
        )


def body_gradient(f: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(e, 12) gradients ``f Y^T`` in q order, from f (e, 3) and Y (e, 4)."""
    gradient = np.empty((len(f), 12))
    gradient[:, STATE_ORDER] = np.einsum("er,ek->erk", f, Y)
    return gradient


def body_block(K: np.ndarray, Y_a: np.ndarray, Y_b: np.ndarray) -> np.ndarray:
    """(e, 12, 12) blocks ``K (x) Y_a Y_b^T`` in q order, from K (e, 3, 3) and Y (e, 4)."""
    block = np.empty((len(K), 12, 12))
    block[:, STATE_ORDER[:, :, None, None], STATE_ORDER] = np.einsum("ers,ek,el->erksl", K, Y_a, Y_b)
    return block
