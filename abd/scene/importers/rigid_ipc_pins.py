"""The `linear_constraints` of affine-body scenes: pins to the world and between bodies.

    {"type": "pin_world", "body_name": "base", "body_point": [0, 0, 0]}
    {"type": "pin_joint", "bodyA_name": "link1", "bodyA_point": [10, 0, 0], "bodyB_name": "link2"}

A pinned point keeps its initial position, or coincides with the point of the other body at that position. Points
are in coordinates of the mesh file, before scale and pose. Three pins to the world that are not collinear fix a
rigid body (of an affine body they fix 9 of 12 degrees of freedom, and its rigidity the others): such a body becomes
static. Other pins become joints of type "pin"; their bodies still collide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.scene.geometry.frames import body_pose
from abd.scene.importers.json_table import JsonTable
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.joint_schema import JointSpec
from abd.scene.schema.schema import BodySpec

CONSTRAINT_KEYS = ("type", "body_name", "body_point", "bodyA_name", "bodyA_point", "bodyB_name")


@dataclass(frozen=True)
class ScaledBody:
    """A body of the scene, and the scale (3,) from its mesh file to its mesh frame."""

    spec: BodySpec
    scale: tuple[float, float, float]

    def world_point(self, point: tuple[float, float, float]) -> np.ndarray:
        """(3,) place at t = 0 of a point in coordinates of the mesh file."""
        pose = body_pose(self.spec)
        return pose[:3, :3] @ (np.array(self.scale) * point) + pose[:3, 3]


def apply_pins(
    constraints: list[JsonTable], bodies: list[ScaledBody], notes: list[str]
) -> tuple[list[BodySpec], list[JointSpec]]:
    """Bodies, some of them made static, and pin joints; invalid constraints become problems of their tables."""
    known = {body.spec.name: body for body in bodies}
    world: dict[str, list[tuple[int, np.ndarray]]] = {}
    between: list[tuple[int, str, str, np.ndarray]] = []
    for k, table in enumerate(constraints):
        kind = table.text("type")
        if kind == "pin_world" and _named(table, "body_name", known):
            name = table.text("body_name")
            world.setdefault(name, []).append((k, known[name].world_point(table.vector("body_point"))))
        elif kind == "pin_joint" and _named(table, "bodyA_name", known) and _named(table, "bodyB_name", known):
            first, second = table.text("bodyA_name"), table.text("bodyB_name")
            between.append((k, first, second, known[first].world_point(table.vector("bodyA_point"))))
        elif kind not in ("pin_world", "pin_joint"):
            table.problem("type", "should be pin_world or pin_joint", kind)

    held = {name for name, pins in world.items() if _hold([point for _, point in pins])}
    for name in sorted(held):
        notes.append(
            f"body '{name}' is static: it has {len(world[name])} pins to the world that are not collinear"
        )
    specs = [_static(body.spec) if body.spec.name in held else body.spec for body in bodies]
    still = {spec.name for spec in specs if spec.kind == "static"}

    pins = [(k, "world", name, point) for name, pins in world.items() if name not in still for k, point in pins]
    for pin in between:
        if pin[1] in still and pin[2] in still:
            notes.append(f"the pin between the static bodies '{pin[1]}' and '{pin[2]}' is ignored")
        else:
            pins.append(pin)
    joints = [
        JointSpec(name=f"pin_{k}", type="pin", parent=parent, child=child, anchor=tuple(point.tolist()), collide=True)
        for k, parent, child, point in sorted(pins, key=lambda pin: pin[0])
    ]
    return specs, joints


def _named(table: JsonTable, key: str, known: dict[str, ScaledBody]) -> bool:
    """Return whether the key is the name of a body; add a problem otherwise."""
    name = table.text(key)
    if name not in known:
        table.problem(key, f"there is no body '{name}'", name, did_you_mean(name, known))
    return name in known


def _hold(points: list[np.ndarray]) -> bool:
    """Return whether pins at these points fix a rigid body: three of them are not collinear."""
    arms = np.array(points) - points[0]
    values = np.linalg.svd(arms, compute_uv=False)
    return len(values) > 1 and bool(values[1] > 1e-9 * values[0])


def _static(spec: BodySpec) -> BodySpec:
    """Return the body without keys of moving bodies."""
    zero = (0.0, 0.0, 0.0)
    loads = {"velocity": zero, "angular_velocity": zero, "force": zero, "torque": zero}
    return spec.model_copy(update={"kind": "static", "fix": [], "motion": None, **loads})
