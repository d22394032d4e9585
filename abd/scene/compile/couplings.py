"""Compilation of couplings from names of joints and coordinates to `abd.joint_model.Coupling`."""

from __future__ import annotations

import numpy as np

from abd.joint_model import Coupling, CouplingTerm
from abd.joints.rows.build import build_system
from abd.joints.rows.measured_rows import FUNCTIONS, evaluate
from abd.joints.rows.table import values
from abd.model import Model
from abd.scene.schema.formula import NamedFormula
from abd.scene.schema.joint_schema import CouplingSpec, CouplingTermSpec

SAME = ("scale", "enforcement", "strength_ratio", "compliance", "damping", "active")
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
    """Resolve one coupling that has passed `abd.scene.checks.coupling_checks`.

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
        **{key: getattr(spec, key) for key in SAME},
    )


def start_notes(model: Model) -> list[str]:
    """Return a note for every active coupling with a residual at t = 0; the first steps remove it."""
    if not model.couplings:
        return []
    system = build_system(model)
    measured = values(system.table, model.bodies.q, system.initial)
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
