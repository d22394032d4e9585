"""From the joints and couplings of a model to their `RigidRows`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.errors import SceneError
from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.rows.measured_rows import Term, collect, factor, terms_of
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import Components, Part, RigidRows
from abd.joints.rows.table import tabulate
from abd.joints.types import TYPES
from abd.model import WORLD, Joint, Kind, Model


def rigid_rows(model: Model, q: np.ndarray) -> RigidRows:
    """The rows of a model's joints and couplings; those of types whose rows follow the pose are the ones at q (n, 12).

    Inactive joints have rows too, which hold nothing.
    """
    model = replace(model, joints=list(model.joints))
    builder = _Builder(model)
    for k, joint in enumerate(model.joints):
        builder.joint(k, joint, q)
    for k, coupling in enumerate(model.couplings):
        builder.couple(k, coupling)
    return builder.finish()


def follows_pose(model: Model) -> bool:
    """Whether any joint's rows depend on the pose at which they are built."""
    return any(TYPES[joint.type].FOLLOWS_POSE for joint in model.joints)


class _Builder:
    def __init__(self, model: Model):
        self.model = model
        self.entries: list[tuple[int, Measure]] = []
        self.initial: list[float] = []
        self.known: dict[tuple, int] = {}
        self.terms: list[list[Term]] = []
        self.facts: list[tuple] = []
        self.components: list[tuple[Joint, Row, int]] = []
        self.component_facts: list[tuple] = []
        self.coordinate: dict[tuple[int, str], tuple[int, bool]] = {}

    def joint(self, k: int, joint: Joint, q: np.ndarray) -> None:
        """Constraint rows, gaps and coordinates."""
        module = TYPES[joint.type]
        measured = _measured(joint, q)
        bilateral, vectors = _bilateral(joint, measured)
        for i, one in enumerate(bilateral):
            soft = joint.enforcement == "compliant" and i < len(joint.compliance) and joint.compliance[i] > 0.0
            self._add([(self._measure(k, one), factor(1.0))], Part.CONSTRAINT, k, one.name, one.rotary, soft)
        for row, axis in vectors:
            self.components.append((joint, row, axis))
            self.component_facts.append(
                (Part.CONSTRAINT, k, -1, "xyz"[axis], not row.is_point, joint.active, False, 0.0)
            )
        for one in module.combined(joint):
            if one.holds:
                pieces = [(self._measure(k, m), factor(w)) for m, w in zip(one.measures, one.weights, strict=True)]
                self._add(pieces, Part.CONSTRAINT, k, one.name, one.rotary, target=one.rest)
        for one in measured:
            if one.unilateral:
                self._add([(self._measure(k, one), factor(1.0))], Part.GAP, k, one.name, one.rotary)
        initial = {settings.name: settings.initial for settings in joint.coordinates}
        for one in module.coordinates(joint):
            start = initial.get(one.name, 0.0)
            index = self._measure(k, one, start)
            self.coordinate[k, one.name] = index, one.rotary
            self._add([(index, factor(1.0))], Part.COORDINATE, k, one.name, one.rotary, target=start)

    def couple(self, k: int, coupling) -> None:
        """The row ``q0 - scale (f_1 + f_2 + ...)``, or ``q0 - scale f(q_1, q_2, ...)``."""
        first, rotary = self.coordinate[coupling.joint, coupling.coordinate]
        pieces = [(first, factor(1.0))]
        pieces += terms_of(coupling, [self.coordinate[t.joint, t.coordinate][0] for t in coupling.terms])
        soft = coupling.enforcement == "compliant" and coupling.compliance > 0.0
        self._add(pieces, Part.COUPLING, coupling.joint, coupling.name, rotary, soft, coupling=k)

    def _measure(self, k: int, one: Measure, initial: float = 0.0) -> int:
        """Index of a joint's measure; equal ones are one, so that a screw's row counts the turns of its coordinate."""
        key = k, one.kind, one.scale, one.offset, one.numbers.tobytes()
        if key not in self.known:
            self.known[key] = len(self.entries)
            self.entries.append((k, one))
            self.initial.append(0.0)
        if initial:
            self.initial[self.known[key]] = initial
        return self.known[key]

    def _add(self, pieces, part, k, name, rotary, soft=False, target=0.0, coupling=-1) -> None:
        held = part != Part.COORDINATE and self.model.joints[k].active
        if coupling >= 0:
            one = self.model.couplings[coupling]
            held = held and one.active and all(self.model.joints[term.joint].active for term in one.terms)
        self.terms.append(pieces)
        self.facts.append((part, k, coupling, name, rotary, held, soft, target))

    def finish(self) -> RigidRows:
        """The whole system."""
        facts = self.facts + self.component_facts
        part, joint, coupling, name, rotary, held, yields, target = zip(*facts, strict=True) if facts else [()] * 8
        movable, free, basis = freedoms(self.model)
        return RigidRows(
            table=tabulate(self.model.joints, self.entries),
            rows=collect(self.terms),
            components=_components(self.components),
            part=np.array(part, dtype=int),
            joint=np.array(joint, dtype=int),
            coupling=np.array(coupling, dtype=int),
            name=list(name),
            rotary=np.array(rotary, dtype=bool),
            held=np.array(held, dtype=bool),
            yields=np.array(yields, dtype=bool),
            target=np.array(target, dtype=float),
            initial=np.array(self.initial, dtype=float),
            length=_length(self.model),
            movable=movable,
            free=free,
            basis=basis,
        )


