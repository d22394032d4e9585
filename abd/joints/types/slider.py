"""Slider: C moves along z of D and does not turn.

    rows         x, y measured [m]; n, b, t as linear direction rows
    constraints  x y rx ry rz
    coordinates  z                                                                       T_CD = translation (0, 0, z)

The published prismatic joint, uid 20, is the type `prismatic`.
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, small_rotation
from abd.joints.pieces.blocks import directions
from abd.joints.pieces.motions import Motion, Z, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """The three direction rows [-]."""
    return directions(joint, "xyz")


def measured(joint: Joint) -> list[Measure]:
    """x, y [m] in D."""
    return [displacement("x"), displacement("y")]


def constraints(joint: Joint) -> list[Measure]:
    """x, y [m], rx, ry, rz [rad] in the axes of D."""
    return [displacement("x"), displacement("y"), small_rotation("rx"), small_rotation("ry"), small_rotation("rz")]


def coordinates(joint: Joint) -> list[Measure]:
    """z [m]."""
    return [displacement("z")]


def motions(joint: Joint) -> list[Motion]:
    """Translation."""
    return [translation("z", Z)]
