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

from abd.scene.importers.rigid_ipc_file import Constraint
from abd.scene.schema.findings import Finding, did_you_mean
from abd.scene.schema.joint_schema import WORLD_NAME

FREE = ("fix", "motion", "velocity", "angular_velocity", "force", "torque")
"""Keys of bodies that are not static."""
ENDS = {"pin_world": ("body_name",), "pin_joint": ("bodyA_name", "bodyB_name")}
"""Keys of the bodies of a constraint, by its type."""


@dataclass(frozen=True)
class PlacedBody:
    """Keys of a body, its pose (4, 4) at t = 0, and the scale (3,) from its mesh file to its mesh frame."""

    keys: dict[str, object]
    pose: np.ndarray
    scale: tuple[float, float, float]

    def world_point(self, point: tuple[float, float, float]) -> np.ndarray:
        """(3,) place at t = 0 of a point in coordinates of the mesh file."""
        return self.pose[:3, :3] @ (np.array(self.scale) * point) + self.pose[:3, 3]


def apply_pins(
    constraints: list[Constraint], bodies: list[PlacedBody], notes: list[str]
) -> tuple[list[dict[str, object]], list[Finding]]:
    """Make bodies static that pins hold; return the pin joints, and findings with paths relative to the constraints."""
    known = {str(body.keys["name"]): body for body in bodies}
    findings: list[Finding] = []
    pins: list[tuple[int, str, str, np.ndarray]] = []
    for k, one in enumerate(constraints):
        if one.type not in ENDS:
            findings.append(Finding((k, "type"), "should be pin_world or pin_joint", one.type))
            continue
        names = [getattr(one, key) for key in ENDS[one.type]]
        wrong = [(key, name) for key, name in zip(ENDS[one.type], names) if name not in known]
        findings += [Finding((k, key), f"there is no body '{name}'", name, did_you_mean(name, known)) for key, name in wrong]
        if not wrong:
            point = one.body_point if one.type == "pin_world" else one.bodyA_point
            pins.append((k, *([WORLD_NAME, *names][-2:]), known[names[0]].world_point(point)))

    for name, body in sorted(known.items()):
        points = [point for _, parent, child, point in pins if (parent, child) == (WORLD_NAME, name)]
        if _hold(points):
            notes.append(f"body '{name}' is static: it has {len(points)} pins to the world that are not collinear")
            for key in FREE:
                body.keys.pop(key, None)
            body.keys["kind"] = "static"
    static = {WORLD_NAME} | {name for name, body in known.items() if body.keys["kind"] == "static"}
    joints = []
    for k, parent, child, point in pins:
        if {parent, child} <= static:
            if parent != WORLD_NAME:
                notes.append(f"the pin between the static bodies '{parent}' and '{child}' is ignored")
            continue
        joint = {"name": f"pin_{k}", "type": "pin", "parent": parent, "child": child, "anchor": point.tolist()}
        joints.append(joint | {"collide": True})
    return joints, findings


def _hold(points: list[np.ndarray]) -> bool:
    """Return whether pins at these points fix a rigid body: three of them are not collinear."""
    if not points:
        return False
    values = np.linalg.svd(np.array(points) - points[0], compute_uv=False)
    return len(values) > 1 and bool(values[1] > 1e-9 * values[0])
