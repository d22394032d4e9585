"""As-rigid-as-possible alternative: ``V = kappa vol |A - R|_F^2`` [J], R the rotation closest to A."""

from __future__ import annotations

import numpy as np

MANY = 64
"""Matrices from which on it pays to treat those that are nearly rotations by themselves."""
PORTION = 4096
"""Matrices that are treated at a time: they stay in the cache."""
NEAR = 0.1
"""Largest entry of ``A^T A - 1`` up to which A is nearly a rotation."""
EXACT = 1e-15
"""That of a rotation, rounding aside."""


def polar(A: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) closest to A (n, 3, 3), by singular values; by Newton's iteration where many are near."""
    if len(A) < MANY:
        return _by_singular_values(A)
    out = np.empty_like(A)
    for first in range(0, len(A), PORTION):
        out[first : first + PORTION] = _closest(A[first : first + PORTION])
    return out


def _by_singular_values(A: np.ndarray) -> np.ndarray:
    U, _, Vt = np.linalg.svd(A)
    flip = np.sign(np.linalg.det(U @ Vt))
    U[:, :, 2] *= flip[:, None]
    return U @ Vt


def _closest(A: np.ndarray) -> np.ndarray:
    """``X <- X (3 - X^T X) / 2`` squares the error (Higham, Functions of Matrices 2008, section 8.3): it leaves singular
    vectors and the sign of the determinant alone. Entries are columns, for small products are slow otherwise."""
    x = np.ascontiguousarray(A.reshape(-1, 9).T)
    error = np.inf
    while error > EXACT:
        S = [[x[i] * x[j] + x[3 + i] * x[3 + j] + x[6 + i] * x[6 + j] for j in range(3)] for i in range(3)]
        last, error = error, max(float(np.abs(S[i][j] - (i == j)).max()) for i in range(3) for j in range(i, 3))
        if not error <= NEAR:
            return _by_singular_values(A)
        if error >= last:
            break
        half = [1.5 * x[k] for k in range(9)]
        for r in range(0, 9, 3):
            for c in range(3):
                half[r + c] -= 0.5 * (x[r] * S[0][c] + x[r + 1] * S[1][c] + x[r + 2] * S[2][c])
        x = np.array(half)
    if (_determinant(x) <= 0.0).any():
        return _by_singular_values(A)
    return x.T.reshape(-1, 3, 3)


def _determinant(x: np.ndarray) -> np.ndarray:
    a, b, c, d, e, f, g, h, i = x
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


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
