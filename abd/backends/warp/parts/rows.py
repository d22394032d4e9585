"""Joint rows on a device: their laws in a step and their history."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.graphs import Graphs
from abd.backends.turns import Turns
from abd.backends.warp.parts.states import States
from abd.backends.warp.potential import Potential
from abd.backends.warp.scheme import DeviceScheme
from abd.backends.warp.scratch import Scratch
from abd.backends.warp.springs import Springs
from abd.backends.warp.terms.row_memory import RowMemory
from abd.backends.warp.turns import CountedTurns
from abd.by_bodies import PerBody
from abd.joint_list import JointList
from abd.joints.rows.forces import Applied
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Kind, Model
from cuda_kernels.bodies import poses
from cuda_kernels.parallel import sums


class Rows:
    """Implementation of `abd.backends.protocol.Rows`.

    Attributes:
        memory: history of the rows; springs: springs that the trapezoidal rule integrates.
        needs_host: whether joints have users' functions that the host evaluates between launches.
    """

    def __init__(
        self, model: Model, potential: Potential, states: States, scheme: DeviceScheme, graphs: Graphs, scratch: Scratch
    ):
        self.model, self.potential, self.states = model, potential, states
        self.scheme, self.graphs, self.scratch = scheme, graphs, scratch
        self.device, self.islands, self.at, self.n = potential.device, potential.islands, potential.at, potential.n
        self._set_up()

    def set_joints(self, system: JointSystem) -> None:
        self.potential.set_joints(system)
        self._set_up()

    def _set_up(self) -> None:
        joints, self.scheme.writer = self.potential.joints, None
        active = JointList.of(self.model.joints).column("active").astype(bool)
        smooth = self.model.settings.integrator == "generalized_alpha"
        which = resolved(self.model, joints.system) & smooth
        self.memory = RowMemory(joints, active, which, self.scheme.stiffness_weights, self.device)
        self.springs = Springs(joints, self.memory, which, self.n, self.device)
        self.islands.tie(joints.system, self.potential.ties)
        self.needs_host = joints.system.has_user_functions
        self.graphs.needs_host = self.needs_host
        self.islands.renumber(self.model.bodies.kind != Kind.STATIC, np.zeros((0, 2), dtype=int))

    def load(self, memory: JointMemory) -> None:
        self.memory.load(memory)

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        states = self.states
        return self.memory.begin(self.scheme.of_rows, ch2, time, speed, states.now, lambda: states.read_state()[0])

    def take_efforts(self) -> None:
        self.memory.take_efforts()

    def limited(self) -> np.ndarray:
        if not self.memory.has_limits:
            return np.zeros(self.n, dtype=bool)
        marks = self.scratch.marks
        self.device.fill(marks)
        self.memory.mark_limited(self.at.current, marks)
        return self.device.read(marks) != 0

    def turned(self, limit: float) -> np.ndarray:
        if not self.potential.joints.system.counts_turns:
            return np.zeros(self.n, dtype=bool)
        marks = self.scratch.marks
        self.device.fill(marks)
        self.memory.mark_turned(self.at.current, limit, marks)
        return self.device.read(marks) != 0

    def joint_memory(self) -> JointMemory:
        return self.memory.read()

    def applied_laws(self, memory: JointMemory) -> Applied:
        return self.memory.applied(memory)

    def watch_turns(self, table: MeasureTable) -> Turns:
        return CountedTurns(table, self.states)

    # Newton iterations -------------------------------------------------------------------------------------------

    def launch_errors(self, out: wp.array) -> None:
        """Compute the largest relative residual of exact rows at the iterate, `out` (islands,); launches only."""
        a = self.scratch.a
        self.device.fill(a)
        self.potential.joints.errors(self.at.current, self.islands.done, a)
        self.islands.reduce(a, sums.MAX, out)

    def update_multipliers(self, direction: wp.array) -> None:
        """Transfer the stiffness forces of exact rows at the end of a direction (n, 12) to their multipliers.

        Call it after `Potential.exchange`, while the trial holds the previous iterate.
        """
        joints, at, straight, done = self.potential.joints, self.at, self.scratch.straight, self.islands.done
        self.device.launch(poses.go_straight, self.n, at.trial, direction, straight)
        joints.relinearize(at.trial, direction, done)
        joints.update_multipliers(straight, done)
        joints.evaluate(at, "current")
