"""Exact placement of one joint by a rigid motion of one side of the mechanism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.joint_model import Joint
from abd.model import WORLD
from abd.rotations import inverse, polar, pose


def body_pose(q: np.ndarray, body: int) -> np.ndarray:
    """(4, 4) pose of a body in rigid states q (n, 12); the identity for the world."""
    return np.eye(4) if body == WORLD else pose(q[body, 3:].reshape(3, 3), q[body, :3])


def rigid_pose(pose) -> np.ndarray:
    """Return a copy of a pose (4, 4).

    Raises:
        ValueError: the matrix is not a rigid transform.
    """
    T = np.array(pose, dtype=float)
    if T.shape != (4, 4) or not np.isfinite(T).all() or not np.array_equal(T[3], (0.0, 0.0, 0.0, 1.0)):
        raise ValueError("a pose must be a 4x4 matrix of finite numbers with the last row 0 0 0 1")
    if np.abs(T[:3, :3] @ T[:3, :3].T - np.eye(3)).max() > 1e-6 or np.linalg.det(T[:3, :3]) < 0.0:
        raise ValueError("the upper left 3x3 block of a pose must be a rotation")
    return T


def present_transform(joint: Joint, q: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) of a joint in rigid states q (n, 12)."""
    base, tip = body_pose(q, joint.parent) @ joint.parent_frame, body_pose(q, joint.child) @ joint.child_frame
    return inverse(base) @ tip


def on_present_parent(joint: Joint, q: np.ndarray) -> Joint:
    """The joint as a joint to the world, with its frame D at the pose that the parent has in rigid states q (n, 12).

    Its measures are then functions of the two frames, also for world axes while D moves.
    """
    if joint.parent == WORLD:
        return joint
    return replace(joint, parent=WORLD, parent_frame=body_pose(q, joint.parent) @ joint.parent_frame)


def motion_to(joint: Joint, q: np.ndarray, T: np.ndarray, of_child: bool) -> np.ndarray:
    """(4, 4) world motion of the child, or of the parent, that gives the joint the transform T."""
    parent, child = body_pose(q, joint.parent), body_pose(q, joint.child)
    if of_child:
        return parent @ joint.parent_frame @ T @ inverse(joint.child_frame) @ inverse(child)
    return child @ joint.child_frame @ inverse(T) @ inverse(joint.parent_frame) @ inverse(parent)


def move_bodies(q: np.ndarray, motion: np.ndarray, which: np.ndarray) -> None:
    """Apply a world motion (4, 4) to the bodies `which` (n,) bool, in place."""
    R = motion[:3, :3]
    q[which, :3] = q[which, :3] @ R.T + motion[:3, 3]
    q[which, 3:] = polar(R @ q[which, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
