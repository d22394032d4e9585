"""Elementary motions: a joint's transform T_CD is their product, in the order of its coordinates.

``T_CD(q) = exp(X_1 q_1) exp(X_2 q_2) ...`` with constant twists ``X = (v; w)`` in the frame that the motions before it
have reached: a translation has w = 0, a rotation about an axis through the origin v = 0, a screw both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

X, Y, Z = np.eye(3)


@dataclass(frozen=True)
class Motion:
    """One coordinate's motion: name, twist (6,) of (v; w) per unit of the coordinate, and whether that is a radian."""

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
    """Rotation [rad] with `lead` [m/rad] along its unit axis."""
    return Motion(name, np.concatenate([lead * np.asarray(axis), axis]), True)
