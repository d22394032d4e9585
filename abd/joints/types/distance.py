"""Rods and ropes: the distance of two points is given, or limited."""

from __future__ import annotations

from abd.joints.joint_type import JointType, wrong
from abd.joints.measures.measures import Measure, MeasureKind, measure
from abd.model import Joint


class Distance(JointType):
    """Distance, rod: the origins of the two frames stay ``distance`` [m] apart; a massless rod with a ball at each end.

    rows         ``|d| - distance`` measured [m]
    constraints  distance
    coordinates  none
    """

    def measured(self, joint: Joint) -> list[Measure]:
        """distance [m]: how much longer than the rod."""
        return [measure("distance", False, MeasureKind.LENGTH, offset=-_distance(joint))]


class Rope(JointType):
    """Rope: the origins of the two frames are at most ``distance`` [m] apart; it weighs nothing and does not stretch.

    rows         the gap ``distance - |d| >= 0`` [m]
    constraints  none
    coordinates  none
    """

    def measured(self, joint: Joint) -> list[Measure]:
        """The slack [m], a gap."""
        return [measure("slack", False, MeasureKind.LENGTH, scale=-1.0, offset=_distance(joint), unilateral=True)]


def _distance(joint: Joint) -> float:
    """Parameter ``distance`` [m]; `SceneError` where it is not above zero."""
    value = float(joint.parameters.get("distance", 0.0))
    if not value > 0.0:
        raise wrong(joint, "distance", "must be above 0", "two points that coincide are a spherical joint")
    return value
