"""T_CD from coordinates, and the nearest admissible pose: the frame G that defines a joint's drift."""

from __future__ import annotations

import numpy as np

from abd.joint_model import Joint
from abd.joints.measures.motions import turned
from abd.joints.rows.table import twist_gradient, value_at
from abd.joints.types import TYPES
from abd.rotations import polar

ITERATIONS = 30
CONVERGED = 1e-14
"""Step [m or rad] below which a projection has converged."""


def transform(joint: Joint, values: np.ndarray) -> np.ndarray | None:
    """T_CD (4, 4) at coordinate values (k,) [m or rad]; None for types whose coordinates do not determine the pose."""
    return TYPES[joint.type].transform(joint, values)


def project(joint: Joint, T: np.ndarray) -> np.ndarray:
    """T_GD (4, 4): the admissible pose nearest to T_CD (4, 4); the rotation of T_CD may be strained.

    The distance is minimised first, then the rotation. The pose comes from the type's function ``project`` or from the
    coordinates of T_CD, if these describe the pose. Otherwise iterations with the shortest motions, rotations about the
    origin of C, close the linearised constraints. Free motions are then unchanged: a spherical joint keeps its
    rotation, a rod its direction. Gaps are not closed.
    """
    kind = TYPES[joint.type]
    T = T.copy()
    T[:3, :3] = polar(T[None, :3, :3])[0]
    admissible = kind.project(joint, T)
    if admissible is None:
        admissible = transform(joint, value_at(kind.coordinates(joint), T))
    if admissible is not None:
        return admissible
    for _ in range(ITERATIONS):
        measures = kind.constraints_at(joint, T)
        if not measures:
            break
        step = -np.linalg.pinv(twist_gradient(measures, T)) @ value_at(measures, T)
        T[:3, 3] += step[:3]
        T[:3, :3] = turned(step[3:]) @ T[:3, :3]
        if np.abs(step).max() < CONVERGED:
            break
    return T
