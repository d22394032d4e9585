"""Settings of joints and couplings from the keys of a scene: coordinates, parameters of types, compliance of rows, references."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from abd.joint_model import CoordinateSettings, Coupling, CouplingTerm, Drive, Joint
from abd.joints.coordinates.configurations import transform
from abd.joints.measures.measures import Measure
from abd.joints.rows.build import build_system
from abd.joints.rows.measured_rows import FUNCTIONS, evaluate
from abd.joints.rows.sizes import critical_damping, per_row
from abd.joints.rows.table import values as measured_values
from abd.joints.types import TYPES
from abd.joints.types.spring import LAWS
from abd.model import WORLD, Model
from abd.scene.schema.fields import DEGREES, given, given_key, in_radians, time_function
from abd.scene.schema.formula import NamedFormula
from abd.scene.schema.joint_schema import (
    WORLD_NAME,
    CoordinateKeys,
    CoordinateSpec,
    CouplingSpec,
    CouplingTermSpec,
    DriveSpec,
    JointParameters,
    JointSpec,
)
from abd.scene.schema.joint_types import LENGTHS, VALUES, type_named, type_of

SETTINGS = {one.name for one in fields(CoordinateSettings)}
INFINITE = (-math.inf, math.inf)
SAME_VALUE = 1e-6
"""Largest difference of equal coordinates [m or rad]."""


def coordinate_tables(spec: JointSpec, names: list[str]) -> dict[str, CoordinateSpec]:
    """Return the tables of a joint's coordinates by name, with the keys of the joint for a single one and the default ranges of
    its type."""
    tables = dict(spec.coordinate)
    short = {key: getattr(spec, key) for key in given(spec, CoordinateKeys.model_fields)}
    if short and len(names) == 1:
        own = tables.get(names[0], CoordinateSpec())
        tables[names[0]] = own.model_copy(update=short)
    for name, ends in TYPES[type_of(spec.type)].RANGES.items():
        own = tables.get(name, CoordinateSpec())
        if own.range is None and own.range_deg is None:
            tables[name] = own.model_copy(update={"range": tuple(map(float, ends))})
    return tables


def key_of(spec: JointSpec, name: str, key: str) -> str:
    """Return the path of a key of a coordinate: in the joint itself, or in the table of the coordinate."""
    if given(spec, (own := given_key(spec, key),)):
        return own
    table = spec.coordinate.get(name, CoordinateSpec())  # a type may have a range of its own
    return f"coordinate.{name}.{given_key(table, key)}"


def initial_values(tables: dict[str, CoordinateSpec]) -> dict[str, float]:
    """Return the given initial values [m or rad] of coordinates."""
    values = {name: in_radians(table, "initial") for name, table in tables.items()}
    return {name: value for name, value in values.items() if value is not None}


def coordinate_settings(name: str, spec: CoordinateSpec, initial: float, place: str) -> CoordinateSettings:
    """Return the settings of the coordinate of the table at `place`, with the value `initial` [m or rad] at t = 0.

    A barrier at the initial value is moved by `SAME_VALUE`, so that the coordinate has a gap.
    """
    lower, upper = in_radians(spec, "range") or INFINITE
    if spec.limit == "barrier":
        lower = initial - SAME_VALUE if abs(initial - lower) <= SAME_VALUE else lower
        upper = initial + SAME_VALUE if abs(initial - upper) <= SAME_VALUE else upper
    own = {key: in_radians(spec, key) for key in CoordinateSpec.model_fields if key in SETTINGS}
    drive = None if spec.drive is None else _drive(spec.drive, f"{place}.drive")
    own |= {"initial": initial, "rest": own["rest"] or 0.0, "drive": drive}
    own |= {key: own[key] or math.inf for key in ("velocity_limit", "effort_limit")}
    return CoordinateSettings(name, lower=lower, upper=upper, law=law_of(spec, VALUES, place), **own)


def law_of(
    spec: CoordinateSpec | JointSpec, names: tuple[str, ...], place: str
) -> Callable[[Sequence[float]], float] | None:
    """Return the force formula or function of these variables in the table at `place`; None without one."""
    if spec.force_formula is not None:
        return NamedFormula(spec.force_formula, names, f"{place}.force_formula")
    return None if spec.force_function is None else FUNCTIONS[spec.force_function]


def _drive(spec: DriveSpec, place: str) -> Drive:
    own = {key: getattr(spec, key) for key in ("mode", "stiffness", "damping", "uid", "strength_ratio")}
    target, rate = time_function(spec, "target", place), time_function(spec, "rate", place)
    return Drive(**own, target=target, rate=rate, effort=spec.effort or math.inf)


SHARED = ("stiffness", "damping")
"""Parameters of springs and bushings with the keys of constraint rows of other types."""
PARAMETERS = tuple(key for key in JointParameters.model_fields if not key.endswith(DEGREES)) + SHARED


def parameters(spec: JointSpec) -> dict[str, object]:
    """Return the given parameters of the joint, angles in radians."""
    taken = type_named(spec.type).keys
    values = {key: in_radians(spec, key) for key in PARAMETERS if key in taken}
    if set(LAWS) <= set(taken):
        values |= {"law": law_of(spec, LENGTHS, f"joint.{spec.name}"), **dict.fromkeys(LAWS)}
    return {key: value for key, value in values.items() if value is not None} | spec.parameters


def unplaced_joint(spec: JointSpec) -> Joint:
    """Return the joint with both frames at the origin, on which its rows and coordinates do not depend."""
    name, parent = type_of(spec.type), WORLD if spec.parent == WORLD_NAME else 1
    return Joint(
        spec.name,
        name,
        TYPES[name].UID,
        parent,
        child=0,
        parent_frame=np.eye(4),
        child_frame=np.eye(4),
        length=1.0,
        enforcement=spec.enforcement,
        parameters=parameters(spec),
    )


def joint_coordinates(spec: JointSpec) -> list[Measure]:
    """Return the measures of the joint's coordinates, in order."""
    joint = unplaced_joint(spec)
    return TYPES[joint.type].coordinates(joint)


