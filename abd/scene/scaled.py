"""Scaled scenes: every number is multiplied by the power of the factor that its unit in the schema has.

Masses and times do not change, nor does gravity that the scene does not set. Forces scale with the factor, torques and energies
with its square, pressures with its inverse.
A number "m or rad" scales if its coordinate or row is a length, and does not change if it is an angle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
    angles = [{one.name: one.rotary for one in joint_coordinates(joint)} for joint in spec.joint]
    # of coordinates such as "wheel.theta"; the name of a joint is that of its first coordinate
    of = {f"{joint.name}.{name}": one for joint, own in zip(spec.joint, angles) for name, one in own.items()}
    of |= {joint.name: next(iter(own.values()), False) for joint, own in zip(spec.joint, angles)}
    default = () if "gravity" in spec.model_fields_set else ("gravity",)
    out = _table(spec, factor, False, ("body", "joint", "coupling", *default))
    out.body = [_body(one, factor) for one in spec.body]
    out.joint = [_joint(one, factor, own) for one, own in zip(spec.joint, angles)]
    out.coupling = [_coupling(one, factor, of) for one in spec.coupling]
    return out


def _power(unit: str, rotary: bool) -> int:
    """Return the power of a unit, which may be "m or rad"."""
    return POWERS[unit.split(" or ")[-1 if rotary else 0]]


def _table(spec: Spec, factor: float, rotary: bool = False, leave: tuple[str, ...] = (), **changes: Any) -> Any:
    """Return a table with its numbers multiplied, including inner tables; other values of some keys are given."""
    for key, info in type(spec).model_fields.items():
        value, unit = getattr(spec, key), (info.json_schema_extra or {}).get("unit", "")
        if value is None or key in leave or key in changes:
            continue
        if isinstance(value, Spec):
            changes[key] = _table(value, factor, rotary)
        elif isinstance(value, list) and value and isinstance(value[0], Spec):
            changes[key] = [_table(one, factor, rotary) for one in value]
        elif unit and (power := _power(unit, rotary)) and (product := times(value, factor**power)) != value:
            changes[key] = product
    return spec.model_copy(update=changes)


def times(value: Any, factor: float) -> Any:
    """Return nested numbers and formulas multiplied by a factor; other texts do not change."""
    if isinstance(value, (list, tuple)):
        return type(value)(times(one, factor) for one in value)
    if isinstance(value, str):
        return value if value == "auto" else f"{factor!r} * ({value})"
    return value * factor


def _unknown(what: str, key: str, remedy: str) -> SceneError:
    return SceneError.of(f"the units of {what} are unknown", key=key, remedy=remedy)


def _body(body: BodySpec, factor: float) -> BodySpec:
    if body.motion is not None and body.motion.file is not None:
        remedy = "write its poses as keyframes, or scale the file"
        raise SceneError.of("lengths in a file cannot be scaled", key=f"body.{body.name}.motion.file", remedy=remedy)
    return _table(body, factor, **({} if body.mesh is None else {"scale": times(body.scale, factor)}))


def _joint(joint: JointSpec, factor: float, rotary: dict[str, bool]) -> JointSpec:
    """Return a joint; `rotary`: whether its coordinates are angles."""
    place = f"joint.{joint.name}"
    if joint.parameters:
        raise _unknown("parameters of user-defined types", f"{place}.parameters", "scale them in Python")
    changes = _law(joint, factor, WITH_LENGTHS, place)
    changes["coordinate"] = {
        name: _coordinate(one, factor, rotary.get(name, False), f"{place}.coordinate.{name}")
        for name, one in joint.coordinate.items()
    }
    if joint.drive is not None:
        changes["drive"] = _drive(joint.drive, factor, all(rotary.values()))
    rows = [one.rotary for one in yielding(unplaced_joint(joint))]
    turns = [False] * 3 + [True] * 3 if type_of(joint.type) == "bushing" else rows
    for key in given(joint, ("compliance", "stiffness", "damping")):
        changes[key] = _per_row(getattr(joint, key), factor, turns, JointSpec.model_fields[key].json_schema_extra["unit"])
    if joint.rest is not None:
        lengths = np.where(np.arange(6) < 3, factor, 1.0)
        changes["rest"] = tuple((np.broadcast_to(joint.rest, 6) * lengths).tolist())
    return _table(joint, factor, bool(rotary) and all(rotary.values()), **changes)


def _per_row(value: Any, factor: float, rotary: list[bool], unit: str) -> Any:
    """Gains of rows, one for all, a list, or a matrix, whose entries between a length and an angle have the mean power."""
    powers = np.array([_power(unit, one) for one in rotary or [False]], dtype=float)
    if np.ndim(value) == 2:
        rows = np.array(value) * factor ** (0.5 * (powers[:, None] + powers[None, :]))
        return tuple(map(tuple, rows.tolist()))
    if np.ndim(value) == 0 and (powers == powers[0]).all():
        return value * factor ** powers[0]
    value = np.broadcast_to(value, len(powers)) if np.ndim(value) == 0 else np.array(value)
    return tuple((value * factor ** powers[: len(value)]).tolist())


def _coordinate(table: CoordinateSpec, factor: float, rotary: bool, place: str) -> CoordinateSpec:
    changes = _law(table, factor, () if rotary else ("q", "rate"), place)
    if table.limit == "cubic":
        # s of s (v / width)^3 is an energy times the square of the time, whatever the coordinate is
        changes["limit_strength"] = table.limit_strength * factor**2
    if table.drive is not None:
        changes["drive"] = _drive(table.drive, factor, rotary)
    return _table(table, factor, rotary, ("limit_strength",), **changes)


def _law(table: CoordinateSpec | JointSpec, factor: float, lengths: tuple[str, ...], place: str) -> dict[str, Any]:
    """Return the scaled force of a function of these lengths; a torque of an angle, without lengths, does not change."""
    if table.force_function is not None:
        raise _unknown("a function", f"{place}.force_function", "write it as force_formula")
    if table.force_formula is None or not lengths:
        return {}
    return {"force_formula": times(_with_lengths(table.force_formula, lengths, factor), factor)}


def _with_lengths(formula: str, lengths: Iterable[str], factor: float) -> str:
    """Return a formula of variables of which some are scaled lengths."""
    return re.sub(rf"\b({'|'.join(map(re.escape, lengths))})\b", rf"(\1 / {factor!r})", formula) if lengths else formula


def _drive(drive: DriveSpec, factor: float, rotary: bool) -> DriveSpec:
    power = (2 if rotary else 1) if drive.mode == "force" else (0 if rotary else 1)
    return _table(drive, factor, rotary, ("target",), **({"target": times(drive.target, factor**power)} if power else {}))


def _coupling(coupling: CouplingSpec, factor: float, of: dict[str, bool]) -> CouplingSpec:
    """Return a coupling; `of`: whether coordinates are angles."""
    to = 0 if of.get(coupling.coordinate, False) else 1
    changes: dict[str, Any] = {"terms": [_term(one, factor, to, of) for one in coupling.terms]}
    if coupling.variables:
        lengths = [name for name, one in coupling.variables.items() if not of.get(one, False)]
        if coupling.function is not None and lengths:
            raise _unknown("a function", f"coupling.{coupling.name}.function", "write it as a formula")
        if coupling.formula is not None:
            changes["formula"] = _with_lengths(coupling.formula, lengths, factor)
        changes["scale"] = coupling.scale * factor**to
    return _table(coupling, factor, not to, **changes)


def _term(term: CouplingTermSpec, factor: float, to: int, of: dict[str, bool]) -> CouplingTermSpec:
    power = 0 if of.get(term.coordinate, False) else 1
    if term.table is not None:
        return term.model_copy(update={"table": tuple((q * factor**power, f * factor**to) for q, f in term.table)})
    if term.polynomial is not None:
        polynomial = tuple(c * factor ** (to - k * power) for k, c in enumerate(term.polynomial))
        return term.model_copy(update={"polynomial": polynomial})
    return term.model_copy(update={"factor": (1.0 if term.factor is None else term.factor) * factor ** (to - power)})
