"""Rods and ropes: the distance between two points is prescribed or limited."""

from __future__ import annotations

from typing import ClassVar

from abd.joint_model import Joint
from abd.joints.joint_type import JointType
from abd.joints.measures.measures import Measure, MeasureKind, measure


class Distance(JointType):
    """Distance, rod: the origins of both frames stay ``distance`` [m] apart; a massless rod with a ball at each end.

    rows         ``|d| - distance`` measured [m]
    constraints  distance
    coordinates  none
    """

    SYMBOL, AXIS, POINTS = "rod", "none", "apart"
    NEEDED: ClassVar = {"distance": 2.5}

    def measured(self, joint: Joint) -> list[Measure]:
        """Elongation [m] of the rod."""
        return [measure("distance", False, MeasureKind.LENGTH, offset=-joint.parameters["distance"])]


class Rope(JointType):
    """Rope: the origins of both frames are at most ``distance`` [m] apart; massless and inextensible.

    rows         the gap ``distance - |d| >= 0`` [m]
    constraints  none
    coordinates  none
    """

    SYMBOL, AXIS, POINTS = "rope", "none", "apart"
    NEEDED: ClassVar = {"distance": 2.5}

    def measured(self, joint: Joint) -> list[Measure]:
        """Slack [m], a gap."""
        return [measure("slack", False, MeasureKind.LENGTH, scale=-1.0, offset=joint.parameters["distance"], unilateral=True)]
