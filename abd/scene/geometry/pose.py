"""Rotations and poses from the notations of a scene file.

A pose is a (4, 4) rigid matrix that maps a body's mesh frame to the world [m].
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from abd import rotations
from abd.scene.schema.fields import Orientation
from abd.scene.schema.schema import BodySpec


def rotation_matrix(orientation: Orientation) -> np.ndarray:
    """(3, 3) rotation of a quaternion, matrix, axis and angle, or Euler angles; the identity where none is given.

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


def body_pose(body: BodySpec) -> np.ndarray:
    """(4, 4) initial pose of a body's mesh frame, as its position and orientation say (its motion aside)."""
    return rotations.pose(rotation_matrix(body), np.array(body.position))
