"""Elementary motions: the transform T_CD of a joint is their product, in the order of its coordinates.

``T_CD(q) = exp(X_1 q_1) exp(X_2 q_2) ...`` with constant twists ``X = (v; w)`` (6,) per unit of a coordinate, in the frame
after the preceding motions. A translation has w = 0, a rotation about an axis through the origin has v = 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from abd.rotations import skew

X, Y, Z = np.eye(3)


def translation(axis: np.ndarray) -> np.ndarray:
    """(6,) twist per metre along a unit axis."""
    return np.concatenate([axis, np.zeros(3)])


def rotation(axis: np.ndarray) -> np.ndarray:
    """(6,) twist per radian, right-handed, about a unit axis through the origin."""
    return np.concatenate([np.zeros(3), axis])


def screw(axis: np.ndarray, lead: float) -> np.ndarray:
    """(6,) twist per radian about a unit axis, with translation `lead` [m/rad] along it."""
    return np.concatenate([lead * np.asarray(axis), axis])


def turned(w: np.ndarray, value: float = 1.0) -> np.ndarray:
    """(3, 3) rotation about w (3,) by ``|w| value`` [rad]."""
    angle = np.linalg.norm(w) * value
    if angle == 0.0:
        return np.eye(3)
    W = skew(w / np.linalg.norm(w))
    return np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * (W @ W)


def product(motions: Sequence[np.ndarray], values: Sequence[float]) -> np.ndarray:
    """T_CD (4, 4) at coordinate values (k,) [m or rad] in the order of the motions (6,); values may be complex."""
    number = np.result_type(float, *values)
    T = np.eye(4, dtype=number)
    for twist, value in zip(motions, values, strict=True):
        step = np.eye(4, dtype=number)
        step[:3, :3], step[:3, 3] = turned(twist[3:], value), value * twist[:3]
        T = T @ step
    return T
