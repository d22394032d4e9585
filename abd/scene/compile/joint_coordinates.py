"""Settings of the coordinates of a joint: from the keys of a scene to `abd.model.CoordinateSettings`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from abd.joints.rows.measured_rows import FUNCTIONS
from abd.joints.types import TYPES
from abd.model import CoordinateSettings, Drive
from abd.scene.schema.angles import DEGREES, in_radians, time_function
from abd.scene.schema.formula import NamedFormula
from abd.scene.schema.joint_schema import CoordinateKeys, CoordinateSpec, DriveSpec, JointSpec
from abd.scene.schema.joint_types import VALUES, type_of

SHORTHANDS = {key: info.default for key, info in CoordinateKeys.model_fields.items()}
"""Keys that a joint with a single coordinate may carry itself, and their defaults."""
INFINITE = (-math.inf, math.inf)
SAME_VALUE = 1e-6
"""Difference of coordinates [m or rad] that counts as none."""


def given_shorthands(spec: JointSpec) -> list[str]:
    """Those of the `SHORTHANDS` that a joint carries."""
    return [key for key, default in SHORTHANDS.items() if getattr(spec, key) != default]


def coordinate_tables(spec: JointSpec, names: list[str]) -> dict[str, CoordinateSpec]:
    """The tables of a joint's coordinates by name, with what the joint itself says about its single one, and the ranges that
    its type has where it gives none."""
    tables = dict(spec.coordinate)
    short = {key: getattr(spec, key) for key in given_shorthands(spec)}
    if short and len(names) == 1:
        own = tables.get(names[0], CoordinateSpec())
        tables[names[0]] = own.model_copy(update=short)
    for name, ends in getattr(TYPES[type_of(spec.type)], "RANGES", {}).items():
        own = tables.get(name, CoordinateSpec())
        if own.range is None and own.range_deg is None:
            tables[name] = own.model_copy(update={"range": tuple(map(float, ends))})
    return tables


def key_of(spec: JointSpec, name: str, key: str) -> str:
    """Where a joint says this about a coordinate: the key of the joint itself, or that in the coordinate's table."""
    for one in (f"{key}{DEGREES}", key):
        if one in given_shorthands(spec):
            return one
    table = spec.coordinate[name]
    in_degrees = f"{key}{DEGREES}"
    return f"coordinate.{name}.{key if getattr(table, in_degrees, None) is None else in_degrees}"


def initial_values(tables: dict[str, CoordinateSpec]) -> dict[str, float]:
    """Initial values [m or rad] of those coordinates that are given one."""
    values = {name: in_radians(table, "initial") for name, table in tables.items()}
    return {name: value for name, value in values.items() if value is not None}


def coordinate_settings(name: str, spec: CoordinateSpec, initial: float) -> CoordinateSettings:
    """The settings of one coordinate that has the value `initial` [m or rad] at t = 0.

    A barrier at which a coordinate starts stands `SAME_VALUE` behind it, so that the coordinate has a gap.
    """
    lower, upper = in_radians(spec, "range") or INFINITE
    if spec.limit == "barrier":
        lower = initial - SAME_VALUE if abs(initial - lower) <= SAME_VALUE else lower
        upper = initial + SAME_VALUE if abs(initial - upper) <= SAME_VALUE else upper
    return CoordinateSettings(
        name=name,
        initial=initial,
        initial_rate=in_radians(spec, "initial_rate"),
        lower=lower,
        upper=upper,
        limit=spec.limit,
        limit_distance=in_radians(spec, "limit_distance"),
        limit_compliance=spec.limit_compliance,
        limit_damping=spec.limit_damping,
        limit_restitution=spec.limit_restitution,
        limit_strength=spec.limit_strength,
        locked=spec.locked,
        lock_value=in_radians(spec, "lock_value"),
        stiffness=spec.stiffness,
        rest=in_radians(spec, "rest") or 0.0,
        damping=spec.damping,
        friction=spec.friction,
        friction_load=spec.friction_load,
        armature=spec.armature,
        law=law_of(spec, VALUES),
        drive=None if spec.drive is None else _drive(spec.drive),
        velocity_limit=in_radians(spec, "velocity_limit") or math.inf,
        effort_limit=spec.effort_limit or math.inf,
    )


def law_of(spec: CoordinateSpec | JointSpec, names: tuple[str, ...]) -> Callable[[Sequence[float]], float] | None:
    """The force that is given as a formula or function of these; None without any."""
    if spec.force_formula is not None:
        return NamedFormula(spec.force_formula, names)
    return None if spec.force_function is None else FUNCTIONS[spec.force_function]


def _drive(spec: DriveSpec) -> Drive:
    return Drive(
        mode=spec.mode,
        target=time_function(spec, "target"),
        rate=time_function(spec, "rate"),
        stiffness=spec.stiffness,
        damping=spec.damping,
        effort=spec.effort or math.inf,
        uid=spec.uid,
        strength_ratio=spec.strength_ratio,
    )
