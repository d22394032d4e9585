"""What joints remember from step to step, by the definitions of `abd.joints.rows.system`."""

from __future__ import annotations

import numpy as np

from abd.backends.warp.turns import Turns
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory
from abd.joints.rows.table import MeasureTable, values
from abd.potentials.integrators import row_weights


class NumpyRowMemory:
    """Laws at the beginning of a step and the memory after it; the part of `NumpyBackend` that `RowMemory` is of the kernels.

    Attributes:
        memory: after the last step; applied: its laws.
    """

    def begin_joints(self, memory: JointMemory | None, ch2: float, time: float, speed: float) -> int | None:
        """Laws of a (sub)step that was begun and ends at `time` [s] (`JointSystem.laws`); a memory if the host changed it.

        Returns:
            the first barrier row whose gap is closed, None without.
        """
        if memory is not None:
            self.memory = memory.copy()
        system, memory = self.system, self.memory
        self.row_weights = row_weights(self.rule, self.mode, *system.row_bodies)
        system.follow(memory, self.now)
        law, p = system.laws(memory, self.row_weights, ch2, time, speed)
        self.joints.begin(law, p, memory.reference, system.shifts(memory, ch2), ch2, time)
        return system.closed_gap(law, p, memory.history[0])

    def end_joints(self) -> None:
        """Remember what the rows did in the step."""
        joints, ch2 = self.joints, self.step.ch2
        joints.give(self.q)
        self.applied = Applied.of_step(joints.law, joints.p.copy(), self.system.linear.K, joints.shift.copy(), ch2)
        self.memory = self.system.remember(self.memory, self.q, self.row_weights, joints.p, joints.shift, ch2)

    def take_efforts(self) -> None:
        """Efforts of joint rows that the host has changed, where the laws look for them anyway."""

    def limited(self) -> np.ndarray:
        """(n,) bool, bodies on which joint limits or ropes push at the current iterate."""
        flags = np.zeros(self.n + 1, dtype=bool)  # the last one stands for the world
        pushing = self.joints.limits_at_work(self.q)
        for bodies in self.system.row_bodies:
            flags[bodies[pushing]] = True
        return flags[:-1]

    def turned(self, limit: float) -> np.ndarray:
        """(n,) bool, bodies of angles of joint rows that are more than `limit` [rad] from where the step began."""
        flags, table = np.zeros(self.n + 1, dtype=bool), self.system.table  # the last one stands for the world
        if self.system.counts_turns:
            reference = self.memory.reference
            far = table.counts_turns & (np.abs(values(table, self.q, reference) - reference) > limit)
            flags[table.child[far]] = flags[table.parent[far]] = True
        return flags[:-1]

    def joint_memory(self) -> JointMemory:
        """What the joints remember of the last step."""
        return self.memory.copy()

    def applied_laws(self, memory: JointMemory) -> Applied:
        """Laws of the last step, which left `memory`."""
        return self.applied

    def watch_turns(self, table: MeasureTable) -> Turns:
        """Who counts the turns of the angles of a table."""
        return Turns(table, self)
