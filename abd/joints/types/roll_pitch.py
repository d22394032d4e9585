"""Universal joint whose angles are those of D in C: ArtiSynth's former RollPitchJoint.

rows         one point row; ``y_D . z_C`` measured
constraints  x y z rx
coordinates  roll, pitch                                              R_DC = R_CD^T = Rz(roll) Ry(pitch)
"""

from __future__ import annotations

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, entry
from abd.joints.pieces.axes import angle, displacement, dot
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion, Y, Z, product, rotation
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """One point row [m]."""
    return [point(joint)]


def measured(joint: Joint) -> list[Measure]:
    """rx [rad]."""
    return [dot("rx", 1, 2, -1.0)]


def constraints(joint: Joint) -> list[Measure]:
    """x, y, z [m] in D, rx [rad]."""
    return [*(displacement(name) for name in "xyz"), *measured(joint)]


def coordinates(joint: Joint) -> list[Measure]:
    """roll, pitch [rad]."""
    return [angle("roll", entry(1, 0, -1.0), entry(1, 1)), angle("pitch", entry(0, 2, -1.0), entry(2, 2))]


def motions(joint: Joint) -> list[Motion] | None:
    """None: the product is in the order opposite to that of the coordinates."""
    return None


def transform(joint: Joint, values: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) at (roll, pitch)."""
    return product([rotation("roll", Z), rotation("pitch", Y)], values).T
