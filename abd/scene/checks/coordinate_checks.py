"""Checks of the coordinates of a joint, and of couplings between coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from keyword import iskeyword

from abd.joints.measures.measures import Measure
from abd.joints.rows.measured_rows import COEFFICIENTS, FUNCTIONS
from abd.joints.types.spring import LAWS
from abd.scene.compile.joint_settings import SAME_VALUE, coordinate_tables, joint_coordinates, split_reference
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
from abd.scene.schema.formula import WORDS, FormulaError, NamedFormula
from abd.scene.schema.joint_schema import (
    CoordinateKeys,
    CoordinateSpec,
    CouplingSpec,
    CouplingTermSpec,
    DriveSpec,
    JointSpec,
)
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
Coordinates = dict[str, list[str] | None]
"""Names of the coordinates of every joint; None for a joint with an invalid table."""


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


def check_coupling(coupling: CouplingSpec) -> Iterator[Finding]:
    """Yield findings that need no other table, with paths relative to the coupling."""
    yield from _check_function(coupling)
    for position, term in enumerate(coupling.terms):
        yield from within(_check_term(term), "terms", position)
    if coupling.scale == 0.0:
        yield Finding(("scale",), "is zero, so that the coordinate is locked", 0.0, "use locked = true")
    if coupling.enforcement != "compliant":
        where, remedy = f"on a coupling with enforcement = {coupling.enforcement}", 'set enforcement = "compliant", or remove it'
        yield from without_effect(coupling, ("compliance", "damping"), where, remedy)


def check_coupled(coupling: CouplingSpec, joints: Coordinates) -> Iterator[Finding]:
    """Yield findings about the coordinates of a coupling, with paths relative to it."""
    places = [(("coordinate",), coupling.coordinate)]
    places += [(("terms", k, "coordinate"), term.coordinate) for k, term in enumerate(coupling.terms)]
    places += [(("variables", name), text) for name, text in coupling.variables.items()]
    known = {name: names or [] for name, names in joints.items()}
    for path, text in places:
        yield from _check_reference(path, text, split_reference(text, known), joints)
        if path != ("coordinate",) and split_reference(text, known) == split_reference(coupling.coordinate, known):
            yield Finding(path, f"'{text}' depends on itself", text, "couple two different coordinates")


def _check_function(coupling: CouplingSpec) -> Iterator[Finding]:
    """Check that f has one form: terms, or a formula or function of variables."""
    forms = given(coupling, ("terms", "formula", "function"))
    yield from at_most_one(coupling, ("terms", "formula", "function"), "a coupling has one form of f")
    if not forms:
        yield Finding((), "has no terms", remedy="give terms, or a formula or function of variables")
    elif forms == ["terms"]:
        yield from without_effect(coupling, ("variables",), "with terms", "remove them, or give a formula")
    elif len(forms) == 1 and not coupling.variables:
        (form,) = forms
        yield Finding((form,), "has no variables", getattr(coupling, form), "give variables = { a = 'joint.theta' }")
    elif len(forms) == 1:
        for name in coupling.variables if coupling.formula is not None else ():
            if not name.isidentifier() or iskeyword(name) or name in WORDS:
                yield Finding(("variables", name), "is not a valid name of a variable", name, "use letters, such as a or q1")
        yield from check_function(coupling, "formula", "function", tuple(coupling.variables))


def _check_term(term: CouplingTermSpec) -> Iterator[Finding]:
    yield from at_most_one(term, ("factor", "polynomial", "table"), "a coupling has one form of f")
    if term.polynomial is not None and not any(term.polynomial[1:]):
        yield Finding(("polynomial",), "is constant", term.polynomial, "[0, 2] is f = 2 q")
    elif term.polynomial is not None and len(term.polynomial) > COEFFICIENTS:
        message = f"has {len(term.polynomial)} coefficients, more than {COEFFICIENTS}"
        yield Finding(("polynomial",), message, term.polynomial, "use a table of points")
    if term.factor == 0.0:
        yield Finding(("factor",), "is zero: f does not depend on the coordinate", 0.0, "remove the term")
    if term.table is not None and any(b[0] <= a[0] for a, b in pairwise(term.table)):
        yield Finding(("table",), "q must increase from point to point", term.table, "sort the points by q")


def _check_reference(path: tuple, text: str, reference: tuple[str, str | None], joints: Coordinates) -> Iterator[Finding]:
    joint, coordinate = reference
    names = joints.get(joint, [])
    if joint not in joints:
        remedy = did_you_mean(joint, joints) or "name a joint and its coordinate, such as 'wheel.theta'"
        yield Finding(path, f"there is no joint '{joint}'", text, remedy)
    elif names is None:
        return
    elif not names:
        yield Finding(path, f"joint '{joint}' has no coordinates", text, "use a joint with coordinates")
    elif coordinate is None:
        yield Finding(path, f"joint '{joint}' has the coordinates {enumerated(names, 'and')}", text, "give one of them")
    elif coordinate not in names:
        remedy = did_you_mean(coordinate, names) or f"it has {enumerated(names, 'and')}"
        yield Finding(path, f"joint '{joint}' has no coordinate '{coordinate}'", text, remedy)
