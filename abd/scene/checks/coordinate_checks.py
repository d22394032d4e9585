"""Checks of the coordinates of a joint."""

from __future__ import annotations

import math
from collections.abc import Iterator

from abd.joints.measures.measures import Measure
from abd.joints.rows.measured_rows import FUNCTIONS
from abd.joints.types.spring import LAWS
from abd.scene.compile.joint_settings import SAME_VALUE, coordinate_tables, joint_coordinates
from abd.scene.schema.fields import (
    DEGREES,
    Spec,
    at_most_one,
    given,
    given_key,
    in_radians,
    keys_with_degrees,
    one_unit,
    without_effect,
)
from abd.scene.schema.findings import Finding, did_you_mean, enumerated, shown, within
from abd.scene.schema.formula import FormulaError, NamedFormula
from abd.scene.schema.joint_schema import CoordinateKeys, CoordinateSpec, DriveSpec, JointSpec
from abd.scene.schema.joint_types import VALUES

DRIVE_UIDS = {
    # published number: modes, and whether it drives an angle
    19: (("position", "brake"), True),
    21: (("position", "brake"), False),
    667: (("force",), False),
    668: (("force",), True),
}
LIMIT_KEYS = {
    # kind of limit: keys that have an effect with it
    "barrier": ("limit_distance", "limit_distance_deg", "limit_damping", "limit_restitution"),
    "compliant": ("limit_compliance", "limit_damping"),
    "cubic": ("limit_strength",),
}
DRIVE_KEYS = {
    # mode: keys that have an effect with it
    "position": ("target", "target_deg", "rate", "rate_deg", "effort"),
    "velocity": ("target", "target_deg", "damping", "effort"),
    "pd": ("target", "target_deg", "rate", "rate_deg", "stiffness", "damping", "effort"),
    "force": ("target", "effort"),
    "brake": ("effort",),
}


