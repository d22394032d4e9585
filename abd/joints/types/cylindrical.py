"""Cylindrical joint: C moves along z of D and turns about it.

rows         x, y measured [m]; t as a linear direction row
constraints  x y rx ry
coordinates  z, theta                                                                T_CD = (Rz(theta); 0, 0, z)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, tilt, turn
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.motions import Motion, Z, rotation, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The direction row of t [-]."""
    return directions(joint, "z")


def measured(joint: Joint) -> list[Measure]:
    """x, y [m] in D."""
    return [displacement("x"), displacement("y")]


def constraints(joint: Joint) -> list[Measure]:
    """x, y [m], rx, ry [rad] in the axes of D."""
    return [displacement("x"), displacement("y"), tilt("rx"), tilt("ry")]


def coordinates(joint: Joint) -> list[Measure]:
    """z [m], theta [rad]."""
    return [displacement("z"), turn("theta")]


def motions(joint: Joint) -> list[Motion]:
    """Translation, then Rz(theta)."""
    return [translation("z", Z), rotation("theta", Z)]
