"""Joint rows: their laws in a step and their history, by the definitions of `abd.joints.rows.system`."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.reference.numpy_motion import HostScheme
from abd.backends.reference.parts.conditions import Inactive
from abd.backends.reference.parts.states import States
from abd.backends.reference.potential import Potential
from abd.backends.turns import Turns
from abd.by_bodies import PerBody
from abd.joints.rows.forces import Applied, working_forces
from abd.joints.rows.springs import pulls, resolved, whole
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable, values
from abd.model import Model
from abd.potentials.integrators import Mode, Scheme, Schemes, row_stiffness_weights, row_weights
from abd.tables import copied
from cuda_kernels.shared import slots


class Rows:
    """Implementation of `abd.backends.protocol.Rows`.

    Attributes:
        memory: after the last step; applied: its laws; pushed: (R,) forces that do work, before it.
        resolved: (R,) bool, rows whose forces the trapezoidal rule integrates (`abd.joints.rows.springs`).
    """

    def __init__(
        self, model: Model, constants: BodyData, potential: Potential, states: States, scheme: HostScheme, inactive: Inactive
    ):
        self.model, self.constants, self.inactive = model, constants, inactive
        self.potential, self.states, self.scheme = potential, states, scheme
        self.at, self.islands, self.n = potential.at, potential.islands, potential.n
        self._set_up()

    def set_joints(self, system: JointSystem) -> None:
        self.potential.set_joints(system)
        self._set_up()

    def _set_up(self) -> None:
        self.system = self.potential.joints.system
        self.islands.tie(self.system, self.potential.ties)
        smooth = self.model.settings.integrator == "generalized_alpha"
        self.resolved = resolved(self.model, self.system) & smooth

    @property
    def rule(self) -> Scheme | Schemes:
        """The scheme of the present step, or those of several worlds."""
        return self.scheme.rule

    def load(self, memory: JointMemory) -> None:
        self.memory = copied(memory)

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        system, memory = self.system, self.memory
        self.row_weights = row_weights(self.rule, self.scheme.mode, *system.row_bodies)
        system.update_measures(memory, self.states.now)
        law, p = system.laws(memory, self.row_weights, ch2, time, speed, self.stiffness_weights())
        self.potential.joints.begin(law, p, memory.reference, system.shifts(memory, ch2), ch2, time)
        return system.closed_gap(law, p, memory.history[slots.VALUE])

    def stiffness_weights(self) -> np.ndarray:
        """Return (R,) weights of the stiffness of rows in the present step."""
        return np.where(self.resolved, row_stiffness_weights(self.rule, self.scheme.mode, *self.system.row_bodies), 1.0)

    def pulls(self, q: np.ndarray) -> np.ndarray:
        """Return (n, 12) `abd.joints.rows.springs.pulls` in the states q (n, 12), zero for bodies with implicit Euler."""
        if not self.resolved.any():
            return np.zeros((self.n, 12))
        found = pulls(self.system, np.flatnonzero(self.resolved), self.stiffness_weights(), q, self.memory.reference)
        return np.where((self.scheme.mode == Mode.DISSIPATIVE)[:, None], 0.0, found)

    def finish(self) -> None:
        """Store the laws and the history of the rows after the step."""
        joints, ch2 = self.potential.joints, self.rule.ch2
        joints.give(self.at.q)
        p = whole(self.system, np.flatnonzero(self.resolved), self.stiffness_weights(), joints.p, self.system.of_rows(ch2))
        self.applied = Applied.of_step(self.system, joints.law, p, joints.shift.copy(), ch2)
        self.pushed = self.memory.history[slots.WORKING]
        self.memory = self.system.remember(self.memory, self.at.q, self.row_weights, joints.p, joints.shift, ch2)
        self.memory.history[slots.WORKING] = working_forces(self.system, self.applied, self.memory.history[slots.VALUE])

    def take_efforts(self) -> None:
        """Do nothing: the laws read changed efforts of joint rows from the host."""

    def limited(self) -> np.ndarray:
        flags = np.zeros(self.n + 1, dtype=bool)  # the last entry is the world
        pushing = self.potential.joints.limits_at_work(self.at.q)
        for bodies in self.system.row_bodies:
            flags[bodies[pushing]] = True
        return flags[:-1]

    def turned(self, limit: float) -> np.ndarray:
        flags, table = np.zeros(self.n + 1, dtype=bool), self.system.table  # the last entry is the world
        if self.system.counts_turns:
            reference = self.memory.reference
            is_turned = table.counts_turns & (np.abs(values(table, self.at.q, reference) - reference) > limit)
            flags[table.child[is_turned]] = flags[table.parent[is_turned]] = True
        return flags[:-1]

    def joint_memory(self) -> JointMemory:
        return copied(self.memory)

    def applied_laws(self, memory: JointMemory) -> Applied:
        return self.applied

    def watch_turns(self, table: MeasureTable) -> Turns:
        return Turns(table, self.states)

    def errors(self) -> np.ndarray:
        """Return (islands,) largest residuals of the exact rows over their tolerances at the iterate."""
        joints = self.potential.joints
        errors = np.where(joints.with_bodies(self.inactive.mobile), joints.errors(self.at.q), 0.0)
        return -self.islands.minima(-errors, joints.owners, np.zeros(self.islands.count))

    def update_multipliers(self, direction: np.ndarray, done: np.ndarray) -> None:
        """Add stiffness forces of exact rows at the end of a direction (n, 12) to their multipliers, except in done islands.

        Call it after the trial became the iterate, while the trial holds the previous iterate.
        """
        joints = self.potential.joints
        linear, measured, _ = joints.predicted(self.at.trial, direction)
        joints.update_multipliers(linear, measured, skipped=done[self.islands.host])
        self.potential.evaluate()
