"""Universal joints, and a universal joint without its point constraint."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.axes import angle, displacement, dot
from abd.joints.measures.measures import Measure, MeasureKind, entry, functional, measure
from abd.joints.measures.motions import X, Y, Z, product, rotation, translation
from abd.joints.types.axis_types import AxisType
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

    def measured(self, joint: Joint) -> list[Measure]:
        """Angle [rad] between the axes in excess of ``pi/2 - skew``."""
        axis, skew, order = _pitch_axis(joint)
        c, s = np.cos(skew), np.sin(skew)
        # The signs give a small rotation of C about x ("zy") or z ("xy") the sign that it has in other types.
        name, weight, roll_axis = ("rx", 1.0, Z) if order == "zy" else ("rz", -1.0, X)
        value = functional(M=weight / c * np.outer(roll_axis, axis), constant=-weight * s / c)
        return [measure(name, True, MeasureKind.AFFINE, value)]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """Roll axis and pitch axis."""
        axis, _, order = _pitch_axis(joint)
        return np.array((Z if order == "zy" else X, axis))

    def coordinates(self, joint: Joint) -> list[Measure]:
        """roll, pitch [rad]."""
        axis, skew, order = _pitch_axis(joint)
        # The cosine of the pitch is (M_kk - sin^2) / cos^2; sine and cosine are multiplied by cos.
        scaled = {"weight": 1.0 / np.cos(skew), "constant": -(np.sin(skew) ** 2) / np.cos(skew)}
        if order == "zy":
            roll = functional(M=np.outer((-1.0, 0.0, 0.0), axis)), functional(M=np.outer((0.0, 1.0, 0.0), axis))
            sine, cosine = entry(2, 0, -1.0), entry(2, 2, **scaled)
        else:
            roll = functional(M=np.outer((0.0, 0.0, 1.0), axis)), functional(M=np.outer((0.0, 1.0, 0.0), axis))
            sine, cosine = entry(0, 2), entry(0, 0, **scaled)
        return [angle("roll", *roll), angle("pitch", sine, cosine)]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Roll about z or x, then pitch."""
        axis, _, order = _pitch_axis(joint)
        return [rotation(Z if order == "zy" else X), rotation(axis)]

    def project(self, joint: Joint, T: np.ndarray) -> np.ndarray:
        """T_GD (4, 4): the anchors coincide; the smallest rotation restores the angle between both axes."""
        axis, skew, order = _pitch_axis(joint)
        roll, pitch = Z if order == "zy" else X, T[:3, :3] @ axis
        across = pitch - (pitch @ roll) * roll
        G = np.eye(4)
        G[:3, :3] = least_turn(pitch, np.sin(skew) * roll + np.cos(skew) * across / np.linalg.norm(across)) @ T[:3, :3]
        return G


class SkewedUniversal(Universal):
    """Universal joint with a required ``skew``."""

    NEEDED: ClassVar = {"skew": 0.3}
    OPTIONAL = ("axes",)


class RollPitch(AxisType):
    """Universal joint with the angles of D in C: ArtiSynth's former RollPitchJoint.

    rows         one point row; ``y_D . z_C`` measured
    constraints  x y z rx
    coordinates  roll, pitch                                              R_DC = R_CD^T = Rz(roll) Ry(pitch)
    """

    SYMBOL = "ball"
    held, directions = "xyz", ""

    def measured(self, joint: Joint) -> list[Measure]:
        """rx [rad]."""
        return [dot("rx", 1, 2, -1.0)]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """y and z."""
        return np.array((Y, Z))

    def coordinates(self, joint: Joint) -> list[Measure]:
        """roll, pitch [rad]."""
        return [angle("roll", entry(1, 0, -1.0), entry(1, 1)), angle("pitch", entry(0, 2, -1.0), entry(2, 2))]

    def motions(self, joint: Joint) -> None:
        """None: the product has the reverse order of the coordinates."""

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray:
        """T_CD (4, 4) at (roll, pitch)."""
        return product([rotation(Z), rotation(Y)], values).T


class FixedAxis(JointType):
    """Fixed axis: the y axis of C stays perpendicular to z of D; a universal joint without its point constraint.

    rows         ``z_D . y_C`` measured
    constraints  rx
    coordinates  x, y, z, roll, pitch                                  T_CD = (Rz(roll) Ry(pitch); x, y, z)
    """

    MARKER = "ball"

    def measured(self, joint: Joint) -> list[Measure]:
        """rx [rad]."""
        return [dot("rx", 2, 1)]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """z and y."""
        return np.array((Z, Y))

    def coordinates(self, joint: Joint) -> list[Measure]:
        """x, y, z [m], roll, pitch [rad]; there is no gimbal lock."""
        roll = angle("roll", entry(0, 1, -1.0), entry(1, 1))
        pitch = angle("pitch", entry(2, 0, -1.0), entry(2, 2))
        return [*(displacement(name) for name in "xyz"), roll, pitch]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Translations, then roll and pitch."""
        return [*map(translation, (X, Y, Z)), rotation(Z), rotation(Y)]


def _pitch_axis(joint: Joint) -> tuple[np.ndarray, float, str]:
    """Pitch axis (3,) in C, skew [rad], order of the axes."""
    order, skew = str(joint.parameters.get("axes", "zy")), float(joint.parameters.get("skew", 0.0))
    if order not in ("zy", "xy"):
        raise parameter_error(joint, "axes", "must be 'zy' or 'xy'")
    c, s = np.cos(skew), np.sin(skew)
    if abs(c) < SMALLEST_COSINE:
        raise parameter_error(joint, "skew", "makes the two axes one", "keep it below a right angle")
    return np.array((0.0, c, s) if order == "zy" else (s, c, 0.0)), skew, order
