"""Frames of a joint in the world at t = 0, from the given keys."""

from __future__ import annotations

import numpy as np

from abd import rotations
from abd.scene.geometry.frames import frame_pose, triad
from abd.scene.schema.fields import Vector, given
from abd.scene.schema.joint_schema import JointSpec


def world_frames(spec: JointSpec, meshes: list[np.ndarray], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return frames D of the parent and C of the child (4, 4) in the world at t = 0.

    C is ``D T_CD`` at the initial values of the coordinates, unless the point, the axis or the frame of the child is given.
    With a given axis, the remaining rotation is the nearest to ``D T_CD``.

    Args:
        spec: a joint that has passed `abd.scene.checks.joint_checks`.
        meshes: (4, 4) poses of the mesh frames of parent and child; the identity for the world.
        start: (4, 4) T_CD at the initial values.
    """
    D = _parent_frame(spec, meshes[0])
    ideal = D @ start
    if spec.child_frame is not None:
        return D, meshes[1] @ frame_pose(spec.child_frame)
    if spec.child_world_frame is not None:
        return D, frame_pose(spec.child_world_frame)
    point, rotation = ideal[:3, 3], ideal[:3, :3]
    if spec.child_anchor is not None:
        point = _point(meshes[1], spec.child_anchor)
    if spec.child_axis is not None:
        axis = unit(meshes[1][:3, :3] @ spec.child_axis)
        rotation = rotations.least_turn(rotation[:, 2], axis) @ rotation
    if spec.child_x_axis is not None:
        rotation = _rotation(rotation[:, 2], meshes[1][:3, :3] @ spec.child_x_axis)
    return D, rotations.pose(rotation, point)


def start_is_measured(spec: JointSpec) -> bool:
    """Return whether the frame of the child is given, so that the initial coordinates are measured."""
    return bool(given(spec, ("child_frame", "child_world_frame", "child_anchor", "child_axis", "child_x_axis")))


def unit(vector: np.ndarray) -> np.ndarray:
    """Return the unit vector."""
    return vector / np.linalg.norm(vector)


def _parent_frame(spec: JointSpec, mesh: np.ndarray) -> np.ndarray:
    if spec.parent_frame is not None:
        return mesh @ frame_pose(spec.parent_frame)
    if spec.world_frame is not None:
        return frame_pose(spec.world_frame)
    point = np.array(spec.anchor) if spec.anchor is not None else _point(mesh, spec.parent_anchor)
    axis = np.array(spec.axis or (0.0, 0.0, 1.0))
    if spec.parent_axis is not None:
        axis = mesh[:3, :3] @ spec.parent_axis
    axis = unit(axis)
    if spec.parent_x_axis is not None:
        return rotations.pose(_rotation(axis, mesh[:3, :3] @ spec.parent_x_axis), point)
    if spec.x_axis is not None:
        return rotations.pose(_rotation(axis, np.array(spec.x_axis)), point)
    return rotations.pose(triad(axis), point)


def _point(mesh: np.ndarray, point: Vector) -> np.ndarray:
    return mesh[:3, :3] @ point + mesh[:3, 3]


def _rotation(z: np.ndarray, near_x: np.ndarray) -> np.ndarray:
    """Return the triad (3, 3) with the unit vector z and x nearest to a direction."""
    x = unit(near_x - (near_x @ z) * z)
    return np.stack([x, np.cross(z, x), z], axis=1)
