"""Joint coordinates: what a joint leaves free, read from the polar factors of its bodies."""

from __future__ import annotations

import numpy as np

from abd.model import WORLD, Joint
from abd.potentials.arap import polar


def _frames(joint: Joint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triads (3, 3) of the parent and the child in world axes."""
    child = polar(q[joint.child, 3:].reshape(1, 3, 3))[0] @ joint.child_frame[:3, :3]
    if joint.parent == WORLD:
        return joint.parent_frame[:3, :3], child
    return polar(q[joint.parent, 3:].reshape(1, 3, 3))[0] @ joint.parent_frame[:3, :3], child


def coordinates(joint: Joint, q: np.ndarray) -> np.ndarray:
    """(1,) angle of a hinge in (-pi, pi] [rad], counter-clockwise about the parent's axis; (0,) for other joints."""
    if joint.type != "hinge":
        return np.zeros(0)
    D, C = _frames(joint, q)
    R = D.T @ C
    return np.array([np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])])


def rates(joint: Joint, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(1,) speed of a hinge [rad/s]; (0,) for other joints."""
    if joint.type != "hinge":
        return np.zeros(0)
    D, _ = _frames(joint, q)
    relative = angular_velocity(q[joint.child], qd[joint.child])
    if joint.parent != WORLD:
        relative = relative - angular_velocity(q[joint.parent], qd[joint.parent])
    return np.array([relative @ D[:, 2]])


def angular_velocity(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(3,) axial vector of the skew part of ``dA/dt A^-1`` [rad/s] of a state q (12,), qd (12,)."""
    W = qd[3:].reshape(3, 3) @ np.linalg.inv(q[3:].reshape(3, 3))
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])