def _measured(joint: Joint, q: np.ndarray) -> list[Measure]:
    """The measured rows of a joint at q (n, 12)."""
    module = TYPES[joint.type]
    if module.FOLLOWS_POSE:
        return module.at_pose(joint, present_transform(joint, q))
    return module.measured(joint)


def _bilateral(joint: Joint, measured: list[Measure]) -> tuple[list[Measure], list[tuple[Row, int]]]:
    """Measures of a joint's constraint rows, and components (row, world axis) of those that have none."""
    module = TYPES[joint.type]
    if module.FOLLOWS_POSE:
        return [one for one in measured if not one.unilateral], []
    try:
        return [one for one in module.constraints(joint) if not one.unilateral], []
    except SceneError:
        # Axes of the world held while the parent moves: a mask of a vector row, not a function of the two frames.
        masked = [(row, axis) for row in module.rows(joint) for axis in range(3) if row.mask[axis] > 0.0]
        return [one for one in measured if not one.unilateral], masked


def _components(found: list[tuple[Joint, Row, int]]) -> Components:
    return Components(
        child=np.array([joint.child for joint, _, _ in found], dtype=int),
        parent=np.array([joint.parent for joint, _, _ in found], dtype=int),
        Yc=np.array([row.child for _, row, _ in found]).reshape(-1, 4),
        Yp=np.array([row.parent for _, row, _ in found]).reshape(-1, 4),
        e=np.eye(3)[[axis for _, _, axis in found]].reshape(-1, 3),
    )


def freedoms(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`movable` (n,), `free` (n,) and `basis` (n, 6, 6) of `RigidRows`."""
    bodies = model.bodies
    dynamic = bodies.kind == Kind.DYNAMIC
    basis = np.zeros((len(bodies), 6, 6))
    basis[:, [0, 1, 2], [0, 1, 2]] = bodies.free_translation
    axis = bodies.rotation_axis
    about = np.where((bodies.free_rotation == 1)[:, None, None], axis[:, :, None] * axis[:, None, :], 0.0)
    basis[:, 3:, 3:] = np.where((bodies.free_rotation == 3)[:, None, None], np.eye(3), about)
    basis[~dynamic] = 0.0
    free = dynamic & bodies.free_translation.all(axis=1) & (bodies.free_rotation == 3)
    return np.abs(basis).sum(axis=(1, 2)) > 0.0, free, basis


def _length(model: Model) -> float:
    """Length scale [m]: root mean square distance of the joints' points from the bodies' centres, or radius of gyration of
    the bodies where that is larger; 1 m without either."""
    arms = [joint.child_frame[:3, 3] for joint in model.joints]
    arms += [joint.parent_frame[:3, 3] for joint in model.joints if joint.parent != WORLD]
    if not arms:
        return 1.0
    ends = sorted({end for joint in model.joints for end in (joint.parent, joint.child)} - {WORLD})
    moving = [end for end in ends if model.bodies.kind[end] == Kind.DYNAMIC]
    squares = [np.sum(np.square(arms), axis=1), model.bodies.moment[moving].sum(axis=1) / model.bodies.mass[moving]]
    length = float(np.sqrt(max(one.mean() for one in squares if len(one))))
    # a power of two: worlds have the same bits, however many there are
    return float(2.0 ** np.round(np.log2(length))) if length > 0.0 else 1.0
