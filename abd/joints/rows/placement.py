"""Placing one joint exactly: from its transform to the motion of a whole side of the mechanism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.model import WORLD, Joint
from abd.rotations import inverse, polar, pose


def body_pose(q: np.ndarray, body: int) -> np.ndarray:
    """(4, 4) pose of a body in rigid states q (n, 12); the identity for the world."""
    return np.eye(4) if body == WORLD else pose(q[body, 3:].reshape(3, 3), q[body, :3])


def rigid_pose(pose) -> np.ndarray:
    """A pose (4, 4) as it is given.

    Raises:
        ValueError: it is not a rotation and a translation.
    """
    T = np.array(pose, dtype=float)
    if T.shape != (4, 4) or not np.isfinite(T).all() or not np.array_equal(T[3], (0.0, 0.0, 0.0, 1.0)):
        raise ValueError("a pose is a 4x4 matrix of finite numbers with the last row 0 0 0 1")
    if np.abs(T[:3, :3] @ T[:3, :3].T - np.eye(3)).max() > 1e-6 or np.linalg.det(T[:3, :3]) < 0.0:
        raise ValueError("the upper left 3x3 block of a pose is a rotation")
    return T


def present_transform(joint: Joint, q: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) of a joint in rigid states q (n, 12)."""
    base, tip = body_pose(q, joint.parent) @ joint.parent_frame, body_pose(q, joint.child) @ joint.child_frame
    return inverse(base) @ tip


def on_present_parent(joint: Joint, q: np.ndarray) -> Joint:
    """The joint with its frame D where the parent has it in rigid states q (n, 12), as a joint to the world.

    Its measures are functions of the two frames at that pose for axes of the world too, whether or not D moves.
    """
    if joint.parent == WORLD:
        return joint
    return replace(joint, parent=WORLD, parent_frame=body_pose(q, joint.parent) @ joint.parent_frame)


def motion_to(joint: Joint, q: np.ndarray, T: np.ndarray, of_child: bool) -> np.ndarray:
    """(4, 4) motion of the world that gives the joint the transform T when the child, or else the parent, makes it."""
    parent, child = body_pose(q, joint.parent), body_pose(q, joint.child)
    if of_child:
        return parent @ joint.parent_frame @ T @ inverse(joint.child_frame) @ inverse(child)
    return child @ joint.child_frame @ inverse(T) @ inverse(joint.parent_frame) @ inverse(parent)


def move_bodies(q: np.ndarray, motion: np.ndarray, which: np.ndarray) -> None:
    """Apply a motion (4, 4) of the world to some bodies (n,) bool, in place."""
    R = motion[:3, :3]
    q[which, :3] = q[which, :3] @ R.T + motion[:3, 3]
    q[which, 3:] = polar(R @ q[which, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
