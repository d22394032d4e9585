"""Gimbals: the anchors coincide, and three angles describe the rotation."""

from __future__ import annotations

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import parameter_error
from abd.joints.measures.axes import xyz_angles, zyx_angles
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import X, Y, Z, rotation
from abd.joints.types.axis_types import AnglesOfParent, AxisType


class Gimbal(AxisType):
    """Gimbal: the anchors coincide; three angles describe the rotation.

    Parameter ``axes``: axes of roll, pitch and yaw, "zyx" (default) or "xyz", each in the frame after the rotation
    before.

        rows         one point row
        constraints  x y z
        coordinates  roll, pitch, yaw              T_CD = Rz(roll) Ry(pitch) Rx(yaw), or Rx(roll) Ry(pitch) Rz(yaw)

    The pitch is within a quarter turn; at its ends roll and yaw are not unique (gimbal lock).
    """

    SYMBOL = MARKER = "ball"
    OPTIONAL = ("axes",)
    held, directions = "xyz", ""

    def coordinates(self, joint: Joint) -> list[Measure]:
        """roll, pitch, yaw [rad]."""
        return zyx_angles() if _order(joint) == "zyx" else xyz_angles(("roll", "pitch", "yaw"))

    def motions(self, joint: Joint) -> list[np.ndarray] | None:
        """Three rotations."""
        first, last = (Z, X) if _order(joint) == "zyx" else (X, Z)
        return [rotation(first), rotation(Y), rotation(last)]


class SphericalRpy(AnglesOfParent, Gimbal):
    """Gimbal with the angles of D in C: ArtiSynth's former SphericalRpyJoint.

    rows         one point row
    constraints  x y z
    coordinates  roll, pitch, yaw                             R_DC = R_CD^T = Rz(roll) Ry(pitch) Rx(yaw)
    """

    OPTIONAL = ()


def _order(joint: Joint) -> str:
    order = str(joint.parameters.get("axes", "zyx"))
    if order not in ("zyx", "xyz"):
        raise parameter_error(joint, "axes", "must be 'zyx' or 'xyz'")
    return order
