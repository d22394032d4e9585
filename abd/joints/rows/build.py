"""From the joints and couplings of a model to its `JointSystem`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from abd.joint_list import JointList
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure
from abd.joints.rows.carried import masses_and_scales
from abd.joints.rows.laws import Law
from abd.joints.rows.measured_rows import Term, collect, factor, terms_of
from abd.joints.rows.relations import ForceLaw
from abd.joints.rows.row_laws import Role, RowLaws
from abd.joints.rows.rows import EXACT_RATIO, compile_rows
from abd.joints.rows.sizes import LINEAR_SHARE, MEASURED_SHARE, joint_sizes
from abd.joints.rows.stacks import stacks
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import tabulate
from abd.joints.types import TYPES
from abd.model import CoordinateSettings, Coupling, Drive, Joint, Model

RANGE_SHARE = 0.05
"""Default distance from the end of a range at which its barrier begins to act, as a share of the range, where that is less
than what the settings say."""
DRIVE_UIDS = {19: Law.SINE, 21: Law.QUADRATIC}


def build_system(model: Model) -> JointSystem:
    """The system of a model's joints."""
    builder = _Builder(model)
    for k in _with_measured_rows(builder.joints):
        joint = builder.joints[k]
        builder.constrain(k, joint)
        for settings in joint.coordinates:
            builder.act_on(k, joint, settings)
    for k, coupling in enumerate(model.couplings):
        builder.couple(k, coupling)
    return builder.finish()


