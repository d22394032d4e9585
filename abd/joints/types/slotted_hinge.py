"""Slotted hinge: C moves along x of D and turns about z.

rows         y, z measured [m]; t as a linear direction row
constraints  y z rx ry
coordinates  x, theta                                                                T_CD = (Rz(theta); x, 0, 0)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, tilt, turn
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.motions import Motion, X, Z, rotation, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The direction row of t [-]."""
    return directions(joint, "z")


def measured(joint: Joint) -> list[Measure]:
    """y, z [m] in D."""
    return [displacement("y"), displacement("z")]


def constraints(joint: Joint) -> list[Measure]:
    """y, z [m], rx, ry [rad] in the axes of D."""
    return [displacement("y"), displacement("z"), tilt("rx"), tilt("ry")]


def coordinates(joint: Joint) -> list[Measure]:
    """x [m], theta [rad]."""
    return [displacement("x"), turn("theta")]


def motions(joint: Joint) -> list[Motion]:
    """Translation, then Rz(theta)."""
    return [translation("x", X), rotation("theta", Z)]
