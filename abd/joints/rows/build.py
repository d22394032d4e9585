"""Construction of the `JointSystem` from the joints and couplings of a model.

Kernels: ``cuda_kernels/joints/row_memory.py`` sets the laws of a step from these rows, ``measured_rows.py`` adds their gradients
and blocks. `abd.joints.rows.system` and `abd.backends.reference.numpy_joints` are their definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from abd.joint_list import JointList
from abd.joint_model import CoordinateSettings, Coupling, Drive, Joint
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure
from abd.joints.rows.batches import batches
from abd.joints.rows.laws import Law, Role, RowLaws
from abd.joints.rows.measured_rows import ForceLaw, Term, collect, factor, terms_of
from abd.joints.rows.rows import compile_rows
from abd.joints.rows.sizes import EXACT_RATIO, LINEAR_SHARE, MEASURED_SHARE, joint_sizes, masses_and_scales
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import tabulate
from abd.joints.types import TYPES
from abd.model import Model

RANGE_SHARE = 0.05
"""Default activation distance of a barrier at the end of a range, as a fraction of the range.

The distance in the settings, or `LENGTH_SHARE` of the length of the joint, is an upper bound.
"""
LENGTH_SHARE = 0.01
"""Default activation distance of a barrier for lengths, as a fraction of the length of the joint."""
DRIVE_UIDS = {19: Law.SINE, 21: Law.QUADRATIC}
ROW = {
    "role": 0, "law": 0, "joint": 0, "coupling": -1, "rotary": False, "active": True, "exact": False,
    "mass_stiffness": 0.0, "stiffness": 0.0, "damping": 0.0, "effort": np.inf, "bound": 0.0, "sign": 1.0, "distance": 1.0,
    "target": 0.0, "rate": 0.0, "follows": False, "restitution": 0.0,
}  # fmt: skip
"""Columns of `RowLaws` with their defaults."""
FUNCTIONS = "target_of", "rate_of", "loads", "given"
"""Attributes that some rows have, of `RowLaws` and of `JointSystem`."""


def build_system(model: Model) -> JointSystem:
    """Joint system of a model."""
    masses, scales = masses_and_scales(model)
    builder = Builder(model, masses)
    for k in _with_measured_rows(builder.joints):
        joint = builder.joints[k]
        builder.add_constraints(k, joint)
        builder.add_forces(k, joint)
        for settings in joint.coordinates:
            builder.add_coordinate(k, joint, settings)
    for k, coupling in enumerate(model.couplings):
        builder.add_coupling(k, coupling)
    return builder.finish(scales)


class Along(NamedTuple):
    """Argument of a row: a sum of terms, the joint, a name, and whether it is in radians rather than metres."""

    terms: list[Term]
    joint: int
    name: str
    rotary: bool


class Builder:
    """Collects rows of joints and couplings.

    Args:
        masses: (j,) mass [kg] for the stiffness of the exact rows of every joint.
    """

    def __init__(self, model: Model, masses: np.ndarray):
        self.model, self.joints, self.masses = model, JointList.of(model.joints), masses
        self.entries: list[tuple[int, Measure]] = []
        self.initial: list[float] = []
        self.known: dict[tuple[int, str], int] = {}
        self.followers: dict[int, Callable[[np.ndarray], list[Measure]]] = {}
        self.rows: list[list[Term]] = []
        self.row_laws: list[dict] = []

    # rows of a joint ---------------------------------------------------------------------------------------------

    def add_constraints(self, k: int, joint: Joint) -> None:
        """Add the constraint rows and gaps of a joint's type."""
        kind, compliant = TYPES[joint.type], joint.enforcement == "compliant"
        if kind.FOLLOWS_POSE:
            self.followers[len(self.entries)] = partial(kind.at_pose, joint)
        yields = yielding(joint) if compliant else []
        for i, measure in enumerate(one for one in yields if not one.unilateral):
            self._compliant(self._along(k, measure), joint, i)
        names = [one.name for one in yields]
        for measure in _measured(joint):
            # a multiplier needs the value of a gap on both sides; one that may close is 0 on its free side
            of = replace(joint, enforcement="penalty") if measure.may_close else joint
            if measure.unilateral and measure.name in names:
                self._compliant(self._along(k, measure), of, names.index(measure.name), Role.GAP, Law.ONE_SIDED)
            elif measure.unilateral:
                self._gap(self._along(k, measure), of, measure)
            elif not compliant:
                self._stiff(self._along(k, measure), Role.CONSTRAINT)
        for one in kind.combined(joint):
            if one.holds:
                self._stiff(self._along_sum(k, one), Role.CONSTRAINT, target=one.rest)

    def add_forces(self, k: int, joint: Joint) -> None:
        """Add the springs, dampers, friction, rotors and forces of a joint's type."""
        for one in TYPES[joint.type].combined(joint):
            if one.holds:
                continue
            if one.at_pose is not None:
                self.followers[len(self.entries)] = lambda T, at_pose=one.at_pose: [at_pose(T)]
            along = self._along_sum(k, one)
            if one.law is not None:
                self.add(along, Role.FORCE, Law.GIVEN, given=ForceLaw(one.law))
            else:
                self._passive(along, one, is_spring=not (one.friction or one.armature))

    def _passive(
        self, along: Along, one: Combined | CoordinateSettings, is_spring: bool = False, load: float = 0.0
    ) -> None:
        """Add a spring with damper, friction, which may depend on the load of the joint, and a rotor."""
        if is_spring or one.stiffness > 0.0 or one.damping > 0.0:
            self.add(along, Role.SPRING, Law.QUADRATIC, stiffness=one.stiffness, damping=one.damping, target=one.rest)
        if one.friction > 0.0 or load > 0.0:
            loads = (one.friction, load) if load > 0.0 else None
            self.add(along, Role.FRICTION, Law.FRICTION, effort=one.friction, loads=loads)
        if one.armature > 0.0:
            self.add(along, Role.ARMATURE, Law.QUADRATIC, mass_stiffness=one.armature)

    def _compliant(self, along: Along, joint: Joint, i: int, role=Role.CONSTRAINT, law=Law.QUADRATIC) -> None:
        """Add a row with the i-th compliance and damping of its joint; stiff if the compliance is zero."""
        compliance, damping = (one[i] if i < len(one) else 0.0 for one in (joint.compliance, joint.damping))
        if compliance > 0.0:
            self.add(along, role, law, stiffness=1.0 / compliance, damping=damping)
        else:
            self._stiff(along, role, law, joint)

    def _gap(self, along: Along, joint: Joint, measure: Measure) -> None:
        """Add a gap.

        Limits of rotations are barriers like ranges, or compliant. Other gaps, such as ropes and planes, are one-sided
        rows with the stiffness of the joint.
        """
        compliance, damping = (joint.parameters.get(f"limit_{key}", 0.0) for key in ("compliance", "damping"))
        if measure.rotary and compliance:
            self.add(along, Role.GAP, Law.ONE_SIDED, stiffness=1.0 / compliance, damping=damping)
        elif measure.rotary and not measure.may_close:
            # the barrier must not reach the angle 0, where the gap is not differentiable
            width = np.min(joint.parameters.get(f"max_{measure.name}", np.inf))
            distance = default_distance(self.model, joint, True, width)
            self.add(along, Role.GAP, Law.BARRIER, mass_stiffness=_inertia(joint, True), distance=distance)
        else:
            self._stiff(along, Role.GAP, Law.ONE_SIDED, joint)

    # settings of a coordinate -----------------------------------------------------------------------------------

    def add_coordinate(self, k: int, joint: Joint, s: CoordinateSettings) -> None:
        """Add limits, lock, spring, friction, armature and drive of one coordinate."""
        along = self.coordinate(k, s.name)
        lower = s.lower if s.lower_end is None else s.lower_end
        upper = s.upper if s.upper_end is None else s.upper_end
        for role, bound, sign in ((Role.LOWER, lower, 1.0), (Role.UPPER, upper, -1.0)):
            if np.isfinite(bound):
                self._limit(along, joint, s, role, bound, sign)
        if s.locked:
            self._stiff(along, Role.LOCK, target=s.initial if s.lock_value is None else s.lock_value)
        self._passive(along, s, load=s.friction_load)
        if s.drive is not None:
            self._drive(along, joint, s, s.drive)
        if s.law is not None:
            self.add(along, Role.FORCE, Law.GIVEN, given=ForceLaw(s.law))
        if s.force is not None:
            self.add(along, Role.APPLIED, Law.LINEAR, target=s.force)

    def _limit(self, along: Along, joint: Joint, s: CoordinateSettings, role: Role, bound: float, sign: float) -> None:
        is_moving = (s.lower_end if role == Role.LOWER else s.upper_end) is not None
        bounces = s.limit == "barrier" and s.limit_restitution > 0.0
        common = {"bound": bound, "sign": sign, "damping": s.limit_damping, "follows": is_moving or bounces}
        width = s.upper - s.lower
        if s.limit == "compliant":
            self.add(along, role, Law.ONE_SIDED, stiffness=1.0 / s.limit_compliance, **common)
        elif s.limit == "cubic":
            scale = width**3 if np.isfinite(width) and width > 0.0 else 1.0
            self.add(along, role, Law.CUBIC, mass_stiffness=s.limit_strength / scale, **common)
        elif s.limit == "barrier":
            distance = s.limit_distance
            self.add(
                along, role, Law.BARRIER, mass_stiffness=_inertia(joint, along.rotary), restitution=s.limit_restitution,
                distance=distance or default_distance(self.model, joint, along.rotary, width), **common,
            )  # fmt: skip
        else:
            raise ValueError(f"unknown limit '{s.limit}'")

    def _drive(self, along: Along, joint: Joint, s: CoordinateSettings, drive: Drive) -> None:
        effort, brakes = min(drive.effort, s.effort_limit), drive.mode == "brake"
        law = Law.SATURATED if np.isfinite(effort) else Law.QUADRATIC
        functions = {"target_of": drive.target, "rate_of": drive.rate}
        overridden = {"active": False} if s.locked and law == Law.QUADRATIC else {}  # by the lock
        if drive.uid in DRIVE_UIDS:
            K = drive.strength_ratio * joint.stiffness_mass * (2.0 if drive.uid == 21 else 1.0)
            role, given = (Role.LOCK, {"follows": True}) if brakes else (Role.DRIVE, functions | overridden)
            self.add(along, role, DRIVE_UIDS[drive.uid], mass_stiffness=K, **given)
        elif drive.mode == "force":
            self.add(along, Role.FORCE, Law.LINEAR, effort=effort, target_of=drive.target)
        elif brakes and np.isfinite(effort):
            self.add(along, Role.BRAKE, Law.FRICTION, effort=effort)
        elif brakes:
            self._stiff(along, Role.LOCK, follows=True)
        elif drive.mode == "pd":
            gains = {"stiffness": drive.stiffness, "damping": drive.damping}
            self.add(along, Role.DRIVE, law, effort=effort, **gains, **functions)
        elif drive.mode == "velocity" and drive.damping > 0.0:
            self.add(along, Role.DRIVE, law, damping=drive.damping, effort=effort, rate_of=drive.target)
        elif drive.mode == "velocity":
            self._stiff(along, Role.DRIVE, law, effort=effort, follows=True, rate_of=drive.target, **overridden)
        else:
            self._stiff(along, Role.DRIVE, law, effort=effort, **functions, **overridden)

    # couplings ---------------------------------------------------------------------------------------------------

    def add_coupling(self, k: int, coupling: Coupling) -> None:
        """Add the row ``q0 - scale (f_1 + f_2 + ...)``, or ``q0 - scale f(q_1, q_2, ...)``."""
        first = self.coordinate(coupling.joint, coupling.coordinate)
        others = [self.coordinate(term.joint, term.coordinate).terms[0][0] for term in coupling.terms]
        along = first._replace(terms=first.terms + terms_of(coupling, others), name=coupling.name)
        joint = self.joints[coupling.joint]
        if coupling.enforcement == "compliant" and coupling.compliance > 0.0:
            K = 1.0 / coupling.compliance
            self.add(along, Role.COUPLING, Law.QUADRATIC, stiffness=K, damping=coupling.damping)
        else:
            joint = replace(joint, enforcement=coupling.enforcement, strength_ratio=coupling.strength_ratio)
            self._stiff(along, Role.COUPLING, joint=joint)
        coupled = (coupling.joint, *(term.joint for term in coupling.terms))
        active = coupling.active and all(self.joints[one].active for one in coupled)
        self.row_laws[-1].update(coupling=k, active=active)

    # helpers -----------------------------------------------------------------------------------------------------

    def _measure(self, k: int, measure: Measure, initial: float = 0.0) -> int:
        self.entries.append((k, measure))
        self.initial.append(initial)
        return len(self.entries) - 1

    def _along(self, k: int, measure: Measure) -> Along:
        return Along([(self._measure(k, measure), factor(1.0))], k, measure.name, measure.rotary)

    def _along_sum(self, k: int, one: Combined) -> Along:
        terms = [(self._shared(k, m), factor(w)) for m, w in zip(one.measures, one.weights, strict=True)]
        return Along(terms, k, one.name, one.rotary)

    def _shared(self, k: int, measure: Measure) -> int:
        """Index of a measure; a measure equal to a coordinate is the coordinate's and counts the same turns."""
        joint = self.joints[k]
        for own in TYPES[joint.type].coordinates(joint):
            same = own.kind == measure.kind and own.scale == measure.scale and own.offset == measure.offset
            if same and np.array_equal(own.numbers, measure.numbers):
                return self.coordinate(k, own.name).terms[0][0]
        return self._measure(k, measure)

    def coordinate(self, k: int, name: str, measure: Measure | None = None) -> Along:
        """A coordinate of a joint; all rows along it share one measure. `measure` is looked up by default."""
        joint = self.joints[k]
        measure = measure or next(one for one in TYPES[joint.type].coordinates(joint) if one.name == name)
        if (k, name) not in self.known:
            initial = next((s.initial for s in joint.coordinates if s.name == name), 0.0)
            self.known[k, name] = self._measure(k, measure, initial)
        return Along([(self.known[k, name], factor(1.0))], k, name, measure.rotary)

    def _stiff(self, along: Along, role: Role, law: Law = Law.QUADRATIC, joint: Joint | None = None, **keys) -> None:
        """Add a penalty row with K = gamma (m_i + m_j), or an exact row; stiff rows of compliant joints are exact."""
        joint = joint or self.joints[along.joint]
        exact = joint.enforcement != "penalty"
        K = EXACT_RATIO * self.masses[along.joint] if exact else joint.strength_ratio * joint.stiffness_mass
        K *= joint.length**2 if along.rotary else 1.0
        self.add(along, role, law, mass_stiffness=K, exact=exact, **keys)

    def add(self, along: Along, role: Role, law: Law, **keys) -> None:
        """Add a row with a law; `keys` override the defaults in `ROW`, or are among `FUNCTIONS`."""
        row = {**ROW, "active": self.joints[along.joint].active, **keys}
        row.update(role=role, law=law, joint=along.joint, name=along.name, rotary=along.rotary)
        self.rows.append(along.terms)
        self.row_laws.append(row)

    def finish(self, scales: np.ndarray) -> JointSystem:
        """Return the joint system; `scales` (j,) [m] are the reference lengths of residuals."""
        rows = self.row_laws
        columns = {
            key: np.array([row[key] for row in rows], dtype=np.int32 if type(default) is int else type(default))
            for key, default in ROW.items()
        }
        target_of, rate_of, loads, given = (
            {i: row[key] for i, row in enumerate(rows) if row.get(key) is not None} for key in FUNCTIONS
        )
        names = [row["name"] for row in rows]
        joint, tolerance = columns["joint"], self.model.settings.joint_tolerance
        if tolerance is None:
            scale = np.minimum(scales / joint_sizes(self.model), 1.0)[joint]
            tolerance = MEASURED_SHARE * np.where(columns["rotary"], scale, 2.0 * scales[joint])
        tolerance = np.full(len(rows), tolerance)
        return JointSystem(
            linear=compile_rows(self.joints, self.masses, LINEAR_SHARE * scales),
            table=tabulate(self.joints, self.entries),
            rows=collect(self.rows),
            row_laws=RowLaws(name=names, tolerance=tolerance, target_of=target_of, rate_of=rate_of, **columns),
            initial=np.array(self.initial, dtype=float),
            followers=self.followers,
            loads=loads,
            given=given,
        )


