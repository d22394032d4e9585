"""Scenes many times over: copies that never meet, each in a world of its own."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.schema import SceneSpec

NAMES = "w{world}_{name}"
"""Name of what is in a world: of a body, joint, coupling or sensor."""
NAMING = {
    "body": ("name",),
    "contact_filter": (),
    "joint": ("name", "parent", "child"),
    "coupling": ("name", "coordinate"),
    "sensor": ("name", "joint", "body", "other"),
}
"""Tables that every world has its own of, and keys of theirs that name what is in it."""


def replicated(spec: SceneSpec, count: int, dt: Sequence[float] | None = None) -> SceneSpec:
    """`count` copies of a scene in one place. Materials, joint types and settings are shared.

    Args:
        dt: time steps of the copies [s], as many as there are; those of the scene by default.

    Raises:
        ValueError: count is not positive, or there are more or fewer time steps.
    """
    if count < 1:
        raise ValueError(f"a scene is replicated 1 time or more, not {count}")
    out = spec.model_copy(deep=True)
    worlds = 1 + max((body.world for body in spec.body), default=0)
    for kind in NAMING:
        setattr(out, kind, [_copy(kind, one, k) for k in range(count) for one in getattr(spec, kind)])
    for number, body in enumerate(out.body):
        body.world += worlds * (number // len(spec.body))
    out.solver.world_dt = spec.solver.world_dt * count
    if dt is not None:
        if len(dt) != count:
            raise ValueError(f"{len(dt)} time steps are given for {count} copies")
        out.solver.world_dt = tuple(float(one) for one in dt for _ in range(worlds))
    if spec.camera.follow is not None:
        out.camera.follow = _name(spec.camera.follow, 0)
    return out


def _name(name: str, world: int) -> str:
    return NAMES.format(world=world, name=name)


def _copy(kind: str, one: BaseModel, world: int) -> BaseModel:
    """One table of a scene, whose names, its own and those of others, are those of a world."""
    copy = one.model_copy(deep=True)
    for key in NAMING[kind]:
        value = getattr(copy, key)
        if value is not None and (key, value) != ("parent", WORLD_NAME):
            setattr(copy, key, _name(value, world))
    if kind == "contact_filter":
        copy.bodies = [_name(body, world) for body in copy.bodies]
    elif kind == "coupling":
        for term in copy.terms:
            term.coordinate = _name(term.coordinate, world)
        copy.variables = {variable: _name(value, world) for variable, value in copy.variables.items()}
    return copy
