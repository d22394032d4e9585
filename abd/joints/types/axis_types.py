"""Joint types that constrain C along some axes of D, and some axes of C to those of D; prismatic and screw joints.

    type                 held along   axes held   coordinates                    T_CD
    fixed (uid 25)       x y z        z x y       none                           1
    pin                  x y z        none        none; any rotation
    planar               z            z           x, y, theta                    (Rz(theta); x, y, 0)
    planar_translation   z            x y z       x, y                           translation (x, y, 0)
    cylindrical          x y          z           z, theta                       (Rz(theta); 0, 0, z)
    slotted_hinge        y z          z           x, theta                       (Rz(theta); x, 0, 0)
    slider               x y          x y z       z                              translation (0, 0, z)
    free                 none         none        x, y, z, roll, pitch, yaw      (Rz(roll) Ry(pitch) Rx(yaw); x, y, z)

If C is held along all axes, the anchors coincide in a linear point row [m]. Otherwise displacements are measured rows
[m]. A held axis is a linear direction row [-] with an implied length of 1 m, as uid 25 defines it:
``F = c_j - c_i ; t_j - t_i ; n_j - n_i ; b_j - b_i``, ``E = K/2 sum |F_k|^2``. `hinge`, `prismatic`, `screw` and
`gimbal` have their own rows or coordinates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import BALL, JointType
from abd.joints.measures.axes import (
    Row,
    directions,
    displacement,
    dot,
    of_inverse,
    point,
    small_rotation,
    turn,
    zyx_angles,
)
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure
from abd.joints.measures.motions import X, Y, Z, product, rotation, screw, translation

AXES = {"x": X, "y": Y, "z": Z}


class AxisType(JointType):
    """Joint type that a row of the table above defines, with `rotation_rows` if it has any.

    Attributes:
        held: axes along which C is held.
        directions: axes of C that coincide with those of D, in the order of their rows: none, "z" or all three.
    """

    held: str
    directions: str

    @classmethod
    def of(cls, description: str, held: str, directions: str, **attributes: Any) -> AxisType:
        """Return the type with a description for users, and attributes of `JointType`."""
        one = cls()
        one.__doc__, one.held, one.directions = description, held, directions
        for name, value in attributes.items():
            setattr(one, name, value)
        return one

    @property
    def free(self) -> list[str]:
        """Axes along which C translates."""
        return [axis for axis in "xyz" if axis not in self.held]

    def rows(self, joint: Joint) -> list[Row]:
        """A point row [m] if C is held along all axes, then the direction rows [-]."""
        return [point(joint)] * (not self.free) + directions(joint, self.directions)

    def rotation_rows(self, joint: Joint) -> list[Measure]:
        """Measured rows of the rotation [rad]."""
        return []

    def measured(self, joint: Joint) -> list[Measure]:
        """Displacements [m] in D if C is held along some axes only, then the rows of the rotation [rad]."""
        return [*map(displacement, self.held if self.free else ""), *self.rotation_rows(joint)]

    def constraints(self, joint: Joint) -> list[Measure]:
        """Displacements [m] and small rotations [rad] in the axes of D, then the rows of the rotation [rad]."""
        if self.directions == "z":
            turns = [dot("rx", 1, 2, -1.0), dot("ry", 0, 2)]
        else:
            turns = [small_rotation(f"r{axis}") for axis in sorted(self.directions)]
        return [*map(displacement, self.held), *turns, *self.rotation_rows(joint)]

    def held_axes(self, joint: Joint) -> np.ndarray:
        """z of both, if it is held."""
        return np.array((Z, Z)) * float(self.directions == "z")

    def coordinates(self, joint: Joint) -> list[Measure]:
        """Displacements [m], then theta, or roll, pitch and yaw [rad]."""
        turns = {"z": [turn("theta")], "": zyx_angles() if self.free else []}.get(self.directions, [])
        return [*map(displacement, self.free), *turns]

    def motions(self, joint: Joint) -> list[np.ndarray] | None:
        """Translations, then rotations; None for a pin, whose rotation has no coordinates."""
        if not self.free and not self.directions:
            return None
        turns = {"z": (Z,), "": (Z, Y, X)}.get(self.directions, ())
        return [*(translation(AXES[axis]) for axis in self.free), *map(rotation, turns)]


class AnglesOfParent:
    """Mixin for types whose coordinates are the angles of D in C, in place of those of C in D."""

    def coordinates(self, joint: Joint) -> list[Measure]:
        """The same angles [rad], of ``R_DC = R_CD^T``."""
        return of_inverse(super().coordinates(joint))

    def motions(self, joint: Joint) -> None:
        """None: the product has the reverse order of the coordinates."""

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray:
        """T_CD (4, 4) at the angles (k,) [rad]."""
        return product(super().motions(joint), values).T

    def project(self, joint: Joint, T: np.ndarray) -> None:
        """None: the coordinates of T determine the pose."""


class Prismatic(AxisType):
    """Prismatic joint (uid 20): C translates along t, the z axis of both frames, without rotation.

    ``F = (c_j - c_i) x t_i ; (c_i - c_j) x t_j ; n_i - n_j ; b_i - b_j``, ``E = K/2 sum |F_k|^2``.

    For orthonormal triads ``|d x t_i|^2 = r_x^2 + r_y^2`` and ``|d x t_j|^2 = s_x^2 + s_y^2``, with d in axes of D and
    of C. The rows use these components, which equals the published energy up to the strain of the bodies. All rows have
    the weight K; direction rows have an implied length of 1 m, as the uid defines.

        constraints  x y rx ry rz
        coordinates  z                                                                   T_CD = translation (0, 0, z)
    """

    AXIS = "needed"
    UID, held, directions = 20, "xy", "xyz"

    def rows(self, joint: Joint) -> list[Row]:
        """The direction rows n, b [-]."""
        return directions(joint, "xy")

    def measured(self, joint: Joint) -> list[Measure]:
        """x, y of the displacement in D, then in C [m]."""
        in_child = [
            measure(f"{name}_child", False, MeasureKind.AFFINE, functional(s=axis))
            for name, axis in (("x", (1.0, 0.0, 0.0)), ("y", (0.0, 1.0, 0.0)))
        ]
        return super().measured(joint) + in_child


class Screw(AxisType):
    """Screw: C translates along z of D by ``lead`` [m/rad] times its rotation; a negative lead is left-handed.

    rows         x, y and ``z - lead theta`` measured [m]; t as a linear direction row
    constraints  x y rx ry, and always the row ``z - lead theta``
    coordinates  theta                                              T_CD = (Rz(theta); 0, 0, lead theta)
    """

    SYMBOL, AXIS = "pin", "needed"
    NEEDED: ClassVar = {"lead": 0.01}
    held, directions = "xy", "z"

    def combined(self, joint: Joint) -> list[Combined]:
        """``z - lead theta`` [m]; theta counts turns."""
        return [Combined("z", False, (displacement("z"), turn("theta")), (1.0, -float(joint.parameters["lead"])))]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """theta [rad]."""
        return [turn("theta")]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Screw motion about z."""
        return [screw(Z, float(joint.parameters["lead"]))]


