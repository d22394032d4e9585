"""Content of the JSON scenes of rigid-ipc: their tables, with types and defaults of every key.

Keys that begin with # are comments. Other unknown keys, such as misspelt ones, are ignored with a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from abd.scene.schema.fields import Flag, Number, Pair, PositiveNumber, Triple, Vector
from abd.scene.schema.findings import Finding, did_you_mean, schema_findings
from abd.scene.schema.values import numbers_value

WITHOUT_EFFECT = (
    *("scene_type", "collision_eps", "time_stepper", "do_intersection_check", "oriented", "ipc_comparison_enabled"),
    *("energy_conv_tol", "line_search_lower_bound", "linear_solver", "dhat_epsilon", "min_barrier_stiffness_scale"),
    *("detection_method", "trajectory_type", "is_velocity_conv_tol_abs"),
)
"""Keys of the format that are ignored without a note."""
ZERO = (0.0, 0.0, 0.0)
POINT = "three numbers [x, y, z] (scenes in the plane are not supported)"


def _six_flags(value: Any) -> Any:
    flags = [value] * 6 if isinstance(value, bool) else value
    if not isinstance(flags, list | tuple) or len(flags) != 6 or not all(isinstance(flag, bool) for flag in flags):
        raise PydanticCustomError("flags", "should be true, false or a list of six of them")
    return tuple(flags)


NotNegative = Annotated[Number, Field(ge=0)]
Point = Annotated[tuple[float, float, float], BeforeValidator(numbers_value(POINT, (3,)))]
Scale = Annotated[float | Vector, BeforeValidator(numbers_value("a number or three numbers", (), (3,)))]
Flags = Annotated[tuple[bool, ...], BeforeValidator(_six_flags)]


class JsonObject(BaseModel):
    """An object of the file."""

    model_config = ConfigDict(extra="allow")

    def unknown_keys(self, place: str = "") -> Iterator[str]:
        """Yield notes about unknown keys of the object at a place in the file, and of objects in it."""
        for key, value in self:
            path = f"{place}.{key}" if place else key
            if key not in (*type(self).model_fields, *WITHOUT_EFFECT) and not key.startswith("#"):
                question = did_you_mean(key, type(self).model_fields)
                yield f"unknown key '{path}' is ignored" + (f" ({question})" if question else "")
            inner = [(path, value)] if isinstance(value, JsonObject) else []
            inner += [(f"{path}[{k}]", item) for k, item in enumerate(value)] if isinstance(value, list) else []
            for where, item in inner:
                yield from item.unknown_keys(where) if isinstance(item, JsonObject) else ()


class KinematicPose(JsonObject):
    """Pose of the principal frame of a kinematic body after a step, with a rotation vector [rad]."""

    position: Point = ZERO
    rotation: Point = ZERO


class Body(JsonObject):
    """An entry of `rigid_bodies`; keys of disabled ones are not read."""

    name: str = ""
    mesh: str = ""
    vertices: list[Vector] = []
    edges: list[Pair] = []
    faces: list[Triple] = []
    scale: Scale = 1.0
    dimensions: Point | None = None
    rotation: Point = ZERO
    position: Point = ZERO
    density: PositiveNumber = 1000.0
    linear_velocity: Point = ZERO
    angular_velocity: Point = ZERO
    force: Point = ZERO
    torque: Point = ZERO
    type: Literal["dynamic", "kinematic", "static"] = "dynamic"
    is_dof_fixed: Flags = (False,) * 6
    group_id: int = -1
    kinematic_max_time: NotNegative | None = None
    kinematic_poses: list[KinematicPose] = []
    split_components: Flag = False
    enabled: Flag = True

    @model_validator(mode="before")
    @classmethod
    def _without_keys_if_disabled(cls, data: Any) -> Any:
        return {"enabled": False} if isinstance(data, dict) and data.get("enabled") is False else data


class Constraint(JsonObject):
    """An entry of `linear_constraints`."""

    type: str = ""
    body_name: str = ""
    body_point: Point = ZERO
    bodyA_name: str = ""
    bodyA_point: Point = ZERO
    bodyB_name: str = ""


class RigidBodyProblem(JsonObject):
    """The table `rigid_body_problem`."""

    gravity: Point = ZERO
    coefficient_friction: NotNegative = 0.0
    coefficient_restitution: Number = -1.0
    rigid_bodies: list[Body] = []
    orthogonality_stiffness: PositiveNumber = 1e9
    linear_constraints: list[Constraint] = []


class Solver(JsonObject):
    """Newton's method."""

    max_iterations: Annotated[Number, Field(ge=1)] = 3000.0
    convergence_criteria: str = "velocity"
    velocity_conv_tol: PositiveNumber = 1e-2


class Barrier(JsonObject):
    """The table `distance_barrier_constraint`."""

    initial_barrier_activation_distance: PositiveNumber = 1e-3
    minimum_separation_distance: NotNegative = 0.0
    barrier_type: str = "ipc"


class Friction(JsonObject):
    """The table `friction_constraints`."""

    static_friction_speed_bound: PositiveNumber = 1e-3
    iterations: Annotated[Number, Field(ge=-1)] = 1.0


class File(JsonObject):
    """A scene."""

    solver: str = "ipc_solver"
    timestep: PositiveNumber = 0.01
    max_time: Number = -1.0
    max_iterations: Number = -1.0
    rigid_body_problem: RigidBodyProblem = RigidBodyProblem()
    ipc_solver: Solver = Solver()
    newton_solver: Solver = Solver()
    distance_barrier_constraint: Barrier = Barrier()
    friction_constraints: Friction = Friction()


def read_file(path: Path) -> tuple[File, list[Finding], list[str]]:
    """Return the content of a file, in which defaults replace invalid values, findings about these, and notes."""
    data = json.loads(path.read_text(encoding="utf-8-sig"))
    notes: list[str] = []
    findings: list[Finding] = []
    if "args" in data:
        notes.append("saved simulation: the scene is imported, not the state")
        data = data["args"]
    while True:
        try:
            file = File.model_validate(data)
            return file, findings, [*notes, *file.unknown_keys()]
        except ValidationError as error:
            new = schema_findings(error, File, data)
        findings += new
        for finding in new:
            data = _without(data, finding.path)


def _without(data: Any, path: tuple) -> Any:
    """Return data without the innermost key on the path of an invalid value, unless it has been removed already."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    if not path:
        return {}
    table = data
    for part in path[:-1]:
        if isinstance(part, str) and part not in table:
            return data
        table = table[part]
    table.pop(path[-1], None)
    return data
