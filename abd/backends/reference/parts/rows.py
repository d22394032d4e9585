"""Joint rows: their laws in a step and their history, by the definitions of `abd.joints.rows.system`."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.turns import Turns
from abd.by_bodies import PerBody
from abd.joints.rows.forces import Applied, working_forces
from abd.joints.rows.springs import pulls, resolved, whole
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable, values
from abd.potentials.integrators import Mode, row_stiffness_weights, row_weights
from abd.tables import copied
from cuda_kernels.parallel import sums
from cuda_kernels.shared import slots


class Rows:
    """Implementation of `abd.backends.protocol.Rows`.

    Attributes:
        memory: after the last step; applied: its laws; pushed: (R,) forces that do work, before it.
        resolved: (R,) bool, rows whose forces the trapezoidal rule integrates (`abd.joints.rows.springs`).
    """

    def __init__(self, backend):
        self.backend, self.at, self.islands, self.n = backend, backend.at, backend.islands, backend.n
        self.scheme, self.scratch, self.states = backend.scheme, backend.scratch, backend.states
        self._set_up()

    def set_joints(self, system: JointSystem) -> None:
        self.backend.potential.set_joints(system)
        self._set_up()

    def _set_up(self) -> None:
        model, self.system = self.backend.model, self.backend.system
        self._change = np.zeros((len(self.backend.joints.owners), 3))
        self.islands.tie(self.system)
        smooth = model.settings.integrator == "generalized_alpha"
        self.resolved = resolved(model, self.system) & smooth

    def load(self, memory: JointMemory) -> None:
        self.memory = copied(memory)

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        system, memory = self.system, self.memory
        self.row_weights = row_weights(self.scheme.rule, self.scheme.mode, *system.row_bodies)
        system.update_measures(memory, self.states.now)
        law, p = system.laws(memory, self.row_weights, ch2, time, speed, self.stiffness_weights())
        self.backend.joints.begin(law, p, memory.reference, system.shifts(memory, ch2), ch2, time)
        return system.closed_gap(law, p, memory.history[slots.VALUE])

    def stiffness_weights(self) -> np.ndarray:
        """Return (R,) weights of the stiffness of rows in the present step."""
        return np.where(self.resolved, row_stiffness_weights(self.scheme.rule, self.scheme.mode, *self.system.row_bodies), 1.0)

    def pulls(self, q: np.ndarray) -> np.ndarray:
        """Return (n, 12) `abd.joints.rows.springs.pulls` in the states q (n, 12), zero for bodies with implicit Euler."""
        if not self.resolved.any():
            return np.zeros((self.n, 12))
        found = pulls(self.system, np.flatnonzero(self.resolved), self.stiffness_weights(), q, self.memory.reference)
        return np.where((self.scheme.mode == Mode.DISSIPATIVE)[:, None], 0.0, found)

    def finish(self) -> None:
        """Store the laws and the history of the rows after the step."""
        joints, ch2 = self.backend.joints, self.scheme.rule.ch2
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
        pushing = self.backend.joints.limits_at_work(self.at.q)
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

    # Newton iterations, as in `abd.backends.warp.parts.rows` -------------------------------------------------------

    def evaluate(self) -> None:
        """Do nothing, as `Potential.evaluate`."""

    @property
    def _done(self) -> np.ndarray:
        """(n,) bool, bodies that are done."""
        return self.islands.done.numpy() != 0

    def _fold(self, operation: np.ufunc, values: np.ndarray, start: float, out: wp.array) -> None:
        """Reduce values (l + R,) of the rows over their owners, `out` (n,)."""
        out.numpy()[:] = start
        operation.at(out.numpy(), self.backend.joints.owners, values)

    def launch_errors(self, out: wp.array) -> None:
        joints, each = self.backend.joints, self.scratch.a
        has_mobile = joints.with_bodies(self.backend.inactive.mobile & ~self._done)
        errors = joints.errors(self.at.q)
        self._fold(np.maximum, np.where(has_mobile, errors, np.minimum(errors, 0.0)), -1.0, each)
        self.islands.reduce(each, sums.MAX, out)

    def update_multipliers(self, direction: wp.array) -> None:
        joints = self.backend.joints
        linear, measured, _ = joints.predicted(self.at.trial, direction.numpy())
        joints.update_multipliers(linear, measured, skipped=self._done)

    def launch_gaps(self) -> None:
        self._gaps = self.backend.joints.gaps(self.at.q)

    def launch_open_fractions(self, out: wp.array) -> None:
        joints = self.backend.joints
        self._fold(np.minimum, joints.open_fractions(self._gaps, joints.gaps(self.at.trial)), 1.0, out)

    def launch_effort_changes(self, direction: wp.array, out: wp.array) -> None:
        changes = self.backend.joints.effort_changes(self.at.q, direction.numpy(), self._done)
        self._fold(np.maximum, changes, 0.0, out)

    def launch_predicted_errors(self, direction: wp.array, out: wp.array, energy: wp.array) -> None:
        joints = self.backend.joints
        residuals, self._jacobian = joints.closable(self.at.q, direction.numpy())
        has_mobile = joints.with_bodies(self.backend.inactive.mobile & ~self._done)
        self._residuals = np.where(has_mobile[:, None], residuals, 0.0)
        self._fold(np.maximum, joints.left_open(self._residuals), 0.0, out)
        self._fold(np.add, np.sum(joints.strengths * self._residuals**2, axis=1), 0.0, energy)

    def launch_missing(self, out: wp.array) -> None:
        out.numpy()[:] += self.backend.joints.pull_back(self._residuals, self._jacobian)

    def step_multipliers(self, weight: wp.array, turn: wp.array) -> None:
        of = self.islands.host[self.backend.joints.owners]
        self._change = self._residuals + turn.numpy()[of, None] * self._change
        self.backend.joints.step_multipliers(weight.numpy()[of, None] * self._change)
