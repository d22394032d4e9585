"""History of joint rows on the device: it sets the laws of a step and stores their results for the next step.

The definitions are `JointSystem.laws`, `remember` and `update_measures` and `abd.joints.rows.forces`. The host reads and writes
the whole history if something other than a step changes it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import ONE_THREAD, Device
from abd.backends.device.totals import Totals
from abd.backends.device.upload import upload_struct
from abd.backends.warp.terms.joints import Joints
from abd.by_bodies import PerBody
from abd.joints.coordinates.readings import HOLDING
from abd.joints.rows.forces import DOING, Applied
from abd.joints.rows.laws import Role
from abd.joints.rows.system import HISTORY, JointMemory, JointSystem
from cuda_kernels.joints import row_laws, row_memory
from cuda_kernels.shared import slots
from cuda_kernels.step import statistics


class Timed:
    """Values by functions of time: rows (k,), their bodies (k,), distinct functions, and `which` (k,) function of every row."""

    def __init__(self, found: dict[int, Callable[[float], float]], bodies: np.ndarray):
        several = {id(function): function for function in found.values()}
        place = {key: k for k, key in enumerate(several)}
        self.rows, self.functions = np.array(list(found), dtype=int), list(several.values())
        self.bodies, self.which = bodies[self.rows], np.array([place[id(function)] for function in found.values()])

    def at(self, time: PerBody) -> np.ndarray:
        """Evaluate the functions (k,) at a time [s], scalar or (n,); each function once per distinct time."""
        if not isinstance(time, np.ndarray):
            return np.array([function(time) for function in self.functions])[self.which]
        calls = np.stack([self.which, time[self.bodies]], axis=1)
        distinct, of = np.unique(calls, axis=0, return_inverse=True)
        return np.array([self.functions[int(which)](float(t)) for which, t in distinct])[of.ravel()]


class RowMemory:
    """History of the rows of `joints`.

    Args:
        active: (j,) bool, joints whose residuals enter the statistics.
        resolved: (R,) bool, `abd.joints.rows.springs`; stiffness_weights: coefficients of the current scheme.
        scale: (n,) c h^2 of the current step [s^2].
    """

    def __init__(
        self, joints: Joints, active: np.ndarray, resolved: np.ndarray, stiffness_weights: wp.array, scale: wp.array,
        device: Device,
    ):  # fmt: skip
        self.joints, self.system, self.device, self.scale = joints, joints.system, device, scale
        system, rows = self.system, joints.row_count
        parent, child = (device.upload(ends, wp.int32) for ends in system.row_bodies)
        self.row_laws = upload_struct(
            row_laws.RowLaws, system.row_laws, device, flags=device.upload(flags(system, active, resolved), wp.int32),
            parent=parent, child=child, stiffness_weights=stiffness_weights,
        )  # fmt: skip
        self.memory = row_memory.Memory()
        self.memory.history = device.zeros((HISTORY, max(rows, 1)), wp.float64)
        self.memory.p, self.memory.law = device.zeros((rows, slots.COUNT), wp.float64), device.zeros(rows, wp.int32)
        for name in ("multiplier", "target", "rate"):
            setattr(self.memory, name, device.zeros(rows, wp.float64))
        self.has_limits = bool(system.limits.any())
        self.code = device.upload(codes(system, active), wp.int32)
        self.has_exact_linear = bool(system.linear.exact.any())
        self.linear = device.zeros(joints.linear_count if self.has_exact_linear else 0, wp.vec3d)
        self.closed = device.zeros(1, wp.int32)
        self.functions: dict[str, Timed] = {}
        self.revision = -1
        self.ch2: PerBody = 1.0
        self.ch2_now: PerBody = 1.0

    # host copies -------------------------------------------------------------------------------------------------

    def load(self, memory: JointMemory) -> None:
        """Write a host copy to the device."""
        write, rows = self.device.write, self.joints.row_count
        write(self.joints.measures.reference, memory.reference)
        if rows:
            write(self.memory.history, memory.history)
            write(self.memory.multiplier, memory.multiplier)
        if self.has_exact_linear:
            write(self.linear, memory.linear)

    def read(self) -> JointMemory:
        """Return a host copy."""
        arrays = self.joints.measures.reference, self.memory.history, self.memory.multiplier, self.linear
        reference, history, multiplier, linear = self.device.read_all(*((array, None) for array in arrays))
        linear = linear if self.has_exact_linear else np.zeros((self.joints.linear_count, 3))
        return JointMemory(reference, history[:, : self.joints.row_count], multiplier, linear)

    def applied(self, memory: JointMemory) -> Applied:
        """Laws of the last step, whose result is `memory`."""
        law, p = self.device.read_all((self.memory.law, None), (self.memory.p, None))
        return Applied.of_step(self.system, law, p, self.system.shifts(memory, self.ch2), self.ch2)

    # one step -----------------------------------------------------------------------------------------------------

    def begin(self, scheme: tuple[wp.array, ...], ch2: PerBody, time: PerBody, speed: float, pose, q) -> int | None:
        """Set the laws of a substep with c h^2 [s^2] that ends at `time` [s], both scalar or (n,); see `JointSystem.laws`.

        Args:
            scheme: `DeviceScheme.of_rows`.
            pose: start of the substep; q: function that returns it on the host (n, 12).

        Returns:
            the first barrier row whose gap is closed, None if there is none.
        """
        joints, rows = self.joints, self.joints.row_count
        self.aim(ch2, time)
        if rows and self.system.followers:
            self.system.follow_poses(q())
            self.device.write(joints.measures.numbers, self.system.table.numbers)
            self.joints.measure(pose)
            self.device.launch(row_memory.row_values, rows, joints.rows, joints.values, self.memory.history)
        self.launch_laws(scheme, speed)
        return self._closed_gap() if rows and self.system.has_barriers else None

    def aim(self, ch2: PerBody, time: PerBody) -> None:
        """Write the host data of a substep with c h^2 [s^2] that ends at `time` [s], both scalar or (n,)."""
        self.ch2_now = ch2
        if self.joints.row_count:
            self._place_targets(time)
            self.joints.relations.begin(ch2, time)

    def launch_laws(self, scheme: tuple[wp.array, ...], speed: float) -> None:
        """Set the laws of the substep of `aim`; launches only. See `begin`."""
        launch, joints, rows = self.device.launch, self.joints, self.joints.row_count
        if self.has_exact_linear:
            launch(row_memory.set_shifts, joints.linear_count, joints.linear, self.scale, self.linear)
        launch(row_memory.set_laws, rows, self.row_laws, self.memory, *scheme, self.scale, float(speed), joints.rows)

    def take_efforts(self) -> None:
        """Upload the efforts of the rows."""
        self.device.write(self.row_laws.effort, self.system.row_laws.effort)

    def _place_targets(self, time: PerBody) -> None:
        """Set the targets and rates at a time [s]."""
        host, write = self.system.row_laws, self.device.write
        if self.revision != host.revision:
            self.revision, self.functions = host.revision, {}
            for name, found in (("target", host.target_of), ("rate", host.rate_of)):
                for array in (getattr(self.row_laws, name), getattr(self.memory, name)):
                    write(array, getattr(host, name))
                if found:
                    self.functions[name] = Timed(found, self.system.row_bodies[1])
        for name, timed in self.functions.items():
            values = getattr(host, name).copy()
            values[timed.rows] = timed.at(time)
            write(getattr(self.memory, name), values)

    def _closed_gap(self) -> int | None:
        rows = self.joints.row_count
        self.launch_closed()
        found = int(self.device.read(self.closed)[0])
        return found if found < rows else None

    def launch_closed(self) -> None:
        """Find the first barrier row whose gap is closed, `closed`; the number of rows if there is none."""
        rows = self.joints.row_count
        self.device.fill(self.closed, rows)
        find = self.joints.rows, self.memory.history, self.closed
        self.device.launch(row_memory.find_closed, rows, *find, grain=ONE_THREAD)

    def mark_limited(self, pose, flags: wp.array) -> None:
        """Set flags (n,) to 1 for bodies of rows whose limits are active at a pose."""
        if self.has_limits:
            self.joints.measure(pose)
            joints = self.joints
            self.device.launch(
                row_memory.mark_limited, joints.row_count, self.row_laws, joints.rows, joints.values, flags, grain=512
            )

    def mark_turned(self, pose, limit: float, flags: wp.array) -> None:
        """Set flags (n,) to 1 for bodies of angles that differ by more than `limit` [rad] from the start of the step."""
        self.joints.measure(pose)
        joints = self.joints
        self.device.launch(
            row_memory.mark_turned, joints.measure_count, joints.measures, joints.values, float(limit), flags, grain=512
        )

    def finish_step(self) -> None:
        """Make the current step the last one."""
        self.ch2 = self.ch2_now

    def launch_finish(self, scheme: tuple[wp.array, ...], pose, totals: Totals) -> None:
        """Store the results of the rows for the step that ended at a pose; launches only, call `finish_step` afterwards.

        Statistics go to totals "linear" and "measured"."""
        joints, scale = self.joints, self.scale
        if self.has_exact_linear:
            launch = self.device.launch
            launch(row_memory.keep_multipliers, joints.linear_count, joints.linear, scale, self.linear)
        totals.launch("linear", statistics.row_statistics, joints.linear_count, joints.linear, self.code, pose, scale)
        if joints.measure_count:
            self.joints.measure(pose)
            self.device.copy(joints.measures.reference, joints.values)
        totals.launch(
            "measured", row_memory.remember, joints.row_count,
            self.row_laws, joints.rows, joints.values, *scheme, scale, self.memory,
        )  # fmt: skip


def flags(system: JointSystem, active: np.ndarray, resolved: np.ndarray) -> np.ndarray:
    """(R,) `cuda_kernels.joints.row_laws.RowLaws.flags`; `active` (j,) and `resolved` (R,) as in `RowMemory`."""
    a, k = system.row_laws, row_laws
    drive, armature = a.role == Role.DRIVE, a.role == Role.ARMATURE
    driven, held = np.isin(a.role, DOING), np.isin(a.role, HOLDING)
    counts = np.where(held, active[a.joint] if len(a.joint) else False, (a.role == Role.COUPLING) & a.active)
    chosen = (
        (k.ACTIVE, a.active),
        (k.EXACT, a.exact),
        (k.FOLLOWS, a.follows),
        (k.MOVING, a.follows & drive),
        (k.ARMATURE, armature),
        (k.ELASTIC, system.springs),
        (k.LIMIT, system.limits & ~a.exact),
        (k.DRIVEN, driven),
        (k.LOSING, ~driven & ~armature & ~(a.exact & ~a.follows)),
        (k.METRES, counts & ~a.rotary),
        (k.RADIANS, counts & a.rotary),
        (k.GAP, a.role == Role.GAP),
        (k.TURNING, system.turning),
        (k.RESOLVED, resolved),
    )
    return sum(int(flag) * which.astype(np.int32) for flag, which in chosen).astype(np.int32)


def codes(system: JointSystem, active: np.ndarray) -> np.ndarray:
    """(l,) residual components of linear rows in the statistics: bits 1, 2, 4 for x, y, z, `statistics.TURNED` for angles."""
    rows = system.linear
    components = (rows.mask != 0.0) @ np.array([1, 2, 4])
    turned = np.where(rows.is_point, 0, int(statistics.TURNED))
    return np.where(active[rows.joint] if len(rows) else False, components + turned, 0).astype(np.int32)
