"""Inertia of the incremental potential: ``E = 1/2 |q - qt|_M^2`` with the diagonal mass of the principal frame."""

from __future__ import annotations

import numpy as np


def energy(mass: np.ndarray, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(n,) energies [kg m^2] for masses, states and targets (n, 12)."""
    return 0.5 * np.sum(mass * (q - target) ** 2, axis=1)


def gradient(mass: np.ndarray, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(n, 12) gradients."""
    return mass * (q - target)


def hessian(mass: np.ndarray) -> np.ndarray:
    """(n, 12, 12), constant and diagonal."""
    return mass[:, :, None] * np.eye(12)
