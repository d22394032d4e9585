"""What must hold in the keys that say where a joint is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from abd.scene.checks.orientation_checks import check_orientation
from abd.scene.schema.findings import Finding
from abd.scene.schema.joint_schema import JointSpec
from abd.scene.schema.joint_types import traits
from abd.scene.schema.suggestions import enumerated

ANCHOR_KEYS = ("anchor", "parent_anchor", "child_anchor")
AXIS_KEYS = ("axis", "parent_axis", "child_axis")
X_AXIS_KEYS = ("x_axis", "parent_x_axis", "child_x_axis")
PARENT_FRAMES = ("parent_frame", "world_frame")
CHILD_FRAMES = ("child_frame", "child_world_frame")
PARALLEL = 1e-6
"""Sine of the angle below which x_axis and axis count as parallel."""


def check_frames(joint: JointSpec) -> Iterator[Finding]:
    """Findings with paths relative to the joint."""
    frames = _given(joint, PARENT_FRAMES + CHILD_FRAMES)
    directions = _given(joint, AXIS_KEYS + X_AXIS_KEYS)
    for key in directions:
        if not np.linalg.norm(getattr(joint, key)):
            yield Finding((key,), "is zero", getattr(joint, key), "give a direction, such as [0, 0, 1]")
    for key in frames:
        for finding in check_orientation(getattr(joint, key)):
            finding.path = (key, *finding.path)
            yield finding
    if frames:
        yield from _check_whole_frames(joint, frames)
        return
    demands = traits(joint.type)
    if demands.points == "apart":
        yield from _check_apart(joint)
    else:
        yield from _check_forms(joint, ANCHOR_KEYS, "give anchor, or parent_anchor and child_anchor")
    if demands.axis == "none":
        for key in directions:
            remedy = "drop it, or use type = 'hinge'"
            yield Finding((key,), f"a {joint.type} joint has no axis", getattr(joint, key), remedy)
        return
    if demands.axis == "needed" or _given(joint, AXIS_KEYS):
        yield from _check_forms(joint, AXIS_KEYS, "give axis, or parent_axis and child_axis")
    if _given(joint, X_AXIS_KEYS):
        yield from _check_forms(joint, X_AXIS_KEYS, "")
        yield from _check_x_axes(joint)


def _given(joint: JointSpec, keys: tuple[str, ...]) -> list[str]:
    return [key for key in keys if getattr(joint, key) is not None]


def _check_whole_frames(joint: JointSpec, frames: list[str]) -> Iterator[Finding]:
    """One frame of the parent, one of the child at most, and nothing else."""
    parts = _given(joint, ANCHOR_KEYS + AXIS_KEYS + X_AXIS_KEYS)
    if parts:
        message = f"{frames[0]} is given as well, which says all of this"
        yield Finding((parts[0],), message, getattr(joint, parts[0]), "keep one of them")
    for keys in (PARENT_FRAMES, CHILD_FRAMES):
        given = _given(joint, keys)
        if len(given) > 1:
            yield Finding((given[1],), f"{given[0]} is given as well", remedy="keep one of them")
    if not _given(joint, PARENT_FRAMES):
        remedy = f"give {enumerated(PARENT_FRAMES)} beside it"
        yield Finding((frames[0],), "says nothing about the parent", remedy=remedy, is_absence=True)
    elif traits(joint.type).points == "apart" and not _given(joint, CHILD_FRAMES):
        remedy = f"give {enumerated(CHILD_FRAMES)} beside it"
        yield Finding((frames[0],), "says nothing about the point of the child", remedy=remedy, is_absence=True)


def _check_apart(joint: JointSpec) -> Iterator[Finding]:
    """A point of each body."""
    if joint.anchor is not None:
        message = f"a {joint.type} joins two points, one of each body"
        yield Finding(("anchor",), message, joint.anchor, "give parent_anchor and child_anchor")
        return
    for key in ANCHOR_KEYS[1:]:
        if getattr(joint, key) is None:
            message = f"has no {key}"
            remedy = f"a {joint.type} joins two points: give parent_anchor and child_anchor"
            yield Finding((), message, remedy=remedy, is_absence=True)


def _check_forms(joint: JointSpec, keys: tuple[str, str, str], remedy: str) -> Iterator[Finding]:
    """Either the world form or both local forms."""
    world, parent, child = keys
    local = _given(joint, (parent, child))
    if getattr(joint, world) is None and not local:
        yield Finding((), f"has no {world}", remedy=remedy, is_absence=True)
    elif getattr(joint, world) is not None and local:
        yield Finding(
            (local[0],), f"{world} is given as well", getattr(joint, local[0]), f"keep {world}, or {parent} and {child}"
        )
    elif len(local) == 1:
        other = child if local == [parent] else parent
        yield Finding((local[0],), f"{other} is missing", remedy=f"give both, or {world} alone", is_absence=True)


def _check_x_axes(joint: JointSpec) -> Iterator[Finding]:
    """x must be no multiple of z, where both are given in the same coordinates."""
    for key, axis_key in zip(X_AXIS_KEYS, AXIS_KEYS):
        x, axis = getattr(joint, key), getattr(joint, axis_key)
        if axis is None and key == "x_axis" and not _given(joint, AXIS_KEYS):
            axis = (0.0, 0.0, 1.0)
        if x is None or axis is None or not np.linalg.norm(x) or not np.linalg.norm(axis):
            continue
        sine = np.linalg.norm(np.cross(x, axis)) / (np.linalg.norm(x) * np.linalg.norm(axis))
        if sine < PARALLEL:
            yield Finding((key,), f"is parallel to {axis_key}", x, "give a direction across the axis")
