"""Gravity, constant forces and torques as generalised forces; massless bodies are allowed."""

from __future__ import annotations

import numpy as np

from abd.rotations import skew


def couple(torque: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 3, 3) affine force of torques (n, 3) [N m]: ``1/2 [tau] A^-T``, row-major, at the current A."""
    return 0.5 * skew(torque) @ np.linalg.inv(A).transpose(0, 2, 1)


def generalised_force(mass: np.ndarray, gravity: np.ndarray, force: np.ndarray, torque: np.ndarray, A: np.ndarray):
    """(n, 12) in q order: gravity and forces act on the centre of mass, torques on the affine part."""
    f = np.zeros((len(mass), 12))
    f[:, :3] = mass[:, None] * gravity + force
    f[:, 3:] = couple(torque, A).reshape(-1, 9)
    return f
