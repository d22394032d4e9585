"""Derivatives of one substep, by the implicit function theorem.

The converged state q' of a step satisfies ``G(q', s; x) = 0``: the gradient of the incremental potential vanishes, and every
joint row has the force s of its law, or the residual 0 if it is exact. x are the state at the start and the parameters.
Velocities and the integrator's history follow from q' and x. The differentials of these equations form one sparse system
(`Equations`).

Inertia, loads, near-rigidity, linear rows, contact forces and friction's dependence on its stretch are differentiated by
formulas. Weights of contacts, lagged loads and points, laws of rows, second derivatives of measures, and the free motion are
central differences of the functions that define them, for single bodies, pairs and contacts. Steps are not repeated.

Constants: contact parameters of pairs, widths of limits, set of active contacts, friction in joints that depends on their load,
loads that depend on the state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.reference.numpy_bodies import maps, projectors
from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.reference.numpy_motion import Motion
from abd.backends.warp.free_motion import moved
from abd.contact.pair_law import PairParameters
from abd.contact.path import straight
from abd.derivatives.equations import Equations, body_columns, jacobian
from abd.derivatives.pairs import LaggedFriction, Parts
from abd.derivatives.rows import PARAMETERS, JointDerivatives
from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.sizes import turning_arms
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Kind, Model
from abd.potentials import arap, orthogonality
from abd.potentials.forces import couple
from abd.potentials.integrators import Scheme
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors

STEP = 1e-5
"""Change of states in central differences of the free motion [m or 1], and of displacements by velocities and forces."""
STATE = ("q", "qd", "forces", "rows", "anchors")


@dataclass(frozen=True)
class StepRecord:
    """Data of one substep.

    Attributes:
        rule: scheme; mode: (n,) of the bodies; time: at the end [s].
        start, end: (q, qd), each (n, 12), at the start and at the end; forces: (n, 12) acceleration history at the start.
        memory, end_memory: of the joints; own: parameters of pairs at the start and in the step; anchors: at the start.
        mobile: (n,) bool; is_first: (n,) bool, whose history starts with this step.
    """

    rule: Scheme
    mode: np.ndarray
    time: float
    start: tuple[np.ndarray, np.ndarray]
    end: tuple[np.ndarray, np.ndarray]
    forces: np.ndarray
    memory: JointMemory
    end_memory: JointMemory
    own: tuple[PairParameters, PairParameters]
    anchors: Anchors
    mobile: np.ndarray
    is_first: np.ndarray


@dataclass(frozen=True)
class Constants:
    """Constants of a scene in its steps.

    motion: of the bodies; touching: contacts of present bodies; resolved: (R,) bool, springs with the trapezoidal rule."""

    model: Model
    data: BodyData
    motion: Motion
    touching: NumpyContacts
    system: JointSystem
    resolved: np.ndarray

    @classmethod
    def of(cls, model: Model, present: Model, system: JointSystem) -> Constants:
        """Return the constants of a model with the joints `system`, and with the contacts of `present`, without absent bodies."""
        data, smooth = BodyData.of(model), model.settings.integrator == "generalized_alpha"
        motion = Motion(data, joined_components(model), *turning_arms(model))
        return cls(model, data, motion, NumpyContacts(present), system, resolved(model, system) & smooth)


class StepDerivatives:
    """Derivatives of one substep.

    Unknowns are the state at the end: q, qd, forces (n, 12), rows (3, R), anchors (l, 3). Inputs are the state at the start, with
    the same names after "start ", and parameters: wrench (n, 6), mu (m, m) of ordered pairs, efforts (c,) on coordinates, and
    target, stiffness, damping, effort (R,) of joint rows. If the history of a body starts with the step, "start rows" are
    unknowns: those of such bodies follow from "start q" and "start qd", others are constant.

    Args:
        coordinates: table of the c coordinates.
    """

    def __init__(self, constants: Constants, coordinates: MeasureTable, record: StepRecord):
        model, system, motion, touching = constants.model, constants.system, constants.motion, constants.touching
        self.model, self.data, self.system, self.record, n = model, constants.data, system, record, len(model.bodies)
        self.ch2, self.moves = record.rule.ch2, record.mobile & (model.bodies.kind == Kind.DYNAMIC)
        self.joints = JointDerivatives(system, constants.resolved, record, model.settings.eps_v)
        self.pulled = [self.joints.pulls(q) for q, _ in (record.start, record.end)] if self.joints.springs else []
        bodies, motion, by_motion = self._motion(motion.rows(record.rule, record.mode, *record.start))
        target, turn = record.start[0].copy(), np.zeros((n, 3))
        target[bodies], turn[bodies] = motion[:, 24:36], motion[:, 48:]
        touching.search(straight(record.start[0], record.end[0]))
        self.friction = self._lagged(touching, target, turn)
        R, m, count = len(system.rows), len(model.materials.mu), 0 if self.friction is None else len(self.friction.anchors)
        state = dict(zip(STATE, (12 * n, 12 * n, 12 * n, 3 * R, 3 * count), strict=True))
        inputs = {f"start {name}": size for name, size in state.items()}
        extra = {"target state": 12 * n, "linear": 3 * len(system.linear)} | dict.fromkeys(("now", "value", "measured"), R)
        extra |= dict.fromkeys(("pulls", "end pulls")[: len(self.pulled)], 12 * n)
        if record.is_first.any():
            extra |= {"start rows": inputs.pop("start rows")}
        parameters = {"wrench": 6 * n, "mu": m * m, "efforts": len(coordinates)} | dict.fromkeys(PARAMETERS, R)
        self.equations = Equations(state | extra, inputs | parameters)
        self._add_motion(bodies, by_motion)
        self._add_bodies()
        self._add_contacts(touching)
        active = JointList.of(model.joints).column("active").astype(bool)
        self.joints.add_to(self.equations, coordinates, active[coordinates.joint])
        self.equations.factorise(projectors(self.data, ~self.moves), (model.bodies.kind != Kind.KINEMATIC).astype(float))

    def _motion(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the indices of dynamic bodies (k,), and for these `Moved` with the inertia: qd, forces, target and inertia
        (12,) each, then turns (3,), as (k, 51), and derivatives by the states at the end and at the start, history and springs.

        rows: (n,) of `Scheme.motion`."""
        record, bodies = self.record, np.flatnonzero(self.model.bodies.kind == Kind.DYNAMIC)
        given = [one[bodies] for one in (record.end[0], *record.start, record.forces, *self.pulled)]
        mass = np.concatenate([np.repeat(self.data.mass[:, None], 3, axis=1), *[self.data.moment] * 3], axis=1)[bodies]

        def ends(end: np.ndarray, *start: np.ndarray) -> np.ndarray:
            copies = len(end) // len(bodies)
            of = np.tile(bodies, copies)
            step = moved(self.data, of, record.rule, rows[of], *start[:3], end, *start[3:])
            inertia = step.scale[:, None] * np.tile(mass, (copies, 1)) * (end - step.target)
            return np.concatenate([step.qd, step.forces, step.target, inertia, step.turn], axis=1)

        h = record.rule.h
        least = np.concatenate([mass[:, :3], np.repeat(mass[:, 3:].max(axis=1, keepdims=True), 3, axis=1)], axis=1)
        of_forces = np.tile(STEP / h**2 * least, 2)
        return bodies, *jacobian(ends, given, [STEP, STEP, STEP / h] + [of_forces] * (1 + len(self.pulled)))

    def _add_motion(self, bodies: np.ndarray, J: np.ndarray) -> None:
        """Add velocities, history and inertial targets of the moving ones among bodies (k,), and their inertia (`_motion`)."""
        columns, J = body_columns(bodies[self.moves[bodies]]), J[self.moves[bodies]]
        names = ["q", "start q", "start qd", "start forces", "pulls", "end pulls"][: 4 + len(self.pulled)]
        for place, equation in enumerate(("qd", "forces", "target state", "q")):
            sign = 1.0 if equation == "q" else -1.0
            for part, name in enumerate(names):
                block = J[:, 12 * place : 12 * place + 12, 12 * part : 12 * part + 12]
                self.equations.add(equation, name, columns, columns, sign * block)
        for equation in ("qd", "forces", "target state", *names[4:]):
            self.equations.add_diagonal(equation, equation, 1.0)

    def _add_bodies(self) -> None:
        """Add near-rigidity and external loads."""
        equations, bodies, data = self.equations, np.flatnonzero(self.moves), self.data
        A, columns, stiffness = maps(self.record.end[0])[bodies], body_columns(bodies), self.ch2 * data.stiffness[bodies]
        H = orthogonality.hessian(stiffness, A)
        if (polar := data.arap[bodies] != 0).any():
            K = stiffness[polar]

            def gradient(x: np.ndarray) -> np.ndarray:
                return arap.gradient(np.tile(K, len(x) // len(K)), x.reshape(-1, 3, 3)).reshape(-1, 9)

            H[polar] = jacobian(gradient, [A[polar].reshape(-1, 9)], [STEP])[1]
        inverse = np.linalg.inv(A)
        torque = couple(data.torque[bodies], np.broadcast_to(np.eye(3), A.shape))
        # d(A^-T) = -A^-T dA^T A^-T
        H += self.ch2 * np.einsum("nil,njk->nijkl", torque @ inverse.transpose(0, 2, 1), inverse).reshape(-1, 9, 9)
        equations.add("q", "q", columns[:, 3:], columns[:, 3:], H)
        by_torque = np.stack([couple(np.tile(axis, (len(A), 1)), A).reshape(-1, 9) for axis in np.eye(3)], axis=2)
        of_wrench = 6 * bodies[:, None] + np.arange(6)
        equations.add("q", "wrench", columns[:, :3], of_wrench[:, :3], np.tile(-self.ch2 * np.eye(3), (len(A), 1, 1)))
        equations.add("q", "wrench", columns[:, 3:], of_wrench[:, 3:], -self.ch2 * by_torque)

    def _lagged(self, touching: NumpyContacts, target: np.ndarray, turn: np.ndarray) -> LaggedFriction | None:
        """Return the lagged friction, if any, with the inertial targets (n, 12) and the rotations to them (n, 3)."""
        record, model, rule, settings = self.record, self.model, self.record.rule, self.model.settings
        at_end, resistances = settings.friction_iterations < 0, Resistances.of(model)
        if not len(touching.candidates) or not resistances.any or settings.friction_iterations == 0:
            return None
        parts = Parts.of(touching, (record.end if at_end else record.start)[0], record.own[at_end], self.ch2, resistances)
        if not len(parts.contacts):
            return None
        anchors = record.anchors if settings.stick == "elastic" else None
        states, eps = np.stack([record.end[0], record.start[0], target]), settings.eps_v * rule.h
        return LaggedFriction(model, parts, at_end, states, turn, anchors, eps, rule.h)

    def _add_contacts(self, touching: NumpyContacts) -> None:
        """Add contacts, friction, and the anchors of sticking contacts at the end."""
        add, f, q = self.equations.add, self.friction, self.record.end[0]
        parts = Parts.of(touching, q, self.record.own[1], self.ch2) if len(touching.candidates) else None
        if parts is not None and len(parts.contacts):
            columns = body_columns(parts.bodies.ravel()).reshape(-1, 24)
            add("q", "q", columns, columns, parts.hessian())
        self.equations.add_diagonal("anchors", "anchors", 1.0)
        if f is None:
            return
        columns = body_columns(f.parts.bodies.ravel()).reshape(-1, 24)[f.pair]
        shares = np.arange(3 * len(f.anchors)).reshape(-1, 3)
        for part, name in enumerate(("q", "start q", "target state")):
            of = slice(24 * part, 24 * part + 24)
            add("q", name, columns, columns, f.by_states[:, :, of])
            add("anchors", name, shares, columns, -f.shares_by_states[:, :, of])
        if f.sticks:
            add("q", "start anchors", columns, shares, f.by_share)
            add("anchors", "start anchors", shares, shares, -f.shares_by_share)
        add("q", "mu", columns, f.materials[:, None], f.by_mu[:, :, None])

    def anchors_back(self, before: StepDerivatives, by_start: np.ndarray) -> np.ndarray:
        """Return derivatives (3 l,) by the anchors at the end of the step `before` from those by the anchors at the start."""
        now, old = self.friction, before.friction
        out = np.zeros((0 if old is None else len(old.anchors), 3))
        if now is not None and old is not None:
            nearest = old.anchors.nearest(now.anchors.key, now.anchors.kind, now.anchors.point)
            np.add.at(out, nearest[nearest >= 0], by_start.reshape(-1, 3)[nearest >= 0])
        return out.ravel()
