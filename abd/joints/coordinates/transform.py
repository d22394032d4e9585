"""T_CD from coordinates, and the admissible pose nearest to a pose: the frame G of a joint's drift."""

from __future__ import annotations

import numpy as np

from abd.joints.measures.motions import product, turned
from abd.joints.rows.table import twist_gradient, value_at
from abd.joints.types import TYPES
from abd.model import Joint
from abd.rotations import polar

ITERATIONS = 30
CLOSED = 1e-14
"""Step [m or rad] below which a projection has ended."""


def transform(joint: Joint, values: np.ndarray) -> np.ndarray | None:
    """T_CD (4, 4) at coordinate values (k,) [m or rad]; None for types that their coordinates do not describe."""
    module = TYPES[joint.type]
    motions = module.motions(joint)
    if motions is not None:
        return product(motions, values)
    return module.transform(joint, values) if hasattr(module, "transform") else None


def project(joint: Joint, T: np.ndarray) -> np.ndarray:
    """T_GD (4, 4): the admissible pose nearest to T_CD (4, 4), whose rotation may be strained.

    The nearest place comes first, then the least rotation. A type says so itself in its function ``project``, or has
    coordinates that are those of the nearest pose. Elsewhere it is reached by the shortest motions
    that close the linearised constraints (turning about the origin of C), so that what is free stays: a spherical joint
    keeps its rotation, a rod its direction. Gaps are not closed.
    """
    module = TYPES[joint.type]
    T = T.copy()
    T[:3, :3] = polar(T[None, :3, :3])[0]
    if hasattr(module, "project"):
        return module.project(joint, T)
    admissible = transform(joint, value_at(module.coordinates(joint), T))
    if admissible is not None:
        return admissible
    for _ in range(ITERATIONS):
        if module.FOLLOWS_POSE:
            measures = [one for one in module.at_pose(joint, T) if not one.unilateral]
        else:
            measures = module.constraints(joint)
        if not measures:
            break
        step = -np.linalg.pinv(twist_gradient(measures, T)) @ value_at(measures, T)
        T[:3, 3] += step[:3]
        T[:3, :3] = turned(step[3:]) @ T[:3, :3]
        if np.abs(step).max() < CLOSED:
            break
    return T