class _Builder:
    def __init__(self, model: Model):
        self.model, self.joints = model, JointList.of(model.joints)
        self.masses, self.scales = masses_and_scales(model)
        self.entries: list[tuple[int, Measure]] = []
        self.initial: list[float] = []
        self.known: dict[tuple[int, str], int] = {}
        self.followers: dict[int, Callable[[np.ndarray], list[Measure]]] = {}
        self.rows: list[list[Term]] = []
        self.row_laws: list[dict] = []
        self.loads: dict[int, tuple[float, float]] = {}
        self.given: dict[int, ForceLaw] = {}

    # rows of a joint ---------------------------------------------------------------------------------------------

    def constrain(self, k: int, joint: Joint) -> None:
        """Constraint rows, gaps and springs of a joint's type."""
        module = TYPES[joint.type]
        compliant = joint.enforcement == "compliant"
        measured = _measured(joint)
        follows = module.FOLLOWS_POSE
        if compliant and not follows:
            for i, measure in enumerate(module.constraints(joint)):
                self._compliant(k, joint, self._measure(k, measure), i, measure.name, measure.rotary)
        if follows:
            self.followers[len(self.entries)] = partial(module.at_pose, joint)
        names = [one.name for one in yielding(joint)] if compliant else []
        for i, measure in enumerate(measured):
            index = self._measure(k, measure)
            if measure.unilateral and measure.name in names:
                self._compliant(k, joint, index, names.index(measure.name), measure.name, False, gap=True)
            elif measure.unilateral:
                self._gap(k, joint, index, measure)
            elif compliant and follows:
                self._compliant(k, joint, index, i, measure.name, measure.rotary)
            elif not compliant:
                self._stiff(k, joint, [(index, factor(1.0))], Role.CONSTRAINT, measure.name, measure.rotary)
        for one in module.combined(joint):
            if one.at_pose is not None:
                self.followers[len(self.entries)] = lambda T, at_pose=one.at_pose: [at_pose(T)]
            terms = [(self._shared(k, m), factor(w)) for m, w in zip(one.measures, one.weights, strict=True)]
            if one.law is not None:
                self.given[len(self.row_laws)] = ForceLaw(one.law)
                self._add(terms, Role.FORCE, Law.GIVEN, k, one.name, one.rotary)
            elif one.holds:
                self._stiff(k, joint, terms, Role.CONSTRAINT, one.name, one.rotary, target=one.rest)
            else:
                self._combined(k, terms, one)

    def _combined(self, k: int, terms: list[Term], one: Combined) -> None:
        """Spring with damper, friction, and rotor along a sum of measures."""
        if one.stiffness or one.damping or not (one.friction or one.armature):
            self._add(
                terms, Role.SPRING, Law.QUADRATIC, k, one.name, one.rotary,
                stiffness=one.stiffness, damping=one.damping, target=one.rest,
            )  # fmt: skip
        if one.friction:
            self._add(terms, Role.FRICTION, Law.FRICTION, k, one.name, one.rotary, effort=one.friction)
        if one.armature:
            self._add(terms, Role.ARMATURE, Law.QUADRATIC, k, one.name, one.rotary, mass_stiffness=one.armature)

    def _compliant(self, k: int, joint: Joint, index: int, i: int, name: str, rotary: bool, gap: bool = False) -> None:
        compliance = joint.compliance[i] if i < len(joint.compliance) else 0.0
        damping = joint.damping[i] if i < len(joint.damping) else 0.0
        terms = [(index, factor(1.0))]
        role, law = (Role.GAP, Law.ONE_SIDED) if gap else (Role.CONSTRAINT, Law.QUADRATIC)
        if compliance > 0.0:
            self._add(terms, role, law, k, name, rotary, stiffness=1.0 / compliance, damping=damping)
        else:
            self._stiff(k, joint, terms, role, name, rotary, law=law)

    def _gap(self, k: int, joint: Joint, index: int, measure: Measure) -> None:
        """Limits of rotations are barriers, as ranges are, or give way by a compliance; ropes, planes and what may close hold
        one-sidedly, as stiffly as the joint."""
        terms = [(index, factor(1.0))]
        compliance, damping = (joint.parameters.get(f"limit_{key}", 0.0) for key in ("compliance", "damping"))
        if measure.rotary and compliance:
            self._add(
                terms, Role.GAP, Law.ONE_SIDED, k, measure.name, True, stiffness=1.0 / compliance, damping=damping,
            )  # fmt: skip
            return
        if measure.rotary and not measure.may_close:
            # the largest angle is the width of a range: its barrier must not reach the angle 0, where the gap has an edge
            width = np.min(joint.parameters.get(f"max_{measure.name}", np.inf))
            self._add(
                terms, Role.GAP, Law.BARRIER, k, measure.name, True, mass_stiffness=self._inertia(joint, True),
                sign=1.0, distance=self._distance(True, width, None),
            )  # fmt: skip
        else:
            self._stiff(k, joint, terms, Role.GAP, measure.name, measure.rotary, law=Law.ONE_SIDED)

    # settings of a coordinate -----------------------------------------------------------------------------------

    def act_on(self, k: int, joint: Joint, s: CoordinateSettings) -> None:
        """Limits, lock, spring, friction, armature and drive of one coordinate."""
        index, rotary = self._coordinate(k, s.name)
        terms = [(index, factor(1.0))]
        lower = s.lower if s.lower_end is None else s.lower_end
        upper = s.upper if s.upper_end is None else s.upper_end
        for role, bound, sign in ((Role.LOWER, lower, 1.0), (Role.UPPER, upper, -1.0)):
            if np.isfinite(bound):
                self._limit(k, joint, terms, s, role, bound, sign, rotary)
        if s.locked:
            value = s.initial if s.lock_value is None else s.lock_value
            self._stiff(k, joint, terms, Role.LOCK, s.name, rotary, target=value)
        if s.stiffness > 0.0 or s.damping > 0.0:
            self._add(
                terms, Role.SPRING, Law.QUADRATIC, k, s.name, rotary,
                stiffness=s.stiffness, damping=s.damping, target=s.rest,
            )  # fmt: skip
        if s.friction > 0.0 or s.friction_load > 0.0:
            if s.friction_load > 0.0:
                self.loads[len(self.row_laws)] = (s.friction, s.friction_load)
            self._add(terms, Role.FRICTION, Law.FRICTION, k, s.name, rotary, effort=s.friction)
        if s.armature > 0.0:
            self._add(terms, Role.ARMATURE, Law.QUADRATIC, k, s.name, rotary, mass_stiffness=s.armature)
        if s.drive is not None:
            self._drive(k, joint, terms, s, s.drive, rotary)
        if s.law is not None:
            self.given[len(self.row_laws)] = ForceLaw(s.law)
            self._add(terms, Role.FORCE, Law.GIVEN, k, s.name, rotary)
        if s.force is not None:
            self._add(terms, Role.APPLIED, Law.LINEAR, k, s.name, rotary, target=s.force)

    def _limit(self, k, joint, terms, s: CoordinateSettings, role, bound, sign, rotary) -> None:
        on_the_way = (s.lower_end if role == Role.LOWER else s.upper_end) is not None
        bounces = s.limit == "barrier" and s.limit_restitution > 0.0
        common = {"bound": bound, "sign": sign, "damping": s.limit_damping, "follows": on_the_way or bounces}
        width = s.upper - s.lower
        if s.limit == "compliant":
            self._add(terms, role, Law.ONE_SIDED, k, s.name, rotary, stiffness=1.0 / s.limit_compliance, **common)
        elif s.limit == "cubic":
            scale = width**3 if np.isfinite(width) and width > 0.0 else 1.0
            self._add(terms, role, Law.CUBIC, k, s.name, rotary, mass_stiffness=s.limit_strength / scale, **common)
        elif s.limit == "barrier":
            self._add(
                terms, role, Law.BARRIER, k, s.name, rotary, mass_stiffness=self._inertia(joint, rotary),
                distance=self._distance(rotary, width, s.limit_distance), restitution=s.limit_restitution, **common,
            )  # fmt: skip
        else:
            raise ValueError(f"no law is known of limits '{s.limit}'")

    def _drive(self, k, joint, terms, s: CoordinateSettings, drive: Drive, rotary: bool) -> None:
        effort = min(drive.effort, s.effort_limit)
        law = Law.SATURATED if np.isfinite(effort) else Law.QUADRATIC
        functions = {"target_of": drive.target, "rate_of": drive.rate}
        if drive.uid in DRIVE_UIDS:
            K = drive.strength_ratio * joint.stiffness_mass * (2.0 if drive.uid == 21 else 1.0)
            following = {"follows": drive.mode == "brake"}
            functions = {} if drive.mode == "brake" else functions
            self._add(
                terms, Role.DRIVE if following["follows"] is False else Role.LOCK, DRIVE_UIDS[drive.uid], k, s.name,
                rotary, mass_stiffness=K, **following, **functions,
            )  # fmt: skip
        elif drive.mode == "force":
            self._add(terms, Role.FORCE, Law.LINEAR, k, s.name, rotary, effort=effort, target_of=drive.target)
        elif drive.mode == "brake" and np.isfinite(effort):
            self._add(terms, Role.FRICTION, Law.FRICTION, k, s.name, rotary, effort=effort)
        elif drive.mode == "brake":
            self._stiff(k, joint, terms, Role.LOCK, s.name, rotary, follows=True)
        elif drive.mode == "pd":
            self._add(
                terms, Role.DRIVE, law, k, s.name, rotary, stiffness=drive.stiffness, damping=drive.damping,
                effort=effort, **functions,
            )  # fmt: skip
        elif drive.mode == "velocity" and drive.damping > 0.0:
            self._add(
                terms, Role.DRIVE, law, k, s.name, rotary, damping=drive.damping, effort=effort, rate_of=drive.target
            )
        elif drive.mode == "velocity":
            self._stiff(
                k, joint, terms, Role.DRIVE, s.name, rotary, law=law, effort=effort, follows=True, rate_of=drive.target
            )
        else:
            self._stiff(k, joint, terms, Role.DRIVE, s.name, rotary, law=law, effort=effort, **functions)

    # couplings ---------------------------------------------------------------------------------------------------

    def couple(self, k: int, coupling: Coupling) -> None:
        """The row ``q0 - scale (f_1 + f_2 + ...)``, or ``q0 - scale f(q_1, q_2, ...)``."""
        index, rotary = self._coordinate(coupling.joint, coupling.coordinate)
        terms = [(index, factor(1.0))]
        terms += terms_of(coupling, [self._coordinate(term.joint, term.coordinate)[0] for term in coupling.terms])
        joint = self.joints[coupling.joint]
        ruled = replace(joint, enforcement=coupling.enforcement, strength_ratio=coupling.strength_ratio)
        if coupling.enforcement == "compliant" and coupling.compliance > 0.0:
            self._add(
                terms, Role.COUPLING, Law.QUADRATIC, coupling.joint, coupling.name, rotary,
                stiffness=1.0 / coupling.compliance, damping=coupling.damping,
            )  # fmt: skip
        else:
            self._stiff(coupling.joint, ruled, terms, Role.COUPLING, coupling.name, rotary)
        coupled = (coupling.joint, *(term.joint for term in coupling.terms))
        active = coupling.active and all(self.joints[one].active for one in coupled)
        self.row_laws[-1].update(coupling=k, active=active)

    # parts -------------------------------------------------------------------------------------------------------

    def _measure(self, k: int, measure: Measure, initial: float = 0.0) -> int:
        self.entries.append((k, measure))
        self.initial.append(initial)
        return len(self.entries) - 1

    def _shared(self, k: int, measure: Measure) -> int:
        """Index of a measure; a coordinate's counts its turns with the coordinate."""
        joint = self.joints[k]
        for own in TYPES[joint.type].coordinates(joint):
            same = own.kind == measure.kind and own.scale == measure.scale and own.offset == measure.offset
            if same and np.array_equal(own.numbers, measure.numbers):
                return self._coordinate(k, own.name)[0]
        return self._measure(k, measure)

    def _coordinate(self, k: int, name: str) -> tuple[int, bool]:
        """Index of a coordinate's measure, which all that acts on it share, and whether it is an angle."""
        joint = self.joints[k]
        measure = next(one for one in TYPES[joint.type].coordinates(joint) if one.name == name)
        if (k, name) not in self.known:
            initial = next((s.initial for s in joint.coordinates if s.name == name), 0.0)
            self.known[k, name] = self._measure(k, measure, initial)
        return self.known[k, name], measure.rotary

    def _inertia(self, joint: Joint, rotary: bool) -> float:
        """m_i + m_j [kg], or that at the joint's length [kg m^2]."""
        return joint.stiffness_mass * (joint.length**2 if rotary else 1.0)

    def _distance(self, rotary: bool, width: float, wanted: float | None) -> float:
        return default_distance(self.model, rotary, width) if wanted is None else wanted

    def _stiff(self, k, joint, terms, role, name, rotary, law=Law.QUADRATIC, **keys) -> None:
        """A row that holds by a penalty K = gamma (m_i + m_j), or exactly; compliant joints hold other rows exactly."""
        exact = joint.enforcement != "penalty"
        K = EXACT_RATIO * self.masses[k] if exact else joint.strength_ratio * joint.stiffness_mass
        K *= joint.length**2 if rotary else 1.0
        self._add(terms, role, law, k, name, rotary, mass_stiffness=K, exact=exact, **keys)

    def _add(self, terms, role, law, k, name, rotary, target_of=None, rate_of=None, **keys) -> None:
        row = {
            "coupling": -1, "active": self.joints[k].active, "exact": False, "mass_stiffness": 0.0,
            "stiffness": 0.0, "damping": 0.0, "effort": np.inf, "bound": 0.0, "sign": 1.0, "distance": 1.0,
            "target": 0.0, "rate": 0.0, "follows": False, "restitution": 0.0,
        }  # fmt: skip
        row.update(role=role, law=law, joint=k, name=name, rotary=rotary, target_of=target_of, rate_of=rate_of, **keys)
        self.rows.append(terms)
        self.row_laws.append(row)

    def _tolerances(self, joint: np.ndarray, rotary: np.ndarray) -> np.ndarray:
        """(R,) residual to which exact rows are held, of rows that are angles or lengths at their joints (R,) [rad or m]."""
        given = self.model.settings.joint_tolerance
        if given is not None:
            return np.full(len(joint), given)
        share = np.minimum(self.scales / joint_sizes(self.model), 1.0)[joint]
        return MEASURED_SHARE * np.where(rotary, share, 2.0 * self.scales[joint])

    def finish(self) -> JointSystem:
        """The whole system."""
        rows = self.row_laws

        def column(key, dtype=float):
            return np.array([row[key] for row in rows], dtype=dtype)

        row_laws = RowLaws(
            role=column("role", np.int32),
            law=column("law", np.int32),
            joint=column("joint", np.int32),
            coupling=column("coupling", np.int32),
            name=[row["name"] for row in rows],
            rotary=column("rotary", bool),
            active=column("active", bool),
            exact=column("exact", bool),
            tolerance=self._tolerances(column("joint", int), column("rotary", bool)),
            target_of={i: row["target_of"] for i, row in enumerate(rows) if row["target_of"] is not None},
            rate_of={i: row["rate_of"] for i, row in enumerate(rows) if row["rate_of"] is not None},
            follows=column("follows", bool),
            **{
                key: column(key)
                for key in (
                    "mass_stiffness", "stiffness", "damping", "effort", "bound", "sign", "distance", "target", "rate",
                    "restitution",
                )
            },
        )  # fmt: skip
        return JointSystem(
            linear=compile_rows(self.joints, self.masses, LINEAR_SHARE * self.scales),
            table=tabulate(self.joints, self.entries),
            rows=collect(self.rows),
            row_laws=row_laws,
            initial=np.array(self.initial, dtype=float),
            followers=self.followers,
            loads=self.loads,
            given=self.given,
        )


