"""Integration scheme of a substep, and the mode of every body in it (`abd.potentials.integrators`).

Generalized alpha integrates articulations without active contacts, limits or ropes. Implicit Euler integrates the others, and
every articulation for one substep after a jump of its loads or constraints. Generalized alpha restarts after each of these, and
when the length of the substep changes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cached_property

import numpy as np

from abd.energies import spin
from abd.joint_list import JointList
from abd.joints.closure.link_graph import connected_labels, joined_components
from abd.joints.rows.sizes import held_axes
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointSystem
from abd.model import Kind, Model
from abd.potentials import free_motion
from abd.potentials.integrators import Mode, Scheme, Schemes, longest, scheme

FAST_TURN = 0.5
"""Largest turn [rad] of a jointed body in a step of generalized alpha: h |L| / J_mid, and that of its held axes."""
AFTER_JUMP = 4
"""Steps of implicit Euler after a change of constraints. Each reduces a penalty joint's velocity error to 1/`strength_ratio`;
generalized alpha amplifies the rest several times before damping it."""


class History(IntEnum):
    """State of the acceleration history of a body; -k: none, and implicit Euler in the next k steps."""

    NONE = 0
    RETURNS = 1
    """None, and velocities of implicit Euler, which do not fit the joints."""
    USED = 2
    STARTED = 3
    """One step of generalized alpha has been taken."""
    CHANGED = 4
    """None, and joints that have changed, to which velocities are fitted before the next step."""
    CHANGED_PENALTY = 5
    """The same, and implicit Euler in two steps, without which `penalty` joints would swing about their stretch."""


class Articulations:
    """Articulations of a model: bodies that joints and couplings connect, directly or through other bodies.

    Attributes:
        dynamic: (n,) bool; none: (n,) bool, the empty mask, one array for all uses.
        jointed: (n,) bool, bodies with joints; tumbling: (n,) bool, jointed dynamic bodies that may turn about any axis.
    """

    def __init__(self, model: Model):
        n = len(model.bodies)
        self.dynamic, self.none = model.bodies.kind == Kind.DYNAMIC, np.zeros(n, dtype=bool)
        ends = JointList.of(model.joints).bodies
        self._components = _coupled_components(model, ends)
        self._count = int(self._components.max(initial=-1)) + 1
        self.jointed = np.zeros(n, dtype=bool)
        self.jointed[ends[ends >= 0]] = True
        self.tumbling = self.jointed & self.dynamic & (model.bodies.free_rotation == 3)

    def containing(self, bodies: np.ndarray) -> np.ndarray:
        """Return (n,) bool, all bodies of the articulations of the dynamic bodies among `bodies` (n,) bool."""
        mobile = bodies & self.dynamic
        found = np.zeros(self._count, dtype=bool)
        found[self._components[mobile]] = True
        return found[self._components]

    def touching(self, bodies: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Return (n,) bool, the dynamic bodies that joints, couplings and the contacts of pairs of bodies (k, 2) connect with the
        dynamic bodies among `bodies` (n,) bool."""
        between = self._components[pairs[self.dynamic[pairs].all(axis=1)]]
        label = connected_labels(self._count, between)[self._components]
        return np.isin(label, label[bodies & self.dynamic]) & self.dynamic


def _coupled_components(model: Model, ends: np.ndarray) -> np.ndarray:
    """Return (n,) component of every body by joints with bodies `ends` (j, 2), -1 for the world, and by couplings.

    Bodies that are not dynamic connect none."""
    moves = np.append(model.bodies.kind == Kind.DYNAMIC, False)
    label, joined = joined_components(model), []
    for one in model.couplings:
        bodies = ends[[one.joint, *(term.joint for term in one.terms)]].ravel()
        labels = label[bodies[moves[bodies]]]
        joined += [(labels[0], other) for other in labels[1:]]
    pairs = np.array(joined, dtype=int).reshape(-1, 2)
    return np.unique(connected_labels(len(label), pairs)[label], return_inverse=True)[1]


