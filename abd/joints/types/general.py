"""General joint, and translations that are constrained along some axes of frame D or of the world."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.axes import Row, angle, displacement, dot, point, turn, xyz_angles
from abd.joints.measures.measures import Measure, MeasureKind, entry, functional, measure
from abd.joints.measures.motions import X, Y, Z, rotation, translation
from abd.model import WORLD

ROTATIONS = {"rx": X, "ry": Y, "rz": Z}
HELD = {
    ("rx", "ry", "rz"): (("rx", 2, 1, 1.0), ("ry", 2, 0, -1.0), ("rz", 0, 1, -1.0)),
    ("ry", "rz"): (("ry", 0, 2, 1.0), ("rz", 0, 1, -1.0)),
    ("rx", "rz"): (("rx", 1, 2, -1.0), ("rz", 1, 0, 1.0)),
    ("rx", "ry"): (("rx", 2, 1, 1.0), ("ry", 2, 0, -1.0)),
    ("rx",): (("rx", 1, 2, -1.0),),
    ("ry",): (("ry", 0, 2, 1.0),),
    ("rz",): (("rz", 0, 1, -1.0),),
    (): (),
}
"""Constrained rotations -> (name, axis of D, axis of C, sign) of their rows."""
TWO_ANGLES = {
    "rx": (("ry", (0, 2, 1.0), (2, 2)), ("rz", (1, 0, 1.0), (1, 1))),
    "ry": (("rx", (1, 2, -1.0), (2, 2)), ("rz", (0, 1, -1.0), (0, 0))),
    "rz": (("rx", (2, 1, 1.0), (1, 1)), ("ry", (0, 2, 1.0), (0, 0))),
}
"""Constrained rotation -> (name, entry and sign of the sine, entry of the cosine) of the two free rotations."""


class HeldTranslations(JointType):
    """Joint type with the parameters ``constrained``, names of the constrained axes, and ``frame``, "parent" or "world".

    Translations are linear rows if all three are constrained, or in world axes, and measured rows otherwise.
    """

    FRAME = "parent"
    """Default of ``frame``."""

    def in_world_axes(self, joint: Joint) -> bool:
        """Whether the axes of the translations are those of the world."""
        return joint.parameters.get("frame", self.FRAME) == "world"

    def rows(self, joint: Joint) -> list[Row]:
        """Linear translation rows [m]: all three axes, or world axes."""
        held = constrained(joint)
        if set("xyz") <= set(held):
            return [point(joint)]
        mask = tuple(float(name in held) for name in "xyz")
        return [replace(point(joint), mask=mask)] if any(mask) and self.in_world_axes(joint) else []

    def measured(self, joint: Joint) -> list[Measure]:
        """The other constrained translations [m], in axes of D."""
        held = [name for name in "xyz" if name in constrained(joint)]
        return [] if len(held) == 3 or self.in_world_axes(joint) else [*map(displacement, held)]

    def constraints(self, joint: Joint) -> list[Measure]:
        """The constrained translations [m].

        Raises:
            SceneError: some, but not all, translations are held in world axes while D moves. These are not functions of
                the two frames.
        """
        if not self.is_measurable(joint):
            raise parameter_error(
                joint, "frame", "world axes cannot be constrained compliantly while the parent moves",
                "use penalty or exact enforcement, or frame 'parent'",
            )  # fmt: skip
        return [_displacement(name, axis) for name, axis in self.axes(joint).items() if name in constrained(joint)]

    def is_measurable(self, joint: Joint) -> bool:
        """Whether the axes are fixed in D, or all or none of them are held, so that their choice does not matter."""
        count = sum(name in constrained(joint) for name in "xyz")
        return not self.in_world_axes(joint) or joint.parent == WORLD or count in (0, 3)

    def axes(self, joint: Joint) -> dict[str, np.ndarray]:
        """Directions (3,) in D of the axes of D, or of the world if D is fixed in the world."""
        turned = self.in_world_axes(joint) and joint.parent == WORLD
        return dict(zip("xyz", [joint.parent_frame[:3, :3].T @ axis if turned else axis for axis in (X, Y, Z)]))


class General(HeldTranslations):
    """General joint: each of six axes is constrained or free (Exudyn's ObjectJointGeneric).

    Parameters:

        constrained  names of the constrained axes among x, y, z, rx, ry, rz, in this order
        frame        axes of the translations, "parent" (default) or "world"

    Rotation rows by the number of constrained axes, as in Exudyn:

        three        z_D . y_C, z_D . x_C, x_D . y_C
        two          the free axis i of D with the two other axes of C: x_D . y_C, x_D . z_C if x is free
        one          x: y_D . z_C;  y: x_D . z_C;  z: x_D . y_C

    Each has the sign of a small rotation. Free rotations are the Tait-Bryan angles of ``R_CD = Rx Ry Rz`` without the
    constrained ones. Translations constrained in world axes are linear rows with a mask. Free translations in world
    axes have coordinates only if D does not move.

        constraints  constrained axes among x y z rx ry rz
        coordinates  free axes
    """

    MARKER = "ball"
    NEEDED: ClassVar = {"constrained": ()}
    OPTIONAL = ("frame",)

    def measured(self, joint: Joint) -> list[Measure]:
        """The other translations [m] and the rotations [rad]."""
        return super().measured(joint) + _rotations(joint)

    def constraints(self, joint: Joint) -> list[Measure]:
        """The constrained axes [m, rad]."""
        return super().constraints(joint) + _rotations(joint)

    def coordinates(self, joint: Joint) -> list[Measure]:
        """The free axes [m, rad]."""
        return [_displacement(*one) for one in self._free(joint)] + _angles(constrained(joint))

    def motions(self, joint: Joint) -> list[np.ndarray] | None:
        """Translations, then the free rotations in the order x, y, z; None if the translations have no coordinates."""
        if not self.is_measurable(joint):
            return None
        moves = [translation(axis) for _, axis in self._free(joint)]
        return moves + [rotation(axis) for name, axis in ROTATIONS.items() if name not in constrained(joint)]

    def _free(self, joint: Joint) -> list[tuple[str, np.ndarray]]:
        """Free translations and their directions (3,) in D; empty if they are not functions of the two frames."""
        axes = self.axes(joint) if self.is_measurable(joint) else {}
        return [(name, axis) for name, axis in axes.items() if name not in constrained(joint)]


def constrained(joint: Joint) -> tuple[str, ...]:
    """Names of the constrained axes, by default all translations."""
    return joint.parameters.get("constrained", ("x", "y", "z"))


def _rotations(joint: Joint) -> list[Measure]:
    held = tuple(name for name in ROTATIONS if name in constrained(joint))
    return [dot(*row) for row in HELD[held]]


def _angles(held: tuple[str, ...]) -> list[Measure]:
    free = [name for name in ROTATIONS if name not in held]
    if len(free) == 3:
        return xyz_angles()
    if len(free) == 1:
        return [turn(free[0], free[0][-1])]
    fixed = next((name for name in ROTATIONS if name in held), None)
    return [angle(name, entry(*sine), entry(*cosine)) for name, sine, cosine in TWO_ANGLES[fixed]] if free else []


def _displacement(name: str, direction: np.ndarray) -> Measure:
    return measure(name, False, MeasureKind.AFFINE, functional(r=direction))
