"""Scaled scenes: every number is multiplied by the power of the factor that its unit in the schema has.

Masses and times do not change, nor does gravity that the scene does not set. Forces scale with the factor, torques and energies
with its square, pressures with its inverse.
A number "m or rad" scales if its coordinate or row is a length, and does not change if it is an angle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from abd.errors import SceneError
from abd.joints.rows.build import yielding
from abd.scene.compile.joint_settings import joint_coordinates, unplaced_joint
from abd.scene.schema.fields import Spec, given
from abd.scene.schema.joint_schema import CoordinateSpec, CouplingSpec, CouplingTermSpec, DriveSpec, JointSpec
from abd.scene.schema.joint_types import type_of
from abd.scene.schema.schema import BodySpec, SceneSpec

POWERS = {
    "": 0, "1": 0, "s": 0, "1/s": 0, "kg": 0, "deg": 0, "deg/s": 0, "rad": 0, "rad/s": 0,
    "m": 1, "m/s": 1, "m/s^2": 1, "m/rad": 1, "N": 1,
    "kg m^2": 2, "N m": 2, "kg/m^3": -3, "Pa": -1, "J/m^4": -2,
    "m/N": 0, "rad/(N m)": -2, "N/m": 0, "N m/rad": 2, "N s/m": 0, "N m s/rad": 2, "N m s": 2,
}  # fmt: skip
"""Exponent of length in each unit, with masses and times fixed."""
WITH_LENGTHS = ("length", "gap", "speed")
"""Variables of spring forces with a length in their unit."""


def scaled(spec: SceneSpec, factor: float) -> SceneSpec:
    """Return the scene with all lengths multiplied by a factor (`Scene.scaled`)."""
    if not (np.isfinite(factor) and factor > 0.0):
        raise SceneError.of("the scale factor must be positive", key="factor", value=factor)
    rotary = {joint.name: _rotary(joint) for joint in spec.joint}
    default = () if "gravity" in spec.model_fields_set else ("gravity",)
    out = _table(spec, factor, _linear, leave=("body", "joint", "coupling", *default))
    out.body = [_body(one, factor) for one in spec.body]
    out.joint = [_joint(one, factor) for one in spec.joint]
    out.coupling = [_coupling(one, factor, rotary) for one in spec.coupling]
    return out


def _table(spec: Spec, factor: float, power: Callable[[str], int], leave: tuple[str, ...] = ()) -> Any:
    """Return a table with its numbers multiplied, including inner tables."""
    changes = {}
    for key, info in type(spec).model_fields.items():
        value, unit = getattr(spec, key), (info.json_schema_extra or {}).get("unit", "")
        if value is None or key in leave:
            continue
        if isinstance(value, Spec):
            changes[key] = _table(value, factor, power)
        elif isinstance(value, list) and value and isinstance(value[0], Spec):
            changes[key] = [_table(one, factor, power) for one in value]
        elif unit and power(unit) and (product := times(value, factor ** power(unit))) != value:
            changes[key] = product
    return spec.model_copy(update=changes)


def times(value: Any, factor: float) -> Any:
    """Return nested numbers and formulas multiplied by a factor; other texts do not change."""
    if isinstance(value, (list, tuple)):
        return type(value)(times(one, factor) for one in value)
    if isinstance(value, str):
        return value if value == "auto" else f"{factor!r} * ({value})"
    return value * factor


def _linear(unit: str) -> int:
    return POWERS[unit.split(" or ")[0]]


def _angular(unit: str) -> int:
    return POWERS[unit.split(" or ")[-1]]


def _body(body: BodySpec, factor: float) -> BodySpec:
    if body.motion is not None and body.motion.file is not None:
        remedy = "write its poses as keyframes, or scale the file"
        raise SceneError.of("lengths in a file cannot be scaled", key=f"body.{body.name}.motion.file", remedy=remedy)
    out = _table(body, factor, _linear, leave=("motion",) if body.motion is None else ())
    if body.mesh is not None:
        out = out.model_copy(update={"scale": times(body.scale, factor)})
    return out


def _rotary(spec: JointSpec) -> dict[str, bool]:
    return {one.name: one.rotary for one in joint_coordinates(spec)}


def _joint(joint: JointSpec, factor: float) -> JointSpec:
    if joint.parameters:
        message = "the units of parameters of user-defined types are unknown"
        raise SceneError.of(message, key=f"joint.{joint.name}.parameters", remedy="scale them in Python")
    rotary = _rotary(joint)
    single = _angular if all(rotary.values()) and rotary else _linear
    own = ("coordinate", "drive", "compliance", "damping", "stiffness", "rest")
    out = _table(joint, factor, single, leave=own)
    rows = [one.rotary for one in yielding(unplaced_joint(joint))]
    changes: dict[str, Any] = {
        "coordinate": {
            name: _coordinate(one, factor, rotary.get(name, False), f"joint.{joint.name}.coordinate.{name}")
            for name, one in joint.coordinate.items()
        },
        "drive": None if joint.drive is None else _drive(joint.drive, factor, all(rotary.values())),
    }
    turns = [False] * 3 + [True] * 3 if type_of(joint.type) == "bushing" else rows
    for key in given(joint, ("compliance", "stiffness", "damping")):
        changes[key] = _per_row(getattr(joint, key), factor, turns, JointSpec.model_fields[key].json_schema_extra["unit"])
    changes |= _law(joint, factor, WITH_LENGTHS, f"joint.{joint.name}")
    if joint.rest is not None:
        lengths = np.where(np.arange(6) < 3, factor, 1.0)
        changes["rest"] = tuple((np.broadcast_to(joint.rest, 6) * lengths).tolist())
    return out.model_copy(update=changes)


def _per_row(value: Any, factor: float, rotary: list[bool], unit: str) -> Any:
    """Gains of rows, one for all, a list, or a matrix, whose entries between a length and an angle have the mean power."""
    powers = np.array([_angular(unit) if one else _linear(unit) for one in rotary] or [_linear(unit)], dtype=float)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        rows = np.array(value) * factor ** (0.5 * (powers[:, None] + powers[None, :]))
        return tuple(map(tuple, rows.tolist()))
    if not isinstance(value, tuple):
        if (powers == powers[0]).all():
            return value * factor ** powers[0]
        value = (value,) * len(powers)
    return tuple((np.array(value) * factor ** powers[: len(value)]).tolist())


def _coordinate(table: CoordinateSpec, factor: float, rotary: bool, where: str) -> CoordinateSpec:
    out = _table(table, factor, _angular if rotary else _linear, leave=("drive", "limit_strength"))
    changes: dict[str, Any] = {}
    if table.limit == "cubic":
        # s of s (v / width)^3 is an energy times the square of the time, whatever the coordinate is
        changes["limit_strength"] = table.limit_strength * factor**2
    changes |= _law(table, factor, () if rotary else ("q", "rate"), where)
    if table.drive is not None:
        changes["drive"] = _drive(table.drive, factor, rotary)
    return out.model_copy(update=changes)


def _law(table: CoordinateSpec | JointSpec, factor: float, lengths: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the scaled force of a function of these lengths; a torque of an angle, without lengths, does not change."""
    if table.force_function is not None:
        remedy = "write it as force_formula"
        raise SceneError.of("the units of a function are unknown", key=f"{where}.force_function", remedy=remedy)
    if table.force_formula is None or not lengths:
        return {}
    formula = re.sub(rf"\b({'|'.join(lengths)})\b", rf"(\1 / {factor!r})", table.force_formula)
    return {"force_formula": times(formula, factor)}


