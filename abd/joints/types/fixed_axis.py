"""Fixed axis: C moves freely, but its y stays at a right angle to z of D, as in a universal joint without its point.

rows         ``z_D . y_C`` measured
constraints  rx
coordinates  x, y, z, roll, pitch                                  T_CD = (Rz(roll) Ry(pitch); x, y, z)
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, entry
from abd.joints.pieces.axes import angle, displacement, dot
from abd.joints.pieces.motions import Motion, X, Y, Z, rotation, translation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """rx [rad]."""
    return [dot("rx", 2, 1)]


def constraints(joint: Joint) -> list[Measure]:
    """rx [rad]."""
    return [dot("rx", 2, 1)]


def coordinates(joint: Joint) -> list[Measure]:
    """x, y, z [m], roll, pitch [rad]; no pitch locks them."""
    roll = angle("roll", entry(0, 1, -1.0), entry(1, 1))
    pitch = angle("pitch", entry(2, 0, -1.0), entry(2, 2))
    return [*(displacement(name) for name in "xyz"), roll, pitch]


def motions(joint: Joint) -> list[Motion]:
    """Translation, then roll and pitch."""
    return [
        *(translation(name, axis) for name, axis in zip("xyz", (X, Y, Z))),
        rotation("roll", Z),
        rotation("pitch", Y),
    ]
