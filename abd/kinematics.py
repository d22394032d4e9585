"""Joints as functions, without a simulation: motion and wrench subspaces, conversions, configurations, bounds, setters.

The joints are those of a compiled scene, ``scene.compile().joints``, or of a simulation, ``simulation.joints["elbow"].joint``.
"""

from __future__ import annotations

from abd.joints.closure.coordinate_setter import CoordinateSetter
from abd.joints.coordinates.configurations import configuration_space, forms, project, transform
from abd.joints.coordinates.kinematics import (
    Bounds,
    JointKinematics,
    angular_first,
    effort_bounds,
    flip_direction,
    position_bounds,
    velocity_bounds,
)
from abd.joints.coordinates.mechanism import Mechanism

__all__ = [
    "Bounds",
    "CoordinateSetter",
    "JointKinematics",
    "Mechanism",
    "angular_first",
    "configuration_space",
    "effort_bounds",
    "flip_direction",
    "forms",
    "position_bounds",
    "project",
    "transform",
    "velocity_bounds",
]
