"""The general joint, and translations of which only some axes are held, those of frame D or of the world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.joints.joint_type import JointType, wrong
from abd.joints.measures.axes import angle, displacement, dot, turn, xyz_angles
from abd.joints.measures.linear import Row, point
from abd.joints.measures.measures import Measure, MeasureKind, entry, functional, measure
from abd.joints.measures.motions import Motion, X, Y, Z, rotation, translation
from abd.model import WORLD, Joint

AXES = ("x", "y", "z", "rx", "ry", "rz")
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
"""Rotations held -> (name, axis of D, axis of C, sign) of their rows."""
TWO_ANGLES = {
    "rx": (("ry", (0, 2, 1.0), (2, 2)), ("rz", (1, 0, 1.0), (1, 1))),
    "ry": (("rx", (1, 2, -1.0), (2, 2)), ("rz", (0, 1, -1.0), (0, 0))),
    "rz": (("rx", (2, 1, 1.0), (1, 1)), ("ry", (0, 2, 1.0), (0, 0))),
}
"""The one rotation held -> (name, entry and sign of the sine, entry of the cosine) of the two that are free."""


class General(JointType):
    """General joint: each of six axes is held or free (Exudyn's ObjectJointGeneric).

    Parameters: ``constrained``, names among x, y, z, rx, ry, rz of the axes that are held, or six bools; ``frame`` of the
    three translations, "parent" (default) or "world".

    Rotation rows by the axes held, as Exudyn has them:

        three        z_D . y_C, z_D . x_C, x_D . y_C
        two          the free axis i of D against the two other axes of C: x_D . y_C, x_D . z_C where x is free
        one          x: y_D . z_C;  y: x_D . z_C;  z: x_D . y_C

    each with the sign of a small rotation. Free rotations are the Tait-Bryan angles of ``R_CD = Rx Ry Rz`` without the ones
    held. Translations held in world axes are linear rows with a mask; those not held have coordinates where D does not move.

        constraints  those of x y z rx ry rz that are held
        coordinates  those that are free
    """

    def rows(self, joint: Joint) -> list[Row]:
        """The translations that are linear [m]: all three, or in world axes."""
        return split(joint, *_held(joint))[0]

    def measured(self, joint: Joint) -> list[Measure]:
        """The other translations [m], the rotations [rad]."""
        return split(joint, *_held(joint))[1] + _rotations(joint)

    def constraints(self, joint: Joint) -> list[Measure]:
        """The axes held [m, rad]."""
        return held_translations(joint, *_held(joint)) + _rotations(joint)

    def coordinates(self, joint: Joint) -> list[Measure]:
        """The axes free [m, rad]."""
        held, frame = _held(joint)
        return [measure for measure, _ in free_translations(joint, held, frame)] + _angles(held)

    def motions(self, joint: Joint) -> list[Motion] | None:
        """Translations, then the free rotations in the order x, y, z; None where the translations have no coordinates."""
        held, frame = _held(joint)
        if not can_measure(joint, held, frame):
            return None
        moves = [translation(measure.name, axis) for measure, axis in free_translations(joint, held, frame)]
        return moves + [rotation(name, axis) for name, axis in ROTATIONS.items() if name not in held]


def _held(joint: Joint) -> tuple[tuple[str, ...], str]:
    frame = str(joint.parameters.get("frame", "parent"))
    if frame not in ("parent", "world"):
        raise wrong(joint, "frame", "must be 'parent' or 'world'")
    return held_axes(joint), frame


def _rotations(joint: Joint) -> list[Measure]:
    held = tuple(name for name in ROTATIONS if name in _held(joint)[0])
    return [dot(*row) for row in HELD[held]]


def _angles(held: tuple[str, ...]) -> list[Measure]:
    free = [name for name in ROTATIONS if name not in held]
    if len(free) == 3:
        return xyz_angles()
    if len(free) == 1:
        return [turn(free[0], free[0][-1])]
    fixed = next((name for name in ROTATIONS if name in held), None)
    return [angle(name, entry(*sine), entry(*cosine)) for name, sine, cosine in TWO_ANGLES[fixed]] if free else []


def held_axes(joint: Joint) -> tuple[str, ...]:
    """Names of the axes that parameter ``constrained`` holds: it has the names, or true or false (1 or 0) for each axis.

    Raises:
        SceneError: it has neither.
    """
    given = tuple(joint.parameters["constrained"])
    if len(given) in (3, 6) and all(not isinstance(entry, str) and entry in (0, 1) for entry in given):
        return tuple(name for name, is_held in zip(AXES, given) if is_held)
    if not set(given) <= set(AXES):
        raise wrong(joint, "constrained", f"has names other than {', '.join(AXES)}")
    return tuple(name for name in AXES if name in given)


def split(joint: Joint, held: tuple[str, ...], frame: str) -> tuple[list[Row], list[Measure]]:
    """Linear and measured rows that hold the translations `held`: linear where all three are, or in world axes."""
    mask = tuple(float(name in held) for name in "xyz")
    if all(mask):
        return [point(joint)], []
    if frame == "world":
        return [replace(point(joint), mask=mask)] if any(mask) else [], []
    return [], [displacement(name) for name in "xyz" if name in held]


def held_translations(joint: Joint, held: tuple[str, ...], frame: str) -> list[Measure]:
    """The measures [m] of the translations `held`.

    Raises:
        SceneError: some, but not all, are held in world axes while D moves: no function of the two frames alone.
    """
    if not can_measure(joint, held, frame):
        raise wrong(
            joint, "frame", "axes of the world that are held while the parent moves have no compliant rows",
            "use penalty or exact enforcement, or frame 'parent'",
        )  # fmt: skip
    return [_displacement(name, _axes(joint, frame)[name]) for name in "xyz" if name in held]


def free_translations(joint: Joint, held: tuple[str, ...], frame: str) -> list[tuple[Measure, np.ndarray]]:
    """Coordinates [m] of the translations that are not held, and their directions (3,) in D; none where no function
    of the two frames tells them."""
    free = [name for name in "xyz" if name not in held and can_measure(joint, held, frame)]
    return [(_displacement(name, _axes(joint, frame)[name]), _axes(joint, frame)[name]) for name in free]


def can_measure(joint: Joint, held: tuple[str, ...], frame: str) -> bool:
    """Whether the axes are fixed in D, or as good as: all held, or none."""
    count = sum(name in held for name in "xyz")
    return frame != "world" or joint.parent == WORLD or count in (0, 3)


def _axes(joint: Joint, frame: str) -> dict[str, np.ndarray]:
    """Directions (3,) in D of the axes of D, or of the world where D is fixed in it."""
    turned = frame == "world" and joint.parent == WORLD
    return dict(zip("xyz", [joint.parent_frame[:3, :3].T @ axis if turned else axis for axis in (X, Y, Z)]))


def _displacement(name: str, direction: np.ndarray) -> Measure:
    return measure(name, False, MeasureKind.AFFINE, functional(r=direction))
