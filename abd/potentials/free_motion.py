"""Free motion of rigid bodies over a step: the inertial target of the incremental potential.

A body left alone keeps its linear momentum and its angular momentum L [kg m^2/s], in world axes, and turns by the rotation
Q(h) of the torque-free rigid body,

    Q' = [w]_x Q,   w = Q I^-1 Q^T L,   I = tr(S) 1 - S,   S = A diag(s) A^T,

so that its inertial target is ``p + h v`` and ``A_free = Q A``: a rotation, not the chord ``A + h Ad``, which shortens A
and brakes the spin. The strain of A is carried along. Near-rigidity exerts no torque (its ``G A^T`` is symmetric), so the
rigid motion can be integrated by itself; strain has no velocity of its own and follows the loads.

Q is composed of exact parts (Touma and Wisdom 1994; McLachlan, Quispel and Tse 2009). With I = V diag(J) V^T and J_mid the
middle moment, the Hamiltonian ``|L|^2 / (2 J_mid)`` turns everything about L, and what is left turns the body about its
other two principal axes, one after the other. Bodies of which two moments are equal move exactly, any other by a symmetric
composition of sixth order (Yoshida 1990) in substeps; |L| and its direction are kept exactly, the energy to 1e-8.
"""

from __future__ import annotations

import numpy as np

from abd.rotations import axial, rotations, skew

SUBSTEP = 0.2
"""Largest rotation [rad] of one composition: of both parts, in the seven factors of its error."""
MOST_SUBSTEPS = 1000
STAGES = (0.784513610477560, 0.235573213359357, -1.17767998417887, 1.315186320683906)
"""Weights of the first four of seven stages; the others mirror them."""
FLAT = 1e-9
"""Share of the largest moment of inertia below which one counts as vanishing: an ideal rod's about itself."""


def inertia(A: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """(n, 3, 3) moments of inertia I about the centres of mass in world axes.

    Args:
        A: (n, 3, 3) affine maps; moment: (n, 3) s [kg m^2].
    """
    S = np.einsum("nik,nk,njk->nij", A, moment, A)
    return np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S


def spin(I: np.ndarray, L: np.ndarray) -> np.ndarray:
    """(n, 3) angular velocities I^-1 L; nothing about axes without inertia."""
    J, V = np.linalg.eigh(I)
    m = np.einsum("nik,ni->nk", V, L)
    bears = FLAT * J[:, 2:] < J
    return np.einsum("nik,nk->ni", V, np.where(bears, m / np.where(bears, J, 1.0), 0.0))


def free_rotation(I: np.ndarray, L: np.ndarray, h: float | np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotations Q of the free motion over h [s], of all or (n,), from moments of inertia I (n, 3, 3) and momenta L
    (n, 3)."""
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


def _turn(R: np.ndarray, m: np.ndarray, axis: int, share: np.ndarray) -> None:
    """Turn bodies R (n, 3, 3) about one of their own axes by ``share m[axis]``; their momenta m stay where they are in
    space."""
    j, k = (axis + 1) % 3, (axis + 2) % 3
    angle = share * m[:, axis]
    c, s = np.cos(angle), np.sin(angle)
    R[:, :, j], R[:, :, k] = (
        c[:, None] * R[:, :, j] + s[:, None] * R[:, :, k],
        c[:, None] * R[:, :, k] - s[:, None] * R[:, :, j],
    )
    m[:, j], m[:, k] = c * m[:, j] + s * m[:, k], c * m[:, k] - s * m[:, j]


def torque(force: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 3) torques in world axes of generalised forces (n, 3, 3) on the affine maps A (n, 3, 3): twice the axial vector
    of ``F A^T``."""
    return 2.0 * axial(force @ A.transpose(0, 2, 1))


def rates(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rates ``[w]_x A`` of a rigid motion."""
    return skew(w) @ A
