"""What following an arc instead of a straight line adds to the Hessian (docs/theory.md, "Newton's method on arcs").

Along ``A(alpha) = exp(alpha W) A``, W = [w]_x, the second derivative of an energy with gradient G = dE/dA gains

    G : W^2 A  =  w . (sym P - tr P 1) w,     P = G A^T

Near-rigidity is blind to rotation, so its own G belongs out of it, and with it the stress term of its straight Hessian
that this one replaces. In equilibrium the two are equal. Away from it a contact that comes close pulls or pushes at
once with a force that the stress does not know yet, so bodies in contact take the arc's term; a joint's pull at the
start of a step is spurious, so bodies without contact keep the stress of the last iterate. The positive part stays, as
a stiffness of the rotation ``w = axial(dA A^-1)`` that a change dA of A contains.
"""

from __future__ import annotations

import numpy as np

ALTERNATING = np.cross(np.eye(3)[:, None], np.eye(3))
"""(3, 3, 3) sign of the permutation (i, j, k)."""


def hessian(A: np.ndarray, gradient: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """(n, 9, 9) positive semi-definite blocks over the rows of A.

    Args:
        A: (n, 3, 3); gradient: (n, 3, 3) G, of all energies but near-rigidity.
        turning: (n, 3, 3) projectors on the rotation vectors that the arcs follow, see `abd.contact.path.follow`.
    """
    P = gradient @ A.transpose(0, 2, 1)
    M = 0.5 * (P + P.transpose(0, 2, 1)) - np.trace(P, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    values, vectors = np.linalg.eigh(turning @ M @ turning)
    M = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    # axial(dA A^-1), entry by entry of dA
    rotation = -0.5 * np.einsum("irk,nck->nirc", ALTERNATING, np.linalg.inv(A)).reshape(-1, 3, 9)
    return np.einsum("nip,nij,njq->npq", rotation, M, rotation)
