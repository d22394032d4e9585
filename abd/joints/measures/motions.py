"""Elementary motions: the transform T_CD of a joint is their product, in the order of its coordinates.

``T_CD(q) = exp(X_1 q_1) exp(X_2 q_2) ...`` with constant twists ``X = (v; w)`` in the frame after the preceding
motions. A translation has w = 0, a rotation about an axis through the origin has v = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

X, Y, Z = np.eye(3)


@dataclass(frozen=True)
class Motion:
    """Motion of one coordinate: name, twist (6,) of (v; w) per unit of the coordinate, and whether that is a radian."""

    name: str
    twist: np.ndarray
    rotary: bool


def translation(name: str, axis: np.ndarray) -> Motion:
    """Displacement [m] along a unit axis."""
    return Motion(name, np.concatenate([axis, np.zeros(3)]), False)


def rotation(name: str, axis: np.ndarray) -> Motion:
    """Right-handed rotation [rad] about a unit axis through the origin."""
    return Motion(name, np.concatenate([np.zeros(3), axis]), True)


def screw(name: str, axis: np.ndarray, lead: float) -> Motion:
    """Rotation [rad] with translation `lead` [m/rad] along its unit axis."""
    return Motion(name, np.concatenate([lead * np.asarray(axis), axis]), True)


def turned(w: np.ndarray, value: float = 1.0) -> np.ndarray:
    """(3, 3) rotation about w (3,) by ``|w| value`` [rad]."""
    angle = np.linalg.norm(w) * value
    if angle == 0.0:
        return np.eye(3)
    x, y, z = w / np.linalg.norm(w)
    W = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * (W @ W)


def product(motions: list[Motion], values: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) at coordinate values (k,) [m or rad] in the order of the motions; values may be complex."""
    number = np.result_type(float, *values)
    T = np.eye(4, dtype=number)
    for motion, value in zip(motions, values, strict=True):
        step = np.eye(4, dtype=number)
        step[:3, :3], step[:3, 3] = turned(motion.twist[3:], value), value * motion.twist[:3]
        T = T @ step
    return T
