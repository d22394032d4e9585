"""Scenes after a rigid motion of the world: positions and directions change, gravity included; local data do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.joints.rows.placement import rigid_pose
from abd.scene.geometry.frames import rotation_matrix, triad, unit
from abd.scene.schema.fields import ROTATION_KEYS, Orientation, given
from abd.scene.schema.joint_schema import WORLD_NAME, FrameSpec, JointSpec
from abd.scene.schema.joint_types import type_named, type_of
from abd.scene.schema.schema import LOADS, VELOCITIES, BodySpec, MotionSpec, SceneSpec

UNTURNED = 1e-12


def transformed(spec: SceneSpec, pose) -> SceneSpec:
    """Return the scene after a rigid motion of the world (4, 4) [m] (`Scene.transformed`)."""
    T = rigid_pose(pose)
    out = spec.model_copy(deep=True)
    out.gravity = _turned(T, spec.gravity)
    for key in given(spec.camera, ("position", "target")):
        setattr(out.camera, key, _moved(T, getattr(spec.camera, key)))
    out.body = [_body(one, T) for one in spec.body]
    out.joint = [_joint(one, T, spec) for one in spec.joint]
    return out


def _body(body: BodySpec, T: np.ndarray) -> BodySpec:
    turns = not np.allclose(T[:3, :3], np.eye(3), atol=UNTURNED)
    if turns and body.fix:
        remedy = "use a joint instead"
        raise SceneError.of("world axes rotate with the scene", key=f"body.{body.name}.fix", remedy=remedy)
    changes: dict[str, Any] = {key: _turned(T, getattr(body, key)) for key in given(body, VELOCITIES + LOADS)}
    changes |= {"position": _moved(T, body.position), **_orientation(T, body)}
    if body.half_space is not None:
        normal = unit(np.array(body.half_space.normal))
        offset = body.half_space.offset + float(T[:3, :3] @ normal @ T[:3, 3])
        plane = {"normal": tuple((T[:3, :3] @ normal).tolist()), "offset": offset}
        changes = {"half_space": body.half_space.model_copy(update=plane)}
    if body.repeat is not None:
        changes["repeat"] = _grid(body, T)
    if body.motion is not None:
        changes["motion"] = _motion(body, body.motion, T)
    return body.model_copy(update=changes)


def _grid(body: BodySpec, T: np.ndarray):
    """Return the grid of copies, if the rotation does not change it; it is aligned with the world axes."""
    step = np.array(body.repeat.step)
    used = np.array(body.repeat.count) > 1
    turned = T[:3, :3] @ np.diag(step)
    if not np.allclose(turned[:, used], np.diag(step)[:, used], atol=UNTURNED):
        raise _along_axes(f"body.{body.name}.repeat")
    return body.repeat


def _along_axes(key: str) -> SceneError:
    message = "a grid is aligned with the world axes, which rotate with the scene"
    return SceneError.of(message, key=key, remedy="rotate about the line of the copies, or list the copies")


def _motion(body: BodySpec, motion: MotionSpec, T: np.ndarray) -> MotionSpec:
    if motion.file is not None:
        remedy = "write its poses as keyframes, or transform the file"
        raise SceneError.of("poses in a file cannot be transformed", key=f"body.{body.name}.motion.file", remedy=remedy)
    changes: dict[str, Any] = {key: _turned(T, getattr(motion, key)) for key in given(motion, VELOCITIES)}
    if motion.keyframes is not None:
        changes["keyframes"] = [
            one.model_copy(
                update={
                    "position": None if one.position is None else _moved(T, one.position),
                    **(_orientation(T, one) if one.is_turned else {}),
                }
            )
            for one in motion.keyframes
        ]
    if motion.formulas is not None:
        f, R = motion.formulas, T[:3, :3]
        turned = {}
        for names in (("x", "y", "z"), ("rx", "ry", "rz")):
            texts = [getattr(f, name) for name in names]
            for i, name in enumerate(names):
                terms = [
                    f"{float(R[i, k])!r} * ({text})"
                    for k, text in enumerate(texts)
                    if abs(R[i, k]) > UNTURNED and text not in ("0", 0.0)
                ]
                turned[name] = " + ".join(terms) or "0"
        changes["formulas"] = f.model_copy(update=turned)
    return motion.model_copy(update=changes)


def _joint(joint: JointSpec, T: np.ndarray, spec: SceneSpec) -> JointSpec:
    turns = not np.allclose(T[:3, :3], np.eye(3), atol=UNTURNED)
    frame = joint.frame or ("world" if type_of(joint.type) in ("spherical", "pin") else "parent")
    if turns and joint.constrained is not None and frame == "world" and 0 < len({*joint.constrained} & {*"xyz"}) < 3:
        remedy = 'use frame = "parent", whose axes rotate with the scene'
        raise SceneError.of("world axes rotate with the scene", key=f"joint.{joint.name}.constrained", remedy=remedy)
    if joint.repeat is not None and joint.repeat.step is not None and turns:
        raise _along_axes(f"joint.{joint.name}.repeat")
    changes: dict[str, Any] = {}
    points, directions, frames = ["anchor"], ["axis", "x_axis"], ["world_frame", "child_world_frame"]
    if joint.parent == WORLD_NAME:
        points += ["parent_anchor"]
        directions += ["parent_axis", "parent_x_axis"]
        frames += ["parent_frame"]
    for keys, function in ((points, _moved), (directions, _turned), (frames, _frame)):
        changes |= {key: function(T, getattr(joint, key)) for key in given(joint, keys)}
    return joint.model_copy(update={**changes, **_direction_of_x(joint, T, spec)})


def _direction_of_x(joint: JointSpec, T: np.ndarray, spec: SceneSpec) -> dict[str, Any]:
    """Return the keys that define x of D, if it follows from the axes of the world."""
    if given(joint, ("parent_frame", "world_frame", "x_axis", "parent_x_axis")) or type_named(joint.type).AXIS == "none":
        return {}
    if joint.parent_axis is None or joint.parent == WORLD_NAME:
        axis = unit(np.array(joint.parent_axis or joint.axis or (0.0, 0.0, 1.0)))
        out = {"x_axis": tuple((T[:3, :3] @ triad(axis)[:, 0]).tolist())}
        plain = joint.axis is None and joint.parent_axis is None
        return {**out, "axis": tuple(T[:3, 2].tolist())} if plain else out
    parent = next((one for one in spec.body if one.name == joint.parent), None)
    if parent is None:
        remedy = "give x_axis"
        raise SceneError.of("the x axis of the joint follows from a copy", key=f"joint.{joint.name}", remedy=remedy)
    axis = unit(rotation_matrix(parent) @ np.array(joint.parent_axis))
    return {"x_axis": tuple((T[:3, :3] @ triad(axis)[:, 0]).tolist())}


def _moved(T: np.ndarray, point) -> tuple[float, ...]:
    return tuple((T[:3, :3] @ np.array(point, dtype=float) + T[:3, 3]).tolist())


def _turned(T: np.ndarray, vector) -> tuple[float, ...]:
    return tuple((T[:3, :3] @ np.array(vector, dtype=float)).tolist())


def _orientation(T: np.ndarray, own: Orientation) -> dict[str, Any]:
    """Return the rotation after the motion, as a quaternion."""
    x, y, z, w = Rotation.from_matrix(T[:3, :3] @ rotation_matrix(own)).as_quat().tolist()
    return {**dict.fromkeys(ROTATION_KEYS), "quaternion": (w, x, y, z)}


def _frame(T: np.ndarray, frame: FrameSpec) -> FrameSpec:
    return frame.model_copy(update={"position": _moved(T, frame.position), **_orientation(T, frame)})
