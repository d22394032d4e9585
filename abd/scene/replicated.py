"""Replicated scenes: independent copies in separate worlds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from abd.scene.schema.fields import Spec
from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.schema import SceneSpec

NAMES = "w{world}_{name}"
"""Name of an item of a world: body, joint, coupling or sensor."""
NAMING = {
    "body": ("name",),
    "contact_filter": (),
    "joint": ("name", "parent", "child"),
    "coupling": ("name", "coordinate"),
    "sensor": ("name", "joint", "body", "other"),
}
"""Tables of a single world, and their keys with names of its items."""


def replicated(spec: SceneSpec, count: int, dt: Sequence[float] | None = None) -> SceneSpec:
    """Return copies of a scene with common materials, joint types, settings and inline surfaces (`Scene.replicate`)."""
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    worlds = 1 + max((body.world for body in spec.body), default=0)
    tables = {kind: [_copies(kind, one, count, worlds) for one in getattr(spec, kind)] for kind in NAMING}
    out = spec.model_copy(update={kind: [] for kind in NAMING}).model_copy(deep=True)
    out = out.model_copy(update={kind: list(chain.from_iterable(zip(*each, strict=True))) for kind, each in tables.items()})
    out.solver.world_dt = spec.solver.world_dt * count
    if dt is not None:
        if len(dt) != count:
            raise ValueError(f"dt must have one time step for each of the {count} copies, not {len(dt)}")
        out.solver.world_dt = tuple(float(one) for one in dt for _ in range(worlds))
    if spec.camera.follow is not None:
        out.camera.follow = _name(spec.camera.follow, 0)
    return out


def _name(name: str, world: int) -> str:
    return NAMES.format(world=world, name=name)


def _copies(kind: str, one: Spec, count: int, worlds: int) -> list[Spec]:
    """Return the tables of all copies for one table, with names and worlds of each; `worlds`: number of worlds of one copy."""
    named = [key for key in NAMING[kind] if (value := getattr(one, key)) is not None and (key, value) != ("parent", WORLD_NAME)]
    out = []
    for world in range(count):
        changes: dict[str, Any] = {key: _name(getattr(one, key), world) for key in named}
        if kind == "body":
            changes["world"] = one.world + worlds * world
        elif kind == "contact_filter":
            changes["bodies"] = [_name(body, world) for body in one.bodies]
        elif kind == "coupling":
            changes["terms"] = [term.independent(coordinate=_name(term.coordinate, world)) for term in one.terms]
            changes["variables"] = {variable: _name(value, world) for variable, value in one.variables.items()}
        out.append(one.independent(**changes))
    return out
