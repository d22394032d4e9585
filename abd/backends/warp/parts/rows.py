"""Joint rows on a device: their laws in a step, their history, their springs and their turns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.upload import upload_measures
from abd.backends.turns import Turns
from abd.backends.warp.terms.joint_ends import lists_of
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.row_memory import RowMemory
from abd.by_bodies import PerBody
from abd.joint_list import JointList
from abd.joints.rows.forces import Applied
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from cuda_kernels.bodies import poses
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.joints import measures, springs
from cuda_kernels.parallel import sums


class Rows:
    """Implementation of `abd.backends.protocol.Rows`.

    Attributes:
        memory: history of the rows; springs: springs that the trapezoidal rule integrates.
        needs_host: whether joints have users' functions that the host evaluates between launches.
    """

    def __init__(self, backend):
        self.backend, self.device, self.islands = backend, backend.device, backend.islands
        self.at, self.scratch, self.n = backend.at, backend.scratch, backend.n
        self._set_up()

    def set_joints(self, system: JointSystem) -> None:
        self.backend.potential.set_joints(system)
        self._set_up()

    def _set_up(self) -> None:
        b, model, joints = self.backend, self.backend.model, self.backend.joints
        b.scheme.writer = None
        active = JointList.of(model.joints).column("active").astype(bool)
        smooth = model.settings.integrator == "generalized_alpha"
        which = resolved(model, joints.system) & smooth
        self.memory = RowMemory(joints, active, which, b.scheme.stiffness_weights, self.at.step.ch2, self.device)
        self.springs = Springs(joints, self.memory, which, self.n, self.device)
        self.islands.tie(joints.system)
        self.needs_host = b.graphs.needs_host = joints.system.has_user_functions

    def load(self, memory: JointMemory) -> None:
        self.memory.load(memory)

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        states = self.backend.states
        return self.memory.begin(self.backend.scheme.of_rows, ch2, time, speed, states.now, lambda: states.read_state()[0])

    def take_efforts(self) -> None:
        self.memory.take_efforts()

    def limited(self) -> np.ndarray:
        if not self.memory.has_limits:
            return np.zeros(self.n, dtype=bool)
        return self._marked(lambda marks: self.memory.mark_limited(self.at.current, marks))

    def turned(self, limit: float) -> np.ndarray:
        if not self.backend.joints.system.counts_turns:
            return np.zeros(self.n, dtype=bool)
        return self._marked(lambda marks: self.memory.mark_turned(self.at.current, limit, marks))

    def _marked(self, mark: Callable[[wp.array], None]) -> np.ndarray:
        """(n,) bool, bodies that launches set to 1 in an array."""
        self.device.fill(self.scratch.marks)
        mark(self.scratch.marks)
        return self.device.read(self.scratch.marks) != 0

    def joint_memory(self) -> JointMemory:
        return self.memory.read()

    def applied_laws(self, memory: JointMemory) -> Applied:
        return self.memory.applied(memory)

    def watch_turns(self, table: MeasureTable) -> Turns:
        return CountedTurns(table, self.backend.states)

    # Newton iterations; all methods only launch kernels ------------------------------------------------------------

    def evaluate(self) -> None:
        """Evaluate the energies of the rows at the iterate."""
        self.backend.joints.evaluate(self.at, "current")

    def launch_gaps(self) -> None:
        """Compute the gaps of all joint limits at the iterate, the reference of `launch_open_fractions`."""
        self.backend.joints.measure_gaps(self.at.current)

    def launch_open_fractions(self, out: wp.array) -> None:
        """Compute the fraction of the step to the trial that keeps the limits of every body open, `out` (n,)."""
        self.device.fill(out, 1.0)
        self.backend.joints.open_fractions(self.at.trial, out)

    def launch_effort_changes(self, direction: wp.array, out: wp.array) -> None:
        """Compute the largest change of friction and of limited drives of every body along a direction, `out` (n,)
        (`abd.backends.warp.terms.joints.Joints.effort_changes`)."""
        self.device.fill(out)
        self.backend.joints.effort_changes(direction, self.islands.done, out)

    def launch_predicted_errors(self, direction: wp.array, out: wp.array, energy: wp.array) -> None:
        """Compute the largest relative residual c of exact rows of every body by the linear model at the end of a direction,
        `out` (n,), and the sum of ``c K c``, `energy` (n,)."""
        straight = self.scratch.straight
        self.device.launch(poses.go_straight, self.n, self.at.current, direction, straight)
        self.device.fill(out)
        self.device.fill(energy)
        self.backend.joints.predicted_errors(straight, direction, self.islands.done, out, energy)

    def launch_missing(self, out: wp.array) -> None:
        """Add the forces ``C^T K c`` of the residuals from `launch_predicted_errors` to `out` (n, 12)."""
        self.backend.joints.add_missing(self.scratch.straight, self.islands.done, out)

    def step_multipliers(self, weight: wp.array, turn: wp.array) -> None:
        """Update multipliers: s = c + turn s, lambda += weight K s, with residuals c from `launch_predicted_errors` and numbers
        per island."""
        self.backend.joints.step_multipliers(self.scratch.straight, self.islands.island, weight, turn)

    def launch_errors(self, out: wp.array) -> None:
        """Compute the largest relative residual of exact rows at the iterate, `out` (islands,), -1 without any; launches only."""
        a = self.scratch.a
        self.device.fill(a, -1.0)
        self.backend.joints.errors(self.at.current, self.islands.done, a)
        self.islands.reduce(a, sums.MAX, out)

    def update_multipliers(self, direction: wp.array) -> None:
        """Transfer the stiffness forces of exact rows at the end of a direction (n, 12) to their multipliers.

        Call it after `Potential.exchange`, while the trial holds the previous iterate.
        """
        joints, at, straight, done = self.backend.joints, self.at, self.scratch.straight, self.islands.done
        self.device.launch(poses.go_straight, self.n, at.trial, direction, straight)
        joints.relinearize(at.trial, direction, done)
        joints.update_multipliers(straight, done)
        joints.evaluate(at, "current")


class Springs:
    """Springs of the joint rows `which` (R,) bool that the trapezoidal rule integrates (`abd.joints.rows.springs`).

    Attributes:
        pulled, pulls: (n, 12) forces (`abd.joints.rows.springs.pulls`) at the start and at the end of the step; zero if there
            are no springs.
    """

    def __init__(self, joints: Joints, memory: RowMemory, which: np.ndarray, n: int, device: Device):
        self.joints, self.memory, self.device = joints, memory, device
        self.pulled, self.pulls = (device.zeros((n, 12), wp.float64) for _ in range(2))
        rows = np.flatnonzero(which)
        parent, child = (ends[rows].astype(np.int64) for ends in joints.system.row_bodies)
        inner = parent >= 0
        owners, codes = np.concatenate([child, parent[inner]]), np.concatenate([2 * rows, 2 * rows[inner] + 1])
        bodies, owners = np.unique(owners, return_inverse=True)
        self.count = len(bodies)
        lists = (bodies, *lists_of(owners, codes, self.count))
        self.bodies, self.starts, self.entries = (device.upload(one.astype(np.int32), wp.int32) for one in lists)
        self.no_bodies = device.zeros(max(n, 1), wp.int32)

    def launch(self, pose: Pose, mode: wp.array, out: wp.array) -> None:
        """Compute the forces at a pose on bodies with modes (n,), into `pulled` or `pulls`; launches only."""
        if not self.count:
            return
        joints, launch = self.joints, self.device.launch
        ends = joints.values, joints.gradients_child, joints.gradients_parent
        joints.custom.supply(pose, True)
        launch(measures.measure_values, joints.measure_count, joints.measures, pose, joints.values)
        launch(
            measures.measure_gradients, joints.measure_count, joints.measures, pose, self.no_bodies, *ends[1:], grain=256
        )
        ends_of_bodies = self.bodies, self.starts, self.entries
        launch(springs.pull, self.count, *ends_of_bodies, self.memory.row_laws, joints.rows, mode, *ends, pose, out)


class CountedTurns(Turns):
    """Turn counter on the device; if a counted measure is a user's Python function, the host counts."""

    def __init__(self, table: MeasureTable, states):
        super().__init__(table, states)
        self.chosen = np.flatnonzero(table.counts_turns)
        self.by_host = any(table.counts_turns[group.measure].any() for group in table.custom)
        if not self.by_host:
            self.measures = upload_measures(table.part(self.chosen), states.device)

    def set(self, near: np.ndarray) -> None:
        super().set(near)
        if not self.by_host:
            self.states.device.write(self.measures.reference, near[self.chosen])

    def count(self, ahead: np.ndarray | None = None) -> None:
        if self.by_host:
            super().count(ahead)
            return
        if ahead is not None:
            self.set(self.near() + ahead)
        reference = self.measures.reference
        self.states.device.launch(
            measures.measure_values, len(self.chosen), self.measures, self.states.at.current, reference, grain=512
        )

    def near(self) -> np.ndarray:
        if not self.by_host:
            self._near[self.chosen] = self.states.device.read(self.measures.reference)
        return super().near()
