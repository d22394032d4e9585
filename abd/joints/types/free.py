"""Free joint: no constraint; six coordinates that tell where C is in D, for limits, springs and drives.

coordinates  x, y, z, roll, pitch, yaw                   T_CD = (Rz(roll) Ry(pitch) Rx(yaw); x, y, z)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, zyx_angles
from abd.joints.pieces.motions import Motion, X, Y, Z, rotation, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """None."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """None."""
    return []


def coordinates(joint: Joint) -> list[Measure]:
    """x, y, z [m], roll, pitch, yaw [rad]."""
    return [*(displacement(name) for name in "xyz"), *zyx_angles()]


def motions(joint: Joint) -> list[Motion]:
    """Translation, then roll, pitch and yaw."""
    return [
        *(translation(name, axis) for name, axis in zip("xyz", (X, Y, Z))),
        *(rotation(name, axis) for name, axis in (("roll", Z), ("pitch", Y), ("yaw", X))),
    ]
