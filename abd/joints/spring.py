"""Spring and damper between the origins of the two frames, along the line through them.

Parameters: ``stiffness`` [N/m], ``damping`` [N s/m], ``rest_length`` [m]; 0 where not given.

    combined     one spring on ``|d| - rest_length``
    coordinates  none

A spring along or about a coordinate of another joint is a setting of that coordinate.
"""

from __future__ import annotations

from abd.joints.combined import Combined
from abd.joints.measures import Measure, MeasureKind, measure
from abd.joints.motions import Motion
from abd.joints.rows import Row
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """None."""
    return []


def combined(joint: Joint) -> list[Combined]:
    """The spring."""
    stiffness, damping, rest = (
        float(joint.parameters.get(key, 0.0)) for key in ("stiffness", "damping", "rest_length")
    )
    length = measure("length", False, MeasureKind.LENGTH)
    return [Combined("length", False, (length,), (1.0,), stiffness, damping, rest)]


def constraints(joint: Joint) -> list[Measure]:
    """None."""
    return []


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None