def _inertia(joint: Joint, rotary: bool) -> float:
    """m_i + m_j [kg], or the inertia of that mass at the joint's length [kg m^2]."""
    return joint.stiffness_mass * (joint.length**2 if rotary else 1.0)


def default_distance(model: Model, joint: Joint, rotary: bool, width: float) -> float:
    """Activation distance [m or rad] of barriers at the ends of a range of this width."""
    s = model.settings
    return min(s.limit_angle if rotary else s.limit_distance or s.d_hat or LENGTH_SHARE * joint.length, RANGE_SHARE * width)


def _with_measured_rows(joints: JointList) -> list[int]:
    """Indices of joints with other than linear rows, or with settings of coordinates, in order."""
    found: list[int] = []
    for index, joint, _ in batches(joints):
        kind = TYPES[joint.type]
        if joint.enforcement == "compliant" or joint.coordinates or kind.combined(joint) or _measured(joint):
            found += index.tolist()
    return sorted(found)


def yielding(joint: Joint) -> list[Measure]:
    """Rows that the compliances of a joint refer to: the `constraints` of its type, then its gaps that are lengths."""
    kind = TYPES[joint.type]
    gaps = [one for one in kind.measured(joint) if one.unilateral and not one.rotary]
    return [*kind.constraints(joint), *gaps]


def _measured(joint: Joint) -> list[Measure]:
    """Measured rows of a joint, in addition to its linear rows (`abd.joints.rows.rows`).

    Direction rows of penalty joints also penalise the strain of both bodies. Exact joints do not: their linear rows are
    points, and the rows of `constraints` constrain the remaining axes.
    """
    kind = TYPES[joint.type]
    measured, linear = kind.measured(joint), kind.rows(joint) if joint.enforcement == "exact" else []
    if all(row.is_point for row in linear):
        return measured
    pinned = any(row.is_point for row in linear)
    held = [one for one in kind.constraints(joint) if one.rotary or not pinned]
    return held + [one for one in measured if one.unilateral]
