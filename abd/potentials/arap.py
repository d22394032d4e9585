"""As-rigid-as-possible energy: ``V = kappa vol |A - R|_F^2`` [J], R the rotation closest to A."""

from __future__ import annotations

import numpy as np

from abd.rotations import polar


def energy(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n,) energies [J]."""
    D = A - polar(A)
    return stiffness * np.sum(D * D, axis=(1, 2))


def strain(A: np.ndarray) -> np.ndarray:
    """(n, 3, 3) ``R^T A - 1``, symmetric and independent of rotations; its norm is that of A - R."""
    return polar(A).transpose(0, 2, 1) @ A - np.eye(3)


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
