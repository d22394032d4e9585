"""Rotations, poses (4, 4) of mesh frames and frames of joints in the world [m], and unique principal axes."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
from scipy.spatial.transform import Rotation

from abd import rotations
from abd.rotations import least_turn
from abd.scene.schema.fields import Orientation, Vector, given
from abd.scene.schema.joint_schema import FrameSpec, JointSpec
from abd.scene.schema.schema import BodySpec

_TIE = 1e-10
"""Largest relative difference of equal principal moments."""
_ROUNDING = 1e-15
"""Fraction of the trace of S below which an entry is rounding."""


def principal_frame(second_moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unique right-handed principal axes of S.

    The frame of principal axes is the one nearest to the mesh axes (largest trace; the first in a fixed order of several). Equal
    moments therefore keep the mesh axes: for an isotropic or diagonal S, the result is exactly the identity.

    Returns:
        axes (3, 3), whose columns are the principal axes in mesh coordinates, and moments (3,) >= 0 [kg m^2] with
        ``axes^T S axes = diag(moments)``.
    """
    diagonal = np.maximum(np.diag(second_moment), 0.0)
    rounding = _ROUNDING * diagonal.sum()
    coupling = np.abs(second_moment - np.diag(np.diag(second_moment)))
    if (coupling <= _TIE * np.sqrt(np.outer(diagonal, diagonal)) + rounding).all():
        return np.eye(3), diagonal

    values, vectors = np.linalg.eigh(second_moment)
    tie = np.diff(values) <= _TIE * np.abs(values[1:]) + rounding
    if tie.any():
        axis = vectors[:, 2] if tie[0] else vectors[:, 0]
        nearest = int(np.argmax(np.round(np.abs(axis), 9)))
        axes = least_turn(np.eye(3)[nearest], axis if axis[nearest] > 0.0 else -axis)
    else:
        axes = max(_right_handed_orders(vectors), key=lambda frame: round(np.trace(frame), 9))
    return axes, np.maximum(np.einsum("ik,ij,jk->k", axes, second_moment, axes), 0.0)


def _right_handed_orders(vectors: np.ndarray) -> list[np.ndarray]:
    """Return the 24 right-handed frames of three orthonormal columns, in a fixed order."""
    frames = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            frame = vectors[:, order] * np.array(signs)
            if np.linalg.det(frame) > 0.0:
                frames.append(frame)
    return frames


def triad(axis: np.ndarray) -> np.ndarray:
    """Return frames (..., 3, 3) with columns (n, b, t), t the unit vector `axis` (..., 3): the least rotation of z onto it."""
    return least_turn(np.array([0.0, 0.0, 1.0]), axis)


def rotation_matrix(orientation: Orientation) -> np.ndarray:
    """Return the rotation (3, 3) of a quaternion, matrix, axis and angle, or Euler angles; the identity without any.

    A matrix is replaced by its nearest rotation, so that the digits of a text file do not become strain.
    """
    if orientation.quaternion is not None:
        w, x, y, z = orientation.quaternion
        return Rotation.from_quat([x, y, z, w]).as_matrix()
    if orientation.matrix is not None:
        u, _, vt = np.linalg.svd(np.array(orientation.matrix))
        return u @ vt
    if orientation.axis_angle is not None:
        axis = np.array(orientation.axis_angle.axis)
        angle = math.radians(orientation.axis_angle.degrees)
        return Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    if orientation.euler is not None:
        return Rotation.from_euler(orientation.euler.order, list(orientation.euler.degrees), degrees=True).as_matrix()
    return np.eye(3)


def frame_pose(frame: BodySpec | FrameSpec) -> np.ndarray:
    """Return the pose (4, 4) of a frame, or of a body's mesh frame without its motion, from position and orientation."""
    return rotations.pose(rotation_matrix(frame), np.array(frame.position))


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