class Modes:
    """Schemes and modes of the steps of one scene.

    Attributes:
        history: (n,) `History` of every body; each change assigns a new array.
        last: (n,) the `Mode` of every body in the last accepted step, None before.
    """

    def __init__(self, model: Model, articulations: Articulations):
        self.model, self.settings, self.articulations = model, model.settings, articulations
        self._smooth_scheme = self.settings.integrator == "generalized_alpha"
        self.history = np.zeros(len(model.bodies), dtype=np.int32)
        self._may_turn_fast = self._smooth_scheme and bool(articulations.tumbling.any())
        self._moment = model.bodies.moment[articulations.tumbling]
        self._middle = self._moment.sum(axis=1) - np.sort(self._moment, axis=1)[:, 1]
        self._scheme = self._system = self._mode = self._mode_of = self._unchanged = self.last = None  # cached from the last step
        self._resolved = None, None

    @property
    def history(self) -> np.ndarray:
        return self._history

    @history.setter
    def history(self, history: np.ndarray) -> None:
        self._history = history
        self._is_special = bool(((history != History.NONE) & (history != History.USED)).any())

    @cached_property
    def _held(self) -> tuple[np.ndarray, np.ndarray]:
        return held_axes(self.model)

    def rule(self, h: float | np.ndarray) -> Scheme | Schemes:
        """Return the scheme of a step of h [s], scalar or (n,); cached for equal lengths."""
        settings = self.settings
        if isinstance(h, np.ndarray):
            each, of = np.unique(h, return_inverse=True)
            if len(each) > 1:
                return Schemes(tuple(scheme(settings.integrator, float(one), settings.spectral_radius) for one in each), of)
            h = float(each[0])
        if self._scheme is None or self._scheme.h != h:
            self._scheme = scheme(settings.integrator, h, settings.spectral_radius)
        return self._scheme

    def dissipative(
        self, contact: np.ndarray, h: float | np.ndarray, fastest: float, state: Callable[[], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """Return (n,) bool, bodies that implicit Euler integrates in a step of h [s], scalar or (n,).

        They have active `contact` (n,) at the start, follow a jump, or are in joints and turn further than `FAST_TURN`.
        fastest: largest |dA/dt| of a body [1/s]; state: returns q and qd (n, 12)."""
        out = contact
        if self._is_special:
            out = out | (self.history < 0) | (self.history == History.CHANGED_PENALTY)
        if not self._may_turn_fast or longest(h) * fastest < FAST_TURN:
            return out
        tumbling, (held, axis) = self.articulations.tumbling, self._held
        q, qd = state()
        w = spin(q, qd)
        A, rate, h = q[:, 3:].reshape(-1, 3, 3), qd[:, 3:].reshape(-1, 3, 3), np.broadcast_to(h, len(q))
        L = np.linalg.norm(free_motion.torque(rate[tumbling] * self._moment[:, None], A[tumbling]), axis=1)
        turning_fast = np.zeros(len(contact), dtype=bool)
        turning_fast[tumbling] = h[tumbling] * L > FAST_TURN * self._middle
        across = np.linalg.norm(np.cross(w[held], np.einsum("kij,kj->ki", A[held], axis)), axis=1)
        turning_fast[held[h[held] * across > FAST_TURN]] = True
        return out | self.articulations.containing(turning_fast)

    def of(self, dissipative: np.ndarray) -> np.ndarray:
        """Return (n,) the `Mode` of every body, `SMOOTH` if not dynamic; the same object while it does not change."""
        if self._mode is None or dissipative is not self._mode_of[0] or self.history is not self._mode_of[1]:
            self._mode_of = dissipative, self.history
            cases = [self.history == History.USED, self.history == History.STARTED]
            smooth = np.select(cases, [Mode.SMOOTH, Mode.SECOND], Mode.FRESH)
            dissipative = dissipative | (not self._smooth_scheme)
            mode = np.where(self.articulations.dynamic, np.where(dissipative, Mode.DISSIPATIVE, smooth), Mode.SMOOTH)
            if self._mode is None or not np.array_equal(mode, self._mode):
                self._mode = mode
        return self._mode

    def returning(self, dissipative: np.ndarray) -> np.ndarray:
        """Return (n,) bool, jointed bodies that return to generalized alpha."""
        if not self._is_special or not self._smooth_scheme:
            return self.articulations.none
        return (self.history == History.RETURNS) & ~dissipative

    @property
    def changed(self) -> np.ndarray:
        """(n,) bool, bodies of joints that have changed since the last step."""
        return self.history >= History.CHANGED if self._is_special else self.articulations.none

    def smooth(self, mode: np.ndarray) -> np.ndarray:
        """Return (n,) bool, bodies of a smooth scheme, which must not be in contact."""
        return self.articulations.dynamic & (mode != Mode.DISSIPATIVE) if self._smooth_scheme else self.articulations.none

    def restart(self, h: float | np.ndarray, previous_h: float | np.ndarray) -> None:
        """Restart generalized alpha of bodies whose step of h [s] is not as long as the last one; scalars or (n,).

        Otherwise joint forces would oscillate after the change, and grow with lengths that change often."""
        if not self._smooth_scheme or (isinstance(h, float) and isinstance(previous_h, float) and h == previous_h):
            return
        differs = np.not_equal(h, previous_h) & np.not_equal(previous_h, 0.0)
        restarts = differs & np.isin(self.history, (History.USED, History.STARTED))
        states = np.where(self.articulations.jointed, History.RETURNS, History.NONE)
        self.history = np.where(restarts, states, self.history).astype(np.int32)

    def jump(self, bodies: np.ndarray, constraints: bool = False) -> None:
        """Record a jump of loads or constraints of bodies (indices, or (n,) bool).

        Implicit Euler integrates articulations in the next step, after a change of constraints in `AFTER_JUMP`; free bodies
        restart their history."""
        jumping = np.zeros(len(self.history), dtype=bool)
        jumping[bodies] = True
        moving = self.articulations.containing(jumping) & (constraints | (self.history != History.NONE))
        steps = np.minimum(-AFTER_JUMP if constraints else -1, self.history)
        if not constraints:
            steps = np.where(self.changed, History.CHANGED_PENALTY, steps)
        steps = np.where(self.articulations.jointed, steps, History.NONE)
        self.history = np.where(moving, steps, self.history).astype(np.int32)

    def refit(self, articulation: np.ndarray, penalty: bool) -> None:
        """Fit the velocities of the bodies of an articulation (n,) bool to a joint that has changed, before the next step.

        penalty: whether the articulation has `penalty` rows."""
        penalty = penalty | (self.history < 0) | (self.history == History.CHANGED_PENALTY)
        states = np.where(penalty, History.CHANGED_PENALTY, History.CHANGED)
        self.history = np.where(articulation, states, self.history).astype(np.int32)

    def became(self, mode: np.ndarray, system: JointSystem) -> None:
        """Update the history after an accepted step in these modes (n,)."""
        if system is not self._system:
            self._system, self._sprung, self._unchanged = system, self._find_sprung(system), None
        if mode is self.last and self.history is self._unchanged:
            return
        smooth = self.articulations.dynamic & (mode != Mode.DISSIPATIVE)
        starts = smooth & (mode == Mode.FRESH) & self.articulations.jointed & ~self._sprung
        cases = [starts, smooth, self.history < -1, self.history == History.CHANGED_PENALTY]
        states = np.where(self.articulations.jointed, History.RETURNS, History.NONE)
        left = np.select(cases, [History.STARTED, History.USED, self.history + 1, -1], states).astype(np.int32)
        self.last, self._unchanged = mode, self.history
        if not np.array_equal(left, self.history):
            self.history = left

    def resolved(self, system: JointSystem) -> np.ndarray:
        """Return (R,) bool, joint rows whose vibrations steps resolve (`abd.joints.rows.springs.resolved`)."""
        if system is not self._resolved[0]:
            self._resolved = system, resolved(self.model, system)
        return self._resolved[1]

    def stiff_compliances(self, system: JointSystem) -> np.ndarray:
        """Return (R,) bool, rows of compliant joints whose vibrations steps do not resolve: they count as constraints."""
        return system.compliant & ~self.resolved(system) if system.compliant.any() else system.compliant

    def _find_sprung(self, system: JointSystem) -> np.ndarray:
        """Return (n,) bool, bodies of articulations with springs that follow the trapezoidal rule.

        They take no `Mode.SECOND` step, whose coefficients are those of joint forces without such springs; nor do free bodies."""
        ends = np.stack(system.row_bodies)[:, self.resolved(system)]
        return self.articulations.containing(np.isin(np.arange(len(self.history)), ends))