def default_distance(model: Model, rotary: bool, width: float) -> float:
    """Distance [m or rad] from the ends of a range of this width at which barriers begin to act."""
    return min(model.settings.limit_angle if rotary else model.settings.limit_reach, RANGE_SHARE * width)


def _with_measured_rows(joints: JointList) -> list[int]:
    """Joints that have more than linear rows, or settings of their coordinates, in order."""
    return sorted(k for stack in stacks(joints) if not _only_linear(stack.first) for k in stack.index.tolist())


def _only_linear(joint: Joint) -> bool:
    module = TYPES[joint.type]
    others = module.combined(joint) or module.FOLLOWS_POSE
    return not (joint.enforcement == "compliant" or joint.coordinates or others or _measured(joint))


def yielding(joint: Joint) -> list[Measure]:
    """Rows that a compliant joint's compliances count: the `constraints` of its type, then its gaps that are lengths."""
    module = TYPES[joint.type]
    gaps = [one for one in module.measured(joint) if one.unilateral and not one.rotary]
    return [*module.constraints(joint), *gaps]


def _measured(joint: Joint) -> list[Measure]:
    """Measured rows of a joint, in addition to its linear ones (`abd.joints.rows.rows`).

    Rows that hold whole directions hold the strain of both bodies too. Exact joints leave that to the bodies: what their
    points do not hold is held by the rows of `constraints`.
    """
    module = TYPES[joint.type]
    linear, measured = module.rows(joint), module.measured(joint)
    if joint.enforcement != "exact" or all(row.is_point for row in linear):
        return measured
    pinned = any(row.is_point for row in linear)
    held = [one for one in module.constraints(joint) if one.rotary or not pinned]
    return held + [one for one in measured if one.unilateral]
