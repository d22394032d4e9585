"""Gimbal: the anchors coincide; the rotation is read as three angles.

Parameter ``axes``: "zyx" (default) or "xyz", axes of roll, pitch and yaw, each in the frame that the one before reached.

    rows         one point row
    constraints  x y z
    coordinates  roll, pitch, yaw              T_CD = Rz(roll) Ry(pitch) Rx(yaw), or Rx(roll) Ry(pitch) Rz(yaw)

The pitch stays within a quarter turn; at its ends roll and yaw are not defined one by one.
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.measures.parameters import wrong
from abd.joints.pieces.axes import displacement, xyz_angles, zyx_angles
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion, X, Y, Z, rotation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """One point row [m]."""
    return [point(joint)]


def measured(joint: Joint) -> list[Measure]:
    """No row in addition to the linear one."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """x, y, z [m] in D."""
    return [displacement(name) for name in "xyz"]


def coordinates(joint: Joint) -> list[Measure]:
    """roll, pitch, yaw [rad]."""
    return zyx_angles() if _order(joint) == "zyx" else xyz_angles(("roll", "pitch", "yaw"))


def motions(joint: Joint) -> list[Motion]:
    """Three rotations."""
    first, last = (Z, X) if _order(joint) == "zyx" else (X, Z)
    return [rotation("roll", first), rotation("pitch", Y), rotation("yaw", last)]


def _order(joint: Joint) -> str:
    order = str(joint.parameters.get("axes", "zyx"))
    if order not in ("zyx", "xyz"):
        raise wrong(joint, "axes", "must be 'zyx' or 'xyz'")
    return order