def start_transform(joint: Joint, values: dict[str, float]) -> np.ndarray:
    """Return T_CD (4, 4) at these values of coordinates, 0 for others; the identity if the coordinates do not determine it."""
    names = [measure.name for measure in TYPES[joint.type].coordinates(joint)]
    start = transform(joint, np.array([values.get(name, 0.0) for name in names]))
    return np.eye(4) if start is None else start


def row_compliance(
    spec: JointSpec, rows: list[Measure], masses: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compliance [m/N, rad/(N m)] and damping [N s/m, N m s/rad] of every row.

    One number applies to all rows, a list to the first ones; rows beyond it have no compliance and are exact.
    `linear_compliance` and `rotary_compliance` count for all rows of that kind. Critical damping is
    ``d = 2 zeta sqrt(m / c)``, with the row's reduced mass; linear_compliance and rotary_compliance bring it along with
    zeta = 1, as ArtiSynth's do, unless a damping is given. ArtiSynth takes the total or the mean mass of the two ends; the one
    at which they return without overshoot is the reduced mass.

    Args:
        spec: a joint that has passed `abd.scene.checks.joint_checks`, with ``enforcement = "compliant"``.
        rows: those that compliances count (`abd.joints.rows.build.yielding`).
        masses: reduced mass of the two ends for each row [kg], of angles their reduced inertia about the row's axis [kg m^2].
    """
    compliance = per_row(spec.compliance or 0.0, len(rows))
    if spec.stiffness is not None:
        stiffness = per_row(spec.stiffness, len(rows))
        compliance = np.divide(1.0, stiffness, out=np.zeros(len(rows)), where=stiffness > 0.0)
    by_kind = {False: spec.linear_compliance, True: spec.rotary_compliance}
    is_uniform = any(value is not None for value in by_kind.values())
    if is_uniform:
        compliance = np.array([by_kind[row.rotary] or 0.0 for row in rows])
    zeta = float(is_uniform if spec.critical_damping is None else spec.critical_damping)
    damping = critical_damping(masses, compliance, zeta) if spec.damping is None else per_row(spec.damping, len(rows))
    return tuple(compliance.tolist()), tuple(damping.tolist())


SAME_KEYS = ("scale", "enforcement", "strength_ratio", "compliance", "damping", "active")
"""Keys of a coupling that are copied from the scene."""
CLOSED = 1e-6
"""Largest residual [m or rad] of a closed coupling."""


def split_reference(text: str, joints: dict[str, list[str]]) -> tuple[str, str | None]:
    """Return joint and coordinate of a reference such as "wheel.theta".

    The name of a joint, which may contain dots, refers to its single coordinate, None if it has more or fewer.
    """
    if text in joints:
        return text, joints[text][0] if len(joints[text]) == 1 else None
    joint, _, coordinate = text.rpartition(".")
    return (joint, coordinate) if joint else (text, None)


def compile_coupling(spec: CouplingSpec, joints: dict[str, list[str]], index: dict[str, int]) -> Coupling:
    """Resolve one coupling that has passed `abd.scene.checks.coordinate_checks`.

    Args:
        joints: names of the coordinates of every joint; index: numbers of the joints.
    """
    joint, coordinate = split_reference(spec.coordinate, joints)
    function = None if spec.function is None else FUNCTIONS[spec.function]
    if spec.formula is not None:
        function = NamedFormula(spec.formula, tuple(spec.variables), f"coupling.{spec.name}.formula")
    terms = spec.terms or [CouplingTermSpec(coordinate=text) for text in spec.variables.values()]
    return Coupling(
        name=spec.name,
        joint=index[joint],
        coordinate=coordinate,
        terms=tuple(_term(term, joints, index) for term in terms),
        function=function,
        **{key: getattr(spec, key) for key in SAME_KEYS},
    )


def start_notes(model: Model) -> list[str]:
    """Return a note for every active coupling with a residual at t = 0; the first steps remove it."""
    if not model.couplings:
        return []
    system = build_system(model)
    measured = measured_values(system.table, model.bodies.q, system.initial)
    residual, _ = evaluate(system.rows, measured)
    notes = []
    for row in np.flatnonzero(system.row_laws.active & (system.row_laws.coupling >= 0)):
        coupling = model.couplings[system.row_laws.coupling[row]]
        if abs(residual[row]) > CLOSED:
            unit = "rad" if system.row_laws.rotary[row] else "m"
            notes.append(f"coupling '{coupling.name}' has an initial residual of {residual[row]:.4g} {unit}")
    return notes


def _term(spec: CouplingTermSpec, joints: dict[str, list[str]], index: dict[str, int]) -> CouplingTerm:
    joint, coordinate = split_reference(spec.coordinate, joints)
    table = None if spec.table is None else np.array(spec.table)
    polynomial = (0.0, 1.0 if spec.factor is None else spec.factor) if spec.polynomial is None else spec.polynomial
    return CouplingTerm(index[joint], coordinate, polynomial, table)
