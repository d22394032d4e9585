"""Rope: the origins of the two frames are at most ``distance`` [m] apart; it weighs nothing and does not stretch.

rows         the gap ``distance - |d| >= 0`` [m]
constraints  none
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
    """The slack [m], a gap."""
    length = length_of(joint, "distance")
    return [measure("slack", False, MeasureKind.LENGTH, scale=-1.0, offset=length, unilateral=True)]


def constraints(joint: Joint) -> list[Measure]:
    """None."""
    return []


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None
