"""Joint rows on a device: whose laws a step has, and what they remember."""

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
from abd.by_bodies import OfBodies
from abd.joint_list import JointList
from abd.joints.rows.forces import Applied
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Kind, Model
from cuda_kernels.bodies import poses
from cuda_kernels.parallel import sums


class Rows:
    """`abd.backends.protocol.Rows` says what each call does.

    Attributes:
        memory: what the rows remember; springs: those that follow the trapezoidal rule.
        asks_host: whether joints have functions of users, which the host evaluates between the launches.
    """

    def __init__(
        self, model: Model, potential: Potential, states: States, scheme: DeviceScheme, graphs: Graphs, scratch: Scratch
    ):
        self.model, self.potential, self.states = model, potential, states
        self.scheme, self.graphs, self.scratch = scheme, graphs, scratch
        self.device, self.islands, self.at, self.n = potential.device, potential.islands, potential.at, potential.n
        self._take()

    def set_joints(self, system: JointSystem) -> None:
        self.potential.set_joints(system)
        self._take()

    def _take(self) -> None:
        joints, self.scheme.said = self.potential.joints, None
        active = JointList.of(self.model.joints).column("active").astype(bool)
        smooth = self.model.settings.integrator == "generalized_alpha"
        which = resolved(self.model, joints.system) & smooth
        self.memory = RowMemory(joints, active, which, self.scheme.shares, self.device)
        self.springs = Springs(joints, self.memory, which, self.n, self.device)
        self.islands.tie(joints.system, self.potential.ties)
        self.asks_host = joints.system.asks_users
        self.graphs.asks_host = self.asks_host
        self.islands.renumber(self.model.bodies.kind != Kind.STATIC, np.zeros((0, 2), dtype=int))

    def load(self, memory: JointMemory) -> None:
        self.memory.load(memory)

    def begin_joints(self, ch2: OfBodies, time: OfBodies, speed: float) -> int | None:
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

    # what Newton asks --------------------------------------------------------------------------------------------

    def launch_errors(self, out: wp.array) -> None:
        """Largest residual of the exact rows over its tolerance, at the current iterate, into `out` (islands,); launches only."""
        a = self.scratch.a
        self.device.fill(a)
        self.potential.joints.errors(self.at.current, a)
        self.islands.reduce(a, sums.MAX, out)

    def update_multipliers(self, direction: wp.array) -> None:
        """Let the multipliers of the exact rows take over what their stiffness carries at the end of a direction (n, 12).

        To be called after the trial became the iterate, when the iterate before it is still there.
        """
        joints, at, straight, done = self.potential.joints, self.at, self.scratch.straight, self.islands.done
        self.device.launch(poses.go_straight, self.n, at.trial, direction, straight)
        joints.relinearize(at.trial, direction, done)
        joints.take_over(straight, True, done)
        joints.evaluate(at, "current")
