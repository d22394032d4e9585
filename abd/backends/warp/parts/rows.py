"""Joint rows on a device: their laws in a step, their history and their springs.

The definitions are `JointSystem.laws`, `remember` and `update_measures` and `abd.joints.rows.forces`. The host reads and writes
the whole history if something other than a step changes it.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import ONE_THREAD, Device
from abd.backends.device.upload import upload_struct
from abd.backends.turns import CountedTurns, Turns
from abd.backends.warp.terms.joint_ends import lists_of
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.row_tables import Timed, codes, flags
from abd.by_bodies import PerBody
from abd.joint_list import JointList
from abd.joints.rows.forces import Applied
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import HISTORY, JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from cuda_kernels.bodies import poses
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.joints import measures, row_memory, springs
from cuda_kernels.joints.row_laws import RowLaws
from cuda_kernels.parallel import sums
from cuda_kernels.shared import slots
from cuda_kernels.step import statistics


class Rows:
    """Implementation of `abd.backends.protocol.Rows`.

    Attributes:
        row_laws, memory: laws and history of the rows; linear: (l,) multipliers of linear rows; scale: (n,) c h^2 [s^2].
        springs: springs that the trapezoidal rule integrates.
    """

    def __init__(self, backend):
        self.backend, self.device, self.islands = backend, backend.device, backend.islands
        self.at, self.scratch, self.n = backend.at, backend.scratch, backend.n
        self._set_up()

    def set_joints(self, system: JointSystem) -> None:
        self.backend.potential.set_joints(system)
        self._set_up()

    def _set_up(self) -> None:
        b, d, model = self.backend, self.device, self.backend.model
        joints = self.joints = b.joints
        system, rows = joints.system, joints.row_count
        self.system, self.scale = system, self.at.step.ch2
        b.scheme.writer = None
        active = JointList.of(model.joints).column("active").astype(bool)
        which = resolved(model, system) & (model.settings.integrator == "generalized_alpha")
        parent, child = (d.upload(ends, wp.int32) for ends in system.row_bodies)
        self.row_laws = upload_struct(
            RowLaws, system.row_laws, d, flags=d.upload(flags(system, active, which), wp.int32), parent=parent, child=child,
            stiffness_weights=b.scheme.stiffness_weights,
        )  # fmt: skip
        self.memory = row_memory.Memory()
        self.memory.history = d.zeros((HISTORY, max(rows, 1)), wp.float64)
        self.memory.p, self.memory.law = d.zeros((rows, slots.COUNT), wp.float64), d.zeros(rows, wp.int32)
        for name in ("multiplier", "target", "rate"):
            setattr(self.memory, name, d.zeros(rows, wp.float64))
        self.has_limits = bool(system.limits.any())
        self.code = d.upload(codes(system, active), wp.int32)
        self.has_exact_linear = bool(system.linear.exact.any())
        self.linear = d.zeros(joints.linear_count if self.has_exact_linear else 0, wp.vec3d)
        self.closed = d.zeros(1, wp.int32)
        self._functions: dict[str, Timed] = {}
        self._revision = -1
        self.ch2: PerBody = 1.0
        self.ch2_now: PerBody = 1.0
        self.springs = Springs(joints, self.row_laws, which, self.n, d)
        self.islands.tie(system)
        b.graphs.needs_host = system.has_user_functions

    def load(self, memory: JointMemory) -> None:
        write, rows = self.device.write, self.joints.row_count
        write(self.joints.measures.reference, memory.reference)
        if rows:
            write(self.memory.history, memory.history)
            write(self.memory.multiplier, memory.multiplier)
        if self.has_exact_linear:
            write(self.linear, memory.linear)

    def joint_memory(self) -> JointMemory:
        arrays = self.joints.measures.reference, self.memory.history, self.memory.multiplier, self.linear
        reference, history, multiplier, linear = self.device.read_all(*((array, None) for array in arrays))
        linear = linear if self.has_exact_linear else np.zeros((self.joints.linear_count, 3))
        return JointMemory(reference, history[:, : self.joints.row_count], multiplier, linear)

    def applied_laws(self, memory: JointMemory) -> Applied:
        law, p = self.device.read_all((self.memory.law, None), (self.memory.p, None))
        return Applied.of_step(self.system, law, p, self.system.shifts(memory, self.ch2), self.ch2)

    def limited(self) -> np.ndarray:
        if not self.has_limits:
            return np.zeros(self.n, dtype=bool)
        self.mark_limited()
        return self.device.read(self.scratch.marks) != 0

    def turned(self, limit: float) -> np.ndarray:
        if not self.system.counts_turns:
            return np.zeros(self.n, dtype=bool)
        self.mark_turned(limit)
        return self.device.read(self.scratch.marks) != 0

    def watch_turns(self, table: MeasureTable) -> Turns:
        return CountedTurns(table, self.backend.states)

    # one step -----------------------------------------------------------------------------------------------------

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        joints, rows, states = self.joints, self.joints.row_count, self.backend.states
        self.aim(ch2, time)
        if rows and self.system.followers:
            self.system.follow_poses(states.read_state()[0])
            self.device.write(joints.measures.numbers, self.system.table.numbers)
            joints.measure(states.now)
            self.device.launch(row_memory.row_values, rows, joints.rows, joints.values, self.memory.history)
        self.launch_laws(speed)
        if not (rows and self.system.has_barriers):
            return None
        self.launch_closed()
        found = int(self.device.read(self.closed)[0])
        return found if found < rows else None

    def aim(self, ch2: PerBody, time: PerBody) -> None:
        """Write the host data of a substep with c h^2 [s^2] that ends at `time` [s], both scalar or (n,)."""
        self.ch2_now = ch2
        if self.joints.row_count:
            self._place_targets(time)
            self.joints.relations.begin(ch2, time)

    def launch_laws(self, speed: float) -> None:
        """Set the laws of the substep of `aim`; launches only. See `begin_joints`."""
        launch, joints, rows = self.device.launch, self.joints, self.joints.row_count
        if self.has_exact_linear:
            launch(row_memory.set_shifts, joints.linear_count, joints.linear, self.scale, self.linear)
        scheme = self.backend.scheme.of_rows
        launch(row_memory.set_laws, rows, self.row_laws, self.memory, *scheme, self.scale, float(speed), joints.rows)

    def take_efforts(self) -> None:
        self.device.write(self.row_laws.effort, self.system.row_laws.effort)

    def _place_targets(self, time: PerBody) -> None:
        """Set the targets and rates at a time [s]."""
        host, write = self.system.row_laws, self.device.write
        if self._revision != host.revision:
            self._revision, self._functions = host.revision, {}
            for name, found in (("target", host.target_of), ("rate", host.rate_of)):
                for array in (getattr(self.row_laws, name), getattr(self.memory, name)):
                    write(array, getattr(host, name))
                if found:
                    self._functions[name] = Timed(found, self.system.row_bodies[1])
        for name, timed in self._functions.items():
            values = getattr(host, name).copy()
            values[timed.rows] = timed.at(time)
            write(getattr(self.memory, name), values)

    def launch_closed(self) -> None:
        """Find the first barrier row whose gap is closed, `closed`; the number of rows if there is none."""
        rows = self.joints.row_count
        self.device.fill(self.closed, rows)
        find = self.joints.rows, self.memory.history, self.closed
        self.device.launch(row_memory.find_closed, rows, *find, grain=ONE_THREAD)

    def mark_limited(self) -> None:
        """Set marks (n,) of bodies of rows whose limits are active at the iterate to 1, others to 0; launches only."""
        joints, marks = self.joints, self.scratch.marks
        self.device.fill(marks)
        joints.measure(self.at.current)
        self.device.launch(
            row_memory.mark_limited, joints.row_count, self.row_laws, joints.rows, joints.values, marks, grain=512
        )

    def mark_turned(self, limit: float) -> None:
        """The same for bodies of angles that differ by more than `limit` [rad] from the start of the step."""
        joints, marks = self.joints, self.scratch.marks
        self.device.fill(marks)
        joints.measure(self.at.current)
        self.device.launch(
            row_memory.mark_turned, joints.measure_count, joints.measures, joints.values, float(limit), marks, grain=512
        )

    def finish_step(self) -> None:
        """Make the current step the last one."""
        self.ch2 = self.ch2_now

    def launch_finish(self) -> None:
        """Store the results of the rows for the step that ended at the iterate; launches only, call `finish_step` afterwards.

        Statistics go to totals "linear" and "measured"."""
        joints, scale, pose, totals = self.joints, self.scale, self.at.current, self.backend.totals
        if self.has_exact_linear:
            launch = self.device.launch
            launch(row_memory.keep_multipliers, joints.linear_count, joints.linear, scale, self.linear)
        totals.launch("linear", statistics.row_statistics, joints.linear_count, joints.linear, self.code, pose, scale)
        if joints.measure_count:
            self.joints.measure(pose)
            self.device.copy(joints.measures.reference, joints.values)
        totals.launch(
            "measured", row_memory.remember, joints.row_count,
            self.row_laws, joints.rows, joints.values, *self.backend.scheme.of_rows, scale, self.memory,
        )  # fmt: skip

    # Newton iterations; all methods only launch kernels ------------------------------------------------------------

    def evaluate(self) -> None:
        """Evaluate the energies of the rows at the iterate."""
        self.joints.evaluate(self.at, "current")

    def launch_gaps(self) -> None:
        """Compute the gaps of all joint limits at the iterate, the reference of `launch_open_fractions`."""
        self.joints.measure_gaps(self.at.current)

    def launch_open_fractions(self, out: wp.array) -> None:
        """Compute the fraction of the step to the trial that keeps the limits of every body open, `out` (n,)."""
        self.device.fill(out, 1.0)
        self.joints.open_fractions(self.at.trial, out)

    def launch_effort_changes(self, direction: wp.array, out: wp.array) -> None:
        """Compute the largest change of friction and of limited drives of every body along a direction, `out` (n,)
        (`abd.backends.warp.terms.joints.Joints.effort_changes`)."""
        self.device.fill(out)
        self.joints.effort_changes(direction, self.islands.done, out)

    def launch_predicted_errors(self, direction: wp.array, out: wp.array, energy: wp.array) -> None:
        """Compute the largest relative residual c of exact rows of every body by the linear model at the end of a direction,
        `out` (n,), and the sum of ``c K c``, `energy` (n,)."""
        straight = self.scratch.straight
        self.device.launch(poses.go_straight, self.n, self.at.current, direction, straight)
        self.device.fill(out)
        self.device.fill(energy)
        self.joints.predicted_errors(straight, direction, self.islands.done, out, energy)

    def launch_missing(self, out: wp.array) -> None:
        """Add the forces ``C^T K c`` of the residuals from `launch_predicted_errors` to `out` (n, 12)."""
        self.joints.add_missing(self.scratch.straight, self.islands.done, out)

    def step_multipliers(self, weight: wp.array, turn: wp.array) -> None:
        """Update multipliers: s = c + turn s, lambda += weight K s, with residuals c from `launch_predicted_errors` and numbers
        per island."""
        self.joints.step_multipliers(self.scratch.straight, self.islands.island, weight, turn)

    def launch_errors(self, out: wp.array) -> None:
        """Compute the largest relative residual of exact rows at the iterate, `out` (islands,), -1 without any; launches only."""
        a = self.scratch.a
        self.device.fill(a, -1.0)
        self.joints.errors(self.at.current, self.islands.done, a)
        self.islands.reduce(a, sums.MAX, out)

    def update_multipliers(self, direction: wp.array) -> None:
        """Transfer the stiffness forces of exact rows at the end of a direction (n, 12) to their multipliers.

        Call it after `Potential.exchange`, while the trial holds the previous iterate.
        """
        joints, at, straight, done = self.joints, self.at, self.scratch.straight, self.islands.done
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

    def __init__(self, joints: Joints, row_laws: RowLaws, which: np.ndarray, n: int, device: Device):
        self.joints, self.row_laws, self.device = joints, row_laws, device
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
        launch(springs.pull, self.count, *ends_of_bodies, self.row_laws, joints.rows, mode, *ends, pose, out)
