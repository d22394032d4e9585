"""As-rigid-as-possible alternative: ``V = kappa vol |A - R|_F^2`` [J], R the rotation closest to A."""

from __future__ import annotations

import numpy as np


NEAR = 6
"""Newton iterations within which maps near rotations reach theirs."""


def polar(A: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) closest to A (n, 3, 3): by ``R <- (R + R^-T)/2`` near rotations (Higham 1986), ten times
    faster than by singular values, which serve elsewhere."""
    R = A
    for _ in range(NEAR):
        cofactors, determinants = _cofactors(R)
        if not (determinants > 0.0).all():
            break
        closer = 0.5 * (R + cofactors / determinants[:, None, None])
        change = np.abs(closer - R).max(initial=0.0)
        R = closer
        if change < 1e-9:
            return R
    U, _, Vt = np.linalg.svd(A)
    flip = np.sign(np.linalg.det(U @ Vt))
    U[:, :, 2] *= flip[:, None]
    return U @ Vt


def _cofactors(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cofactor matrices (n, 3, 3), det(A) A^-T, and determinants (n,)."""
    out = np.empty_like(A)
    for r in range(3):
        x, y = A[:, (r + 1) % 3], A[:, (r + 2) % 3]
        for c in range(3):
            i, j = (c + 1) % 3, (c + 2) % 3
            out[:, r, c] = x[:, i] * y[:, j] - x[:, j] * y[:, i]
    return out, np.einsum("ni,ni->n", A[:, 0], out[:, 0])


def energy(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n,) energies [J]."""
    D = A - polar(A)
    return stiffness * np.sum(D * D, axis=(1, 2))


def gradient(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 3, 3): ``2 kappa vol (A - R)``; R is stationary to first order."""
    return 2.0 * stiffness[:, None, None] * (A - polar(A))


def hessian(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 9, 9) over the rows of A: ``dA -> 2 kappa vol sym(dA R^T) R``, the positive semi-definite part at A = R.

    Entry ((r, a), (s, c)) is ``kappa vol (delta_rs delta_ac + R_rc R_sa)``.
    """
    R = polar(A)
    H = np.einsum("nrc,nsa->nrasc", R, R) + np.einsum("rs,ac->rasc", np.eye(3), np.eye(3))
    return stiffness[:, None, None] * H.reshape(-1, 9, 9)
