"""Planar translation: C moves in the x-y plane of D and does not turn.

rows         z measured [m]; n, b, t as linear direction rows
constraints  z rx ry rz
coordinates  x, y                                                                    T_CD = translation (x, y, 0)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, small_rotation
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.motions import Motion, X, Y, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The three direction rows [-]."""
    return directions(joint, "xyz")


def measured(joint: Joint) -> list[Measure]:
    """z [m] in D."""
    return [displacement("z")]


def constraints(joint: Joint) -> list[Measure]:
    """z [m], rx, ry, rz [rad] in the axes of D."""
    return [displacement("z"), small_rotation("rx"), small_rotation("ry"), small_rotation("rz")]


def coordinates(joint: Joint) -> list[Measure]:
    """x [m], y [m]."""
    return [displacement("x"), displacement("y")]


def motions(joint: Joint) -> list[Motion]:
    """Translation."""
    return [translation("x", X), translation("y", Y)]
