"""Free motion of rigid bodies over a step: the inertial target of the incremental potential.

A free body keeps its linear momentum and its angular momentum L [kg m^2/s], in world axes, and rotates by the rotation
Q(h) of the torque-free rigid body,

    Q' = [w]_x Q,   w = Q I^-1 Q^T L,   I = tr(S) 1 - S,   S = A diag(s) A^T.

Its inertial target is ``p + h v`` and ``A_free = Q A``. This is a rotation, unlike the chord ``A + h Ad``, which
shortens A and reduces the spin. The strain of A rotates with the body. Near-rigidity exerts no torque (its ``G A^T`` is
symmetric), so that the rigid motion can be integrated separately. Strain has no velocity and follows the loads.

Q is a composition of exact flows (Touma and Wisdom 1994; McLachlan, Quispel and Tse 2009). With I = V diag(J) V^T and
the middle moment J_mid, the Hamiltonian ``|L|^2 / (2 J_mid)`` rotates the body about L. The remainder rotates it about
its other two principal axes in turn. Bodies with two equal moments move exactly; others by a symmetric composition of
sixth order (Yoshida 1990) in substeps. L is conserved exactly, the energy to 1e-8.
"""

from __future__ import annotations

import numpy as np

from abd.rotations import axial, rotations, skew
from cuda_kernels.shared.bodies import FLAT, MOST_SUBSTEPS, SUBSTEP

STAGES = (0.784513610477560, 0.235573213359357, -1.17767998417887, 1.315186320683906)
"""Weights of the first four of seven stages; the others are symmetric."""


def inertia(A: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """(n, 3, 3) moments of inertia I about the centres of mass in world axes.

    Args:
        A: (n, 3, 3) affine maps; moment: (n, 3) s [kg m^2].
    """
    S = np.einsum("nik,nk,njk->nij", A, moment, A)
    return np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S


def spin(I: np.ndarray, L: np.ndarray) -> np.ndarray:
    """(n, 3) angular velocities I^-1 L; 0 about axes without inertia."""
    J, V = np.linalg.eigh(I)
    m = np.einsum("nik,ni->nk", V, L)
    bears = FLAT * J[:, 2:] < J
    return np.einsum("nik,nk->ni", V, np.where(bears, m / np.where(bears, J, 1.0), 0.0))


def free_rotation(I: np.ndarray, L: np.ndarray, h: float | np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations Q of the free motion over h [s], scalar or (n,).

    Args:
        I: (n, 3, 3) moments of inertia; L: (n, 3) angular momenta.
    """
    J, V = np.linalg.eigh(I)
    V = V * np.where(np.linalg.det(V) < 0.0, -1.0, 1.0)[:, None, None]
    middle = J[:, 1]
    turns = middle > 0.0
    inverse = np.divide(1.0, middle, out=np.zeros_like(middle), where=turns)
    m = np.einsum("nik,ni->nk", V, L)
    bears = turns & (J[:, 0] > FLAT * J[:, 2])
    first = np.where(bears, 1.0 / np.where(bears, J[:, 0], 1.0) - inverse, 0.0)
    last = np.divide(1.0, J[:, 2], out=np.zeros_like(middle), where=turns) - inverse
    size = np.linalg.norm(m, axis=1)
    mixed = np.sqrt(np.abs(first * last)) * size
    largest = np.maximum(mixed, np.maximum(np.abs(first * m[:, 0]), np.abs(last * m[:, 2])))
    h = np.broadcast_to(h, len(L))
    angle = np.abs(h) * (mixed**2 * largest**5) ** (1.0 / 7.0)
    count = np.clip(np.ceil(angle / SUBSTEP), 1, MOST_SUBSTEPS).astype(int)
    within = np.tile(np.eye(3), (len(L), 1, 1))
    for k in range(int(count.max(initial=0))):
        t = np.where(k < count, h / count, 0.0)
        for weight in (*STAGES, *STAGES[2::-1]):
            _turn(within, m, 0, 0.5 * weight * t * first)
            _turn(within, m, 2, weight * t * last)
            _turn(within, m, 0, 0.5 * weight * t * first)
    return rotations((h * inverse)[:, None] * L) @ V @ within @ V.transpose(0, 2, 1)


def _turn(R: np.ndarray, m: np.ndarray, axis: int, fraction: np.ndarray) -> None:
    """Rotate bodies R (n, 3, 3) about a body axis by ``fraction m[axis]``; their momenta m are constant in the world."""
    j, k = (axis + 1) % 3, (axis + 2) % 3
    angle = fraction * m[:, axis]
    c, s = np.cos(angle), np.sin(angle)
    R[:, :, j], R[:, :, k] = (
        c[:, None] * R[:, :, j] + s[:, None] * R[:, :, k],
        c[:, None] * R[:, :, k] - s[:, None] * R[:, :, j],
    )
    m[:, j], m[:, k] = c * m[:, j] + s * m[:, k], c * m[:, k] - s * m[:, j]


def torque(force: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 3) torques, world axes, of generalised forces (n, 3, 3) on the maps A (n, 3, 3): twice the axial vector of
    ``F A^T``.
    """
    return 2.0 * axial(force @ A.transpose(0, 2, 1))


def rates(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rates ``[w]_x A`` of a rigid motion."""
    return skew(w) @ A
