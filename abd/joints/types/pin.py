"""Pin of imported scenes: a point of a body stays where it is, or coincides with a point of another body.

The rows of a spherical joint, without its parameters and its uid.
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """One point row [m], as in a spherical joint."""
    return [point(joint)]


def measured(joint: Joint) -> list[Measure]:
    """No row beside the linear one."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """x, y, z [m] in the axes of D."""
    return [displacement(name) for name in "xyz"]


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the rotation."""
    return None
