"""Distance, rod: the origins of the two frames stay ``distance`` [m] apart; a massless rod with a ball at each end.

rows         ``|d| - distance`` measured [m]
constraints  distance
coordinates  none
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, measure
from abd.joints.measures.parameters import length_of
from abd.joints.pieces.motions import Motion
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """distance [m]."""
    return constraints(joint)


def constraints(joint: Joint) -> list[Measure]:
    """distance [m]: how much longer than the rod."""
    return [measure("distance", False, MeasureKind.LENGTH, offset=-length_of(joint, "distance"))]


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None
