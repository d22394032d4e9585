"""Translations of which only some axes are held, those of frame D or of the world."""

from __future__ import annotations

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure
from abd.joints.measures.parameters import wrong
from abd.joints.pieces.axes import NAMES, displacement
from abd.joints.pieces.blocks import point
from abd.model import WORLD, Joint

AXES = ("x", "y", "z", "rx", "ry", "rz")


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
    if all(name in held for name in NAMES):
        return [point(joint)], []
    if frame == "world":
        mask = tuple(1.0 if name in held else 0.0 for name in NAMES)
        whole = point(joint)
        return ([Row(whole.parent, whole.child, True, mask)] if any(mask) else []), []
    return [], [displacement(name) for name in NAMES if name in held]


def constraints(joint: Joint, held: tuple[str, ...], frame: str) -> list[Measure]:
    """The measures [m] of the translations `held`.

    Raises:
        SceneError: some, but not all, are held in world axes while D moves: no function of the two frames alone.
    """
    names = [name for name in NAMES if name in held]
    if not can_measure(joint, held, frame):
        raise wrong(
            joint, "frame", "axes of the world that are held while the parent moves have no compliant rows",
            "use penalty or exact enforcement, or frame 'parent'",
        )  # fmt: skip
    return [_displacement(joint, name, frame) for name in names]


def free_translations(joint: Joint, held: tuple[str, ...], frame: str) -> list[tuple[Measure, np.ndarray]]:
    """Coordinates [m] of the translations that are not held, and their directions (3,) in D; none where no function
    of the two frames tells them."""
    if not can_measure(joint, held, frame):
        return []
    free = [name for name in NAMES if name not in held]
    return [(_displacement(joint, name, frame), _direction(joint, name, frame)) for name in free]


def can_measure(joint: Joint, held: tuple[str, ...], frame: str) -> bool:
    """Whether the axes are fixed in D, or as good as: all held, or none."""
    count = sum(name in held for name in NAMES)
    return frame != "world" or joint.parent == WORLD or count in (0, 3)


def _direction(joint: Joint, name: str, frame: str) -> np.ndarray:
    axis = np.eye(3)[NAMES.index(name)]
    turned = frame == "world" and joint.parent == WORLD
    return joint.parent_frame[:3, :3].T @ axis if turned else axis


def _displacement(joint: Joint, name: str, frame: str) -> Measure:
    return measure(name, False, MeasureKind.AFFINE, functional(r=_direction(joint, name, frame)))
