"""Gimbal whose angles are those of D in C: ArtiSynth's former SphericalRpyJoint.

rows         one point row
constraints  x y z
coordinates  roll, pitch, yaw                             R_DC = R_CD^T = Rz(roll) Ry(pitch) Rx(yaw)
"""

from __future__ import annotations

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, entry, measure
from abd.joints.pieces.axes import angle, displacement
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion, X, Y, Z, product, rotation
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
    """roll, pitch, yaw [rad]; pitch within a quarter turn."""
    return [
        angle("roll", entry(0, 1), entry(0, 0)),
        measure("pitch", True, MeasureKind.ELEVATION, entry(0, 2, -1.0), entry(0, 0), entry(0, 1)),
        angle("yaw", entry(1, 2), entry(2, 2)),
    ]


def motions(joint: Joint) -> list[Motion] | None:
    """None: the product is in the order opposite to that of the coordinates."""
    return None


def transform(joint: Joint, values: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) at (roll, pitch, yaw)."""
    return product([rotation("roll", Z), rotation("pitch", Y), rotation("yaw", X)], values).T