AXIS_TYPES = {
    "fixed": AxisType.of(
        "Fixed joint, solid (uid 25): anchors and triads coincide.", "xyz", "zxy", UID=25, MARKER="", AXIS="none"
    ),
    "pin": AxisType.of(
        "Pin of imported scenes: a point of a body is fixed in the world or coincides with a point of another body.",
        "xyz", "", SYMBOL="ball", MARKER="", AXIS="none", FORMS=BALL,
    ),
    "planar": AxisType.of(
        "Planar joint: C moves in the x-y plane of D and turns about its normal z.",
        "z", "z", AXIS="needed", FORMS=("coordinates", "planar"),
    ),
    "planar_translation": AxisType.of(
        "Planar translation: C moves in the x-y plane of D and does not turn.", "z", "xyz", AXIS="needed"
    ),
    "cylindrical": AxisType.of(
        "Cylindrical joint: C moves along z of D and turns about it.", "xy", "z", SYMBOL="pin", AXIS="needed"
    ),
    "slotted_hinge": AxisType.of(
        "Slotted hinge: C moves along x of D and turns about z.", "yz", "z", SYMBOL="pin", AXIS="needed"
    ),
    "slider": AxisType.of("Slider: C moves along z of D and does not turn.", "xy", "xyz", AXIS="needed"),
    "free": AxisType.of(
        "Free joint: no constraint; six coordinates of C in D, for limits, springs and drives.",
        "", "", MARKER="", FORMS=("coordinates", *BALL),
    ),
}  # fmt: skip
"""Axis type by name."""
