"""Universal joints, and a universal joint without its point constraint."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import parameter_error
from abd.joints.measures.axes import angle, displacement, dot
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure
from abd.joints.measures.motions import X, Y, Z, rotation, translation
from abd.joints.types.axis_types import AXES, AnglesOfParent, AxisType
from abd.rotations import least_turn

SMALLEST_COSINE = 1e-6
"""Smallest cosine of the skew; at zero both axes coincide."""


class Universal(AxisType):
    """Universal joint, also skewed: C rotates about an axis of D (roll) and about one of its own axes (pitch).

    Parameters:

        axes  "zy" (default): roll about z, pitch about y'; "xy": roll about x, pitch about y'
        skew  rotation [rad] of the pitch axis towards the roll axis (ArtiSynth's SkewedUniversalJoint)

    The axes enclose ``pi/2 - skew``. The pitch axis is ``a = (0, cos, sin)`` for "zy" and ``(sin, cos, 0)`` for "xy",
    in C and in the frame after the roll.

        rows         one point row; ``(a_C . e_D - sin skew) / cos skew``, e the roll axis
        constraints  x y z and rx ("zy") or rz ("xy")
        coordinates  roll, pitch                                                             T_CD = R(e, roll) R(a, pitch)

    Both angles are computed from the images of a and e, so that there is no gimbal lock.
    """

    SYMBOL = "ball"
    OPTIONAL = ("axes", "skew")
    held, directions = "xyz", ""

    def rotation_rows(self, joint: Joint) -> list[Measure]:
        """Angle [rad] between the axes in excess of ``pi/2 - skew``."""
        roll, pitch, skew = _axes(joint)
        c, s = np.cos(skew), np.sin(skew)
        # The signs give a small rotation of C about x ("zy") or z ("xy") the sign that it has in other types.
        name, sign = ("rx", 1.0) if roll[2] else ("rz", -1.0)
        return [measure(name, True, MeasureKind.AFFINE, functional(M=sign / c * np.outer(roll, pitch), constant=-sign * s / c))]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """Roll axis and pitch axis."""
        return np.array(_axes(joint)[:2])

    def coordinates(self, joint: Joint) -> list[Measure]:
        """Displacements of `FixedAxis` [m], then roll and pitch [rad]."""
        roll, pitch, skew = _axes(joint)
        across, c = np.cross(roll, Y), np.cos(skew)
        # The cosine of the pitch is (M_kk - sin^2) / cos^2, k the roll axis; sine and cosine are multiplied by cos.
        cosine = functional(M=1.0 / c * np.outer(roll, roll), constant=-(np.sin(skew) ** 2) / c)
        return [
            *map(displacement, self.free),
            angle("roll", functional(M=np.outer(across, pitch)), functional(M=np.outer(Y, pitch))),
            angle("pitch", functional(M=np.outer(roll, across)), cosine),
        ]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Translations of `FixedAxis`, roll, then pitch."""
        return [*(translation(AXES[axis]) for axis in self.free), *map(rotation, _axes(joint)[:2])]

    def project(self, joint: Joint, T: np.ndarray) -> np.ndarray | None:
        """T_GD (4, 4): the anchors coincide; the smallest rotation restores the angle between both axes."""
        roll, axis, skew = _axes(joint)
        pitch = T[:3, :3] @ axis
        across = pitch - (pitch @ roll) * roll
        G = np.eye(4)
        G[:3, :3] = least_turn(pitch, np.sin(skew) * roll + np.cos(skew) * across / np.linalg.norm(across)) @ T[:3, :3]
        return G


class SkewedUniversal(Universal):
    """Universal joint with a required ``skew``."""

    NEEDED: ClassVar = {"skew": 0.3}
    OPTIONAL = ("axes",)


class RollPitch(AnglesOfParent, Universal):
    """Universal joint with the angles of D in C: ArtiSynth's former RollPitchJoint.

    rows         one point row; ``y_D . z_C`` measured
    constraints  x y z rx
    coordinates  roll, pitch                                              R_DC = R_CD^T = Rz(roll) Ry(pitch)
    """

    OPTIONAL = ()

    def rotation_rows(self, joint: Joint) -> list[Measure]:
        """rx [rad]."""
        return [dot("rx", 1, 2, -1.0)]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """y and z."""
        return np.array((Y, Z))


class FixedAxis(Universal):
    """Fixed axis: the y axis of C stays perpendicular to z of D; a universal joint without its point constraint.

    rows         ``z_D . y_C`` measured
    constraints  rx
    coordinates  x, y, z, roll, pitch                                  T_CD = (Rz(roll) Ry(pitch); x, y, z)
    """

    SYMBOL, MARKER, OPTIONAL = "", "ball", ()
    held = ""

    def project(self, joint: Joint, T: np.ndarray) -> None:
        """None: the coordinates of T determine the pose."""


def _axes(joint: Joint) -> tuple[np.ndarray, np.ndarray, float]:
    """Roll axis (3,) in D, pitch axis (3,) in C, skew [rad]."""
    order, skew = str(joint.parameters.get("axes", "zy")), float(joint.parameters.get("skew", 0.0))
    if order not in ("zy", "xy"):
        raise parameter_error(joint, "axes", "must be 'zy' or 'xy'")
    if abs(np.cos(skew)) < SMALLEST_COSINE:
        raise parameter_error(joint, "skew", "makes the two axes one", "keep it below a right angle")
    roll = Z if order == "zy" else X
    return roll, np.cos(skew) * Y + np.sin(skew) * roll, skew