def check_coordinates(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings with paths relative to the joint, whose type and parameters are valid."""
    short = given(joint, CoordinateKeys.model_fields)
    if not short and not joint.coordinate:
        return
    measures = {measure.name: measure for measure in joint_coordinates(joint)}
    names = list(measures)
    if short and len(names) != 1:
        has = f"has the coordinates {enumerated(names, 'and')}" if names else "has no coordinates"
        remedy = f"move it to [joint.coordinate.{names[0]}]" if names else "remove it"
        yield Finding((short[0],), f"a {joint.type} joint {has}", getattr(joint, short[0]), remedy)
    for name, table in joint.coordinate.items():
        if name not in measures:
            remedy = did_you_mean(name, names) or (f"it has {enumerated(names, 'and')}" if names else "remove the table")
            yield Finding(("coordinate", name), f"a {joint.type} joint has no coordinate '{name}'", name, remedy)
        elif short and len(names) == 1:
            for key in given(table, short):
                message = f"is also given in [joint.coordinate.{name}]"
                yield Finding((key,), message, getattr(joint, key), "keep one of them")
    for name, table in coordinate_tables(joint, names).items():
        if name in measures:
            for finding in _check_coordinate(measures[name], table):
                yield from [finding] if finding.path[0] in short else within([finding], "coordinate", name)


def check_law(table: CoordinateSpec | JointSpec, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield findings about a force formula or function of these variables."""
    yield from at_most_one(table, LAWS)
    yield from check_function(table, "force_formula", "force_function", names)


def check_function(table: Spec, formula: str, function: str, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield findings about the two keys of a table for a formula of these variables, or for the name of a function."""
    text, name = getattr(table, formula), getattr(table, function)
    if text is not None:
        try:
            NamedFormula(text, names)
        except FormulaError as error:
            yield Finding((formula,), f"cannot be read: {error.located}", text, error.remedy)
    elif name is not None and name not in FUNCTIONS:
        remedy = did_you_mean(name, FUNCTIONS) or "define it first: abd.coupling_function(name, f)"
        yield Finding((function,), f"there is no function '{name}'", name, remedy)


def _check_coordinate(measure: Measure, table: CoordinateSpec) -> Iterator[Finding]:
    yield from _check_units(measure, table)
    yield from _check_range(measure, table)
    if not table.locked:
        yield from without_effect(table, ("lock_value", "lock_value_deg"), "without locked = true")
    elif table.drive is not None:
        yield Finding(("drive",), "a locked coordinate cannot have a drive", table.drive.mode, "remove locked or the drive")
    if not table.stiffness:
        yield from without_effect(table, ("rest", "rest_deg"), "without stiffness")
    yield from check_law(table, VALUES)
    if table.drive is not None:
        yield from within(_check_drive(measure, table.drive), "drive")


def _check_units(measure: Measure, table: Spec) -> Iterator[Finding]:
    """Yield findings about angles in two units and lengths in degrees."""
    yield from one_unit(table)
    keys = [] if measure.rotary else [f"{key}{DEGREES}" for key in keys_with_degrees(type(table))]
    for key in given(table, keys):
        yield Finding((key,), f"{measure.name} is a length", getattr(table, key), f"use {key.removesuffix(DEGREES)} [m]")


def _check_range(measure: Measure, table: CoordinateSpec) -> Iterator[Finding]:
    key, ends = given_key(table, "range"), in_radians(table, "range")
    keys = {key for keys in LIMIT_KEYS.values() for key in keys}
    if ends is None:
        yield from without_effect(table, sorted(keys), "on a coordinate without range")
        yield from without_effect(table, ("limit",), "without range", "give range, or remove it")
        return
    yield from without_effect(table, sorted(keys - {*LIMIT_KEYS[table.limit]}), f"on a {table.limit} limit")
    lower, upper = ends
    if lower >= upper:
        message = f"lower bound must be below upper bound: {shown(getattr(table, key))}"
        yield Finding((key,), message, getattr(table, key), "write [lower, upper]")
        return
    if "limit_compliance" in LIMIT_KEYS[table.limit] and not table.limit_compliance:
        message = f"a {table.limit} limit needs a compliance"
        yield Finding(("limit",), message, table.limit, "give limit_compliance")
    if table.limit_damping < 0.0 and table.limit != "compliant":
        message = "a damping ratio (negative) needs a compliant limit"
        yield Finding(("limit_damping",), message, table.limit_damping, 'use limit = "compliant", or a positive number')
    if table.limit == "cubic" and not math.isfinite(upper - lower):
        yield Finding((key,), "a cubic limit needs two finite bounds", getattr(table, key), "give two numbers")
    if table.limit == "barrier":
        initial = in_radians(table, "initial")
        if initial is not None and not lower - SAME_VALUE <= initial <= upper + SAME_VALUE:
            place = given_key(table, "initial")
            message = f"{measure.name} must start inside its range {shown(getattr(table, key))}"
            yield Finding((place,), message, getattr(table, place), 'choose a value inside, or limit = "compliant"')
    held = in_radians(table, "lock_value")
    if held is not None and not lower <= held <= upper:
        place = given_key(table, "lock_value")
        message = f"{measure.name} must be locked inside its range {shown(getattr(table, key))}"
        yield Finding((place,), message, getattr(table, place), "choose a value inside, or remove the range")


def _check_uid(measure: Measure, drive: DriveSpec) -> Iterator[Finding]:
    if drive.uid not in DRIVE_UIDS:
        yield Finding(
            ("uid",), f"there is no drive with uid {drive.uid}", drive.uid, "use 19, 21, 667 or 668, or remove it"
        )
        return
    modes, rotary = DRIVE_UIDS[drive.uid]
    if drive.mode not in modes:
        message = f"uid {drive.uid} is a drive of mode {' or '.join(modes)}, not {drive.mode}"
        yield Finding(("uid",), message, drive.uid, "remove it, or change the mode")
    elif measure.rotary != rotary:
        right = [uid for uid, of in DRIVE_UIDS.items() if drive.mode in of[0] and of[1] == measure.rotary]
        kind = "angles" if measure.rotary else "lengths"
        yield Finding(
            ("uid",), f"uid {drive.uid} does not drive {measure.name}", drive.uid, f"use {right[0]} for {kind}"
        )


def _check_drive(measure: Measure, drive: DriveSpec) -> Iterator[Finding]:
    yield from _check_units(measure, drive)
    known = {key for keys in DRIVE_KEYS.values() for key in keys}
    yield from without_effect(drive, sorted(known - {*DRIVE_KEYS[drive.mode]}), f"on a drive of mode {drive.mode}")
    if drive.mode == "pd" and not drive.stiffness and not drive.damping:
        message = "a pd drive has no gains"
        yield Finding(("mode",), message, drive.mode, "give stiffness, damping or both")
    if drive.uid:
        yield from _check_uid(measure, drive)
    if drive.uid not in (19, 21):
        where = "on drives without uid 19 or 21; their strength ratio is that of the joint"
        yield from without_effect(drive, ("strength_ratio",), where, "remove it, or give uid = 19 or 21")
