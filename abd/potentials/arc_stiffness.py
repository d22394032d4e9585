"""Hessian contribution of an arc in place of a straight line (docs/theory.md, "Newton's method on arcs").

Along ``A(alpha) = exp(alpha W) A``, W = [w]_x, the second derivative of an energy with gradient G = dE/dA gains

    G : W^2 A  =  w . (sym P - tr P 1) w,     P = G A^T

Near-rigidity is invariant under rotation, so that G excludes its gradient, and this term replaces the stress term of
its Hessian. In equilibrium both are equal. Otherwise a new contact has a force that the stress does not contain yet, so
bodies in contact use the arc term. The force of a joint at the start of a step is spurious, so bodies without contact
use the stress of the last iterate. The positive semidefinite part is a stiffness of the rotation ``w = axial(dA A^-1)``
within a change dA of A.
"""

from __future__ import annotations

import numpy as np

ALTERNATING = np.cross(np.eye(3)[:, None], np.eye(3))
"""(3, 3, 3) sign of the permutation (i, j, k)."""


def hessian(A: np.ndarray, gradient: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """(n, 9, 9) positive semidefinite blocks over the rows of A.

    Args:
        A: (n, 3, 3); gradient: (n, 3, 3) G of all energies except near-rigidity.
        turning: (n, 3, 3) projectors on the rotation vectors that the arcs follow (`abd.contact.path.direction_path`).
    """
    P = gradient @ A.transpose(0, 2, 1)
    M = 0.5 * (P + P.transpose(0, 2, 1)) - np.trace(P, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    values, vectors = np.linalg.eigh(turning @ M @ turning)
    M = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    # axial(dA A^-1), entry by entry of dA
    rotation = -0.5 * np.einsum("irk,nck->nirc", ALTERNATING, np.linalg.inv(A)).reshape(-1, 3, 9)
    return np.einsum("nip,nij,njq->npq", rotation, M, rotation)
