"""Planar connector: the origin of C stays in the x-y plane of D, or, with parameter ``unilateral``, on or above it.

rows         z measured [m]; unilateral: the gap z >= 0
constraints  z, or none
coordinates  none
"""

from __future__ import annotations

from dataclasses import replace

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement
from abd.joints.pieces.motions import Motion
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """z [m], a residual or a gap."""
    return [replace(displacement("z"), unilateral=_is_unilateral(joint))]


def constraints(joint: Joint) -> list[Measure]:
    """z [m], if it is no gap."""
    return [] if _is_unilateral(joint) else [displacement("z")]


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None


def _is_unilateral(joint: Joint) -> bool:
    return bool(joint.parameters.get("unilateral", False))