def _drive(drive: DriveSpec, factor: float, rotary: bool) -> DriveSpec:
    out = _table(drive, factor, _angular if rotary else _linear, leave=("target",))
    effort, value = (2, 0) if rotary else (1, 1)
    power = effort if drive.mode == "force" else value
    return out.model_copy(update={"target": times(drive.target, factor**power)}) if power else out


def _coupling(coupling: CouplingSpec, factor: float, rotary: dict[str, dict[str, bool]]) -> CouplingSpec:
    to = 0 if _turns(coupling.coordinate, rotary) else 1
    out = _table(coupling, factor, _linear if to else _angular, leave=("terms",))
    changes: dict[str, Any] = {"terms": [_term(one, factor, to, rotary) for one in coupling.terms]}
    if coupling.variables:
        lengths = [name for name, one in coupling.variables.items() if not _turns(one, rotary)]
        if coupling.function is not None and lengths:
            remedy = "write it as a formula"
            raise SceneError.of("the units of a function are unknown", key=f"coupling.{coupling.name}.function", remedy=remedy)
        formula = coupling.formula
        for name in lengths:
            formula = re.sub(rf"\b{re.escape(name)}\b", f"({name} / {factor!r})", formula)
        changes |= {"formula": formula, "scale": coupling.scale * factor**to}
    return out.model_copy(update=changes)


def _term(term: CouplingTermSpec, factor: float, to: int, rotary: dict[str, dict[str, bool]]) -> CouplingTermSpec:
    of = 0 if _turns(term.coordinate, rotary) else 1
    changes: dict[str, Any] = {}
    if term.table is not None:
        changes["table"] = tuple((q * factor**of, f * factor**to) for q, f in term.table)
    elif term.polynomial is not None:
        changes["polynomial"] = tuple(c * factor ** (to - k * of) for k, c in enumerate(term.polynomial))
    else:
        changes["factor"] = (1.0 if term.factor is None else term.factor) * factor ** (to - of)
    return term.model_copy(update=changes)


def _turns(name: str, rotary: dict[str, dict[str, bool]]) -> bool:
    """Return whether a coordinate such as "wheel.theta" is an angle."""
    joint, _, coordinate = name.rpartition(".")
    if name in rotary:
        joint, coordinate = name, next(iter(rotary[name]), "")
    return rotary.get(joint, {}).get(coordinate, False)
