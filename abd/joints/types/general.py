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

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, entry
from abd.joints.measures.parameters import wrong
from abd.joints.pieces import masks
from abd.joints.pieces.axes import angle, dot, turn, xyz_angles
from abd.joints.pieces.motions import Motion, X, Y, Z, rotation, translation
from abd.model import Joint

UID = 0
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


def rows(joint: Joint) -> list[Row]:
    """The translations that are linear [m]: all three, or in world axes."""
    return masks.split(joint, *_held(joint))[0]


def measured(joint: Joint) -> list[Measure]:
    """The other translations [m], the rotations [rad]."""
    return masks.split(joint, *_held(joint))[1] + _rotations(joint)


def constraints(joint: Joint) -> list[Measure]:
    """The axes held [m, rad]."""
    return masks.constraints(joint, *_held(joint)) + _rotations(joint)


def coordinates(joint: Joint) -> list[Measure]:
    """The axes free [m, rad]."""
    held, frame = _held(joint)
    return [measure for measure, _ in masks.free_translations(joint, held, frame)] + _angles(held)


def motions(joint: Joint) -> list[Motion] | None:
    """Translations, then the free rotations in the order x, y, z; None where the translations have no coordinates."""
    held, frame = _held(joint)
    if not masks.can_measure(joint, held, frame):
        return None
    moves = [translation(measure.name, axis) for measure, axis in masks.free_translations(joint, held, frame)]
    return moves + [rotation(name, axis) for name, axis in ROTATIONS.items() if name not in held]


def _held(joint: Joint) -> tuple[tuple[str, ...], str]:
    frame = str(joint.parameters.get("frame", "parent"))
    if frame not in ("parent", "world"):
        raise wrong(joint, "frame", "must be 'parent' or 'world'")
    return masks.held_axes(joint), frame


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
