"""Planar joint: C moves in the x-y plane of D and turns about its normal z.

rows         z measured [m]; t as a linear direction row
constraints  z rx ry
coordinates  x, y, theta                                                             T_CD = (Rz(theta); x, y, 0)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, tilt, turn
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.motions import Motion, X, Y, Z, rotation, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The direction row of t [-]."""
    return directions(joint, "z")


def measured(joint: Joint) -> list[Measure]:
    """z [m] in D."""
    return [displacement("z")]


def constraints(joint: Joint) -> list[Measure]:
    """z [m], rx, ry [rad] in the axes of D."""
    return [displacement("z"), tilt("rx"), tilt("ry")]


def coordinates(joint: Joint) -> list[Measure]:
    """x [m], y [m], theta [rad]."""
    return [displacement("x"), displacement("y"), turn("theta")]


def motions(joint: Joint) -> list[Motion]:
    """Translation, then Rz(theta)."""
    return [translation("x", X), translation("y", Y), rotation("theta", Z)]
