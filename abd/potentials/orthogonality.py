"""Near-rigidity of an affine body: ``V = kappa vol |A A^T - 1|_F^2`` [J] (Lan et al. 2022, Affine Body Dynamics)."""

from __future__ import annotations

import numpy as np


def energy(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n,) energies [J]; stiffness = kappa vol (n,) [J], A (n, 3, 3)."""
    E = strain(A)
    return stiffness * np.sum(E * E, axis=(1, 2))


def strain(A: np.ndarray) -> np.ndarray:
    """(n, 3, 3) ``E = A A^T - 1``."""
    return A @ A.transpose(0, 2, 1) - np.eye(3)


def gradient(stiffness: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 3, 3): ``4 kappa vol E A`` with E = A A^T - 1."""
    E = strain(A)
    return 4.0 * stiffness[:, None, None] * (E @ A)


def hessian(stiffness: np.ndarray, A: np.ndarray, project: bool = False) -> np.ndarray:
    """(n, 9, 9) over the rows of A.

    Block (r, s) is ``4 kappa vol (a_s a_r^T + delta_rs A^T A + E_rs 1)``. The first two terms are the Gauss-Newton part
    and positive semidefinite. `project` replaces the third, the `stress` term, by its positive semidefinite part.
    """
    H = np.einsum("nsa,nrc->nrasc", A, A)
    H += np.einsum("rs,nta,ntc->nrasc", np.eye(3), A, A)
    return 4.0 * stiffness[:, None, None] * H.reshape(-1, 9, 9) + stress(stiffness, A, project)


def stress(stiffness: np.ndarray, A: np.ndarray, project: bool = True) -> np.ndarray:
    """(n, 9, 9) the Hessian's term ``4 kappa vol E_rs 1``, or its positive semidefinite part."""
    E = strain(A)
    if project:
        values, vectors = np.linalg.eigh(E)
        E = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return 4.0 * stiffness[:, None, None] * np.einsum("nrs,ac->nrasc", E, np.eye(3)).reshape(-1, 9, 9)
