"""Screw: C advances along z of D by ``lead`` [m/rad] for each radian that it turns; negative: left-handed.

rows         x, y and ``z - lead theta`` measured [m]; t as a linear direction row
constraints  x y rx ry, and the row ``z - lead theta``, always in addition
coordinates  theta                                              T_CD = (Rz(theta); 0, 0, lead theta)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, tilt, turn
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.combined import Combined
from abd.joints.pieces.motions import Motion, Z, screw
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The direction row of t [-]."""
    return directions(joint, "z")


def measured(joint: Joint) -> list[Measure]:
    """x, y [m] in D."""
    return [displacement("x"), displacement("y")]


def combined(joint: Joint) -> list[Combined]:
    """``z - lead theta`` [m], theta over any number of turns."""
    return [Combined("z", False, (displacement("z"), turn("theta")), (1.0, -_lead(joint)))]


def constraints(joint: Joint) -> list[Measure]:
    """x, y [m], rx, ry [rad] in the axes of D; `combined` has the fifth row."""
    return [displacement("x"), displacement("y"), tilt("rx"), tilt("ry")]


def coordinates(joint: Joint) -> list[Measure]:
    """theta [rad]."""
    return [turn("theta")]


def motions(joint: Joint) -> list[Motion]:
    """The screw about z."""
    return [screw("theta", Z, _lead(joint))]


def _lead(joint: Joint) -> float:
    return float(joint.parameters["lead"])
