"""`JointControl`: changes to the joints of a running simulation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from abd.api.coordinates import Coordinates, Efforts
from abd.api.views import finite
from abd.backends.protocol import Backend
from abd.by_bodies import of_body
from abd.joint_model import CoordinateSettings, Drive, Joint
from abd.joints.closure.redundancy import CLOSED, open_by
from abd.joints.coordinates.readings import rigid_motion
from abd.joints.rows.batches import batches
from abd.joints.rows.build import build_system
from abd.joints.rows.change import (
    Constant,
    as_function,
    changed,
    changes_of,
    described,
    settings_of,
    transfer_forces,
    transfer_memory,
    with_approaching_barriers,
    with_frames,
    with_settings,
)
from abd.joints.rows.laws import SPRINGS, Law, Role
from abd.joints.rows.rows import residual
from abd.joints.rows.system import JointSystem
from abd.model import WORLD, Model
from abd.potentials.integrators import longest
from abd.step.joint_rows import UNFIT, jumps
from abd.step.step import Stepper
from cuda_kernels.shared import slots

_log = logging.getLogger(__name__)
FORCES = Role.DRIVE, Role.SPRING, Role.BRAKE, Role.GAP
"""Roles of rows that exert forces on closed joints, which may jump."""


class JointControl:
    """Changes the joints of one simulation.

    The simulation's model contains the current joints. Targets and forces are set in place; every other change rebuilds the
    joint system.

    Attributes:
        broken: time of failure of the broken joints by name [s]; start: the joints of the scene; efforts: on coordinates.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper, coordinates: Coordinates):
        self._model, self._backend, self._stepper, self._coordinates = model, backend, stepper, coordinates
        joints, reader = model.joints, coordinates.reader
        self.start = joints.copy()
        # tolerances of rows follow the loads at the start, not those when the rows are built; joints and couplings are shared
        bodies = replace(model.bodies, force=model.bodies.force.copy(), torque=model.bodies.torque.copy())
        settings = replace(model.settings, gravity=model.settings.gravity.copy())
        self._with_start_loads = replace(model, bodies=bodies, settings=settings)
        self.broken: dict[str, float] = {}
        self._fast: set[tuple[str, str]] = set()
        self.efforts = Efforts(model, backend, stepper, coordinates, self.rebuild)
        self._returning: tuple[JointSystem | None, list[tuple[int, str]]] = None, []  # joints and coordinates by system
        self._were_moved = False
        strength = np.stack([joints.column("break_force"), joints.column("break_torque")], axis=1)
        self._breakable = np.flatnonzero((strength < np.inf).any(axis=1))
        self._strength = strength[self._breakable]
        self._velocity_limit = np.full(len(reader.names), np.inf)
        for batch in batches(joints):
            names = reader.names[reader.of(batch.index[0])]
            for one in batch.first.coordinates:
                self._velocity_limit[reader.starts[batch.index] + names.index(one.name)] = one.velocity_limit
        self._limits_speed = bool(np.isfinite(self._velocity_limit).any())

    # changes ------------------------------------------------------------------------------------------------------

    def replace_joint(self, index: int, joint: Joint) -> None:
        """Replace a joint by one of the same name, type, bodies and frames."""
        self._model.joints[index] = joint
        self.rebuild([index])

    def replace_settings(self, index: int, settings: CoordinateSettings) -> None:
        """Replace the settings of one coordinate."""
        self.replace_joint(index, with_settings(self._model.joints[index], settings))

    def set_frames(self, index: int, T_CW: np.ndarray | None = None, T_DW: np.ndarray | None = None) -> None:
        """Move the frames of a joint to poses (4, 4) in the world without moving its bodies; None keeps a frame."""
        stepper = self._stepper
        q, _ = rigid_motion(stepper.q, stepper.qd)
        self._model.joints[index] = with_frames(self._model.joints[index], q, T_CW, T_DW)
        self._coordinates.watch(self._coordinates.values)
        self.rebuild([])
        stepper.modes.jump(self._bodies(index), constraints=True)
        self._warn_if_open([index], "has new frames and")

    def set_active(self, indices: list[int], active: bool) -> None:
        """Activate or deactivate joints; log a warning for open exact joints, which the next step closes."""
        joints = self._model.joints
        changed = [k for k in indices if joints[k].active != active]
        for k in changed:
            joints[k] = replace(joints[k], active=active)
        if changed:
            self.rebuild(changed)
        if active:
            for k in indices:
                self.broken.pop(joints[k].name, None)
            self._warn_if_open(indices, "is activated and")

    def set_coupling_active(self, index: int, active: bool) -> None:
        """Activate or deactivate a coupling."""
        couplings = self._model.couplings
        coupling = couplings[index]
        if coupling.active != active:
            couplings[index] = replace(coupling, active=active)
            self.rebuild(sorted({coupling.joint, *(term.joint for term in coupling.terms)}))

    def _warn_if_open(self, indices: Iterable[int], event: str = "") -> None:
        """Log a warning for the active exact joints that are open after an event."""
        joints = self._model.joints
        exact = [k for k in indices if joints[k].active and joints[k].enforcement == "exact"]
        opening = open_by(self._model, self._stepper.q) if exact else ()
        for index in exact:
            if opening[index].max() > CLOSED:
                _log.warning(
                    "exact joint '%s' %sis open by %.3g m, %.3g rad: the next step closes it with a change of velocity; "
                    "set_coordinate closes it without one",
                    joints[index].name, event and f"{event} ", *opening[index],
                )  # fmt: skip

    def set_function(self, index: int, coordinate: str, key: str, value: float | Callable[[float], float]) -> None:
        """Set the function of time "target" or "rate" of a drive.

        The target of a velocity drive is its speed. Drives without such a function, and coordinates without a drive, get a
        position drive for a target or a velocity drive for a rate.
        """
        settings, what = settings_of(self._model.joints[index], coordinate), f"the {key} of '{coordinate}'"
        given = partial(_value_at, value, what) if callable(value) else float(finite(value, (), what))
        drive, function = settings.drive, as_function(given)
        mode, other = ("position", "velocity") if key == "target" else ("velocity", "force")
        if drive is None or drive.mode in (other, "brake"):
            effort = np.inf if drive is None or drive.mode == "force" else drive.effort
            self.replace_settings(index, replace(settings, drive=Drive(mode, function, effort=effort)))
            return
        key = "target" if drive.mode == "velocity" else key
        self.set_functions(index, settings, replace(drive, **{key: function}))

    def set_functions(self, index: int, settings: CoordinateSettings, drive: Drive, may_jump: bool = True) -> None:
        """Set the functions of time of a drive's row; a jump restarts the integrator if it may."""
        row_laws = self._backend.system.row_laws
        row = self._row(index, settings.name, drive)
        target, rate = (None, drive.target) if drive.mode == "velocity" else (drive.target, drive.rate)
        for functions, function in ((row_laws.target_of, target), (row_laws.rate_of, rate)):
            functions.pop(row, None)
            if function is not None:
                functions[row] = function
        row_laws.revision += 1
        if may_jump and self._drive_jumps(index, settings, drive):
            self._jump(index)
        self._stepper.sleep.disturb()
        self._model.joints[index] = with_settings(self._model.joints[index], replace(settings, drive=drive))

    def _drive_jumps(self, index: int, settings: CoordinateSettings, drive: Drive) -> bool:
        """Return whether a new drive changes the speed (position, velocity) or effort (other modes) by a jump.

        A speed that is set in every step changes by about as much as in the last step, and is not a jump. The acceleration of a
        new function of time may differ."""
        if drive.mode in ("position", "velocity") and not isinstance(drive.target, Constant):
            return True
        now = of_body(self._stepper.time, self._model.joints[index].child)
        before, after, usual = settings.drive.target(now), drive.target(now), 0.0
        if drive.mode in ("position", "velocity"):
            x, _, before, earlier, *_ = self._stepper.memory.history[:, self._row(index, settings.name, drive)]
            usual = abs(before - earlier)
            if drive.mode == "position":
                h = of_body(self._stepper.worlds.lengths, self._model.joints[index].child)
                after = (drive.target(now + h) - x) / h
        return jumps(before, after, usual)

    def set_range(self, index: int, coordinate: str, lower: float, upper: float) -> None:
        """Set the range of a coordinate from the next step on; barriers move a value outside gradually into the range."""
        settings = replace(settings_of(self._model.joints[index], coordinate), lower=lower, upper=upper)
        self.replace_settings(index, self._with_moving_limits(index, replace(settings, lower_end=None, upper_end=None)))

    def _with_moving_limits(self, index: int, settings: CoordinateSettings) -> CoordinateSettings:
        coordinates, place = self._coordinates, self._coordinates.place(index, settings.name)
        value, rotary = float(coordinates.values[place]), bool(coordinates.reader.table.rotary[place])
        return with_approaching_barriers(settings, self._model, self._model.joints[index], value, rotary)

    # before and after a step --------------------------------------------------------------------------------------

    def before_step(self) -> None:
        """Start the efforts of the step; log a warning for exact joints that given poses have opened."""
        self.efforts.before_step()
        if self._were_moved:
            self._were_moved = False
            self._warn_if_open(range(len(self._model.joints)))

    def after_step(self) -> list[int]:
        """Break overloaded joints, warn of fast coordinates, move limits, end efforts, and return the joints that broke."""
        self.efforts.after_step()
        if self._limits_speed:
            self._warn_of_speed()
        self._move_limits()
        return self._break() if len(self._breakable) else []

    def _move_limits(self) -> None:
        """Move the barriers that push coordinates back into their ranges."""
        system, joints = self._backend.system, self._model.joints
        if self._returning[0] is not system:
            self._returning = system, [
                (k, one.name)
                for k in joints.changed_since(self.start)
                for one in joints[k].coordinates
                if one.lower_end is not None or one.upper_end is not None
            ]
        for k, name in self._returning[1]:
            joints[k] = with_settings(joints[k], self._with_moving_limits(k, settings_of(joints[k], name)))
        if self._returning[1]:
            self.rebuild([])

    def _warn_of_speed(self) -> None:
        """Log one warning for every coordinate that exceeds its velocity limit."""
        reader = self._coordinates.reader
        rates = np.abs(self._coordinates.readings().rates[: len(self._velocity_limit)])  # without springs
        for place in np.flatnonzero(rates > self._velocity_limit):
            key = (self._model.joints[reader.table.joint[place]].name, reader.names[place])
            if key not in self._fast:
                self._fast.add(key)
                _log.warning(
                    "%s.%s moves at %.6g, above its limit %.6g, at t = %.6g s",
                    *key, rates[place], self._velocity_limit[place], self._stepper.worlds.clock,
                )  # fmt: skip

    def _break(self) -> list[int]:
        """Deactivate the active joints whose wrench at the joint's point exceeds their strength; return them."""
        joints = self._model.joints
        loads = np.linalg.norm(self._coordinates.readings().wrench[self._breakable].reshape(-1, 2, 3), axis=2)
        found = []
        for place in np.flatnonzero((loads > self._strength).any(axis=1)):
            k, (force, torque) = int(self._breakable[place]), loads[place]
            joint = joints[k]
            if joint.active:
                time = self._stepper.worlds.clock
                _log.warning("joint %s breaks at t = %.6g s under %.4g N and %.4g N m", joint.name, time, force, torque)
                self.broken[joint.name] = time
                found.append(k)
        self.set_active(found, active=False)
        return found

    # checkpoints --------------------------------------------------------------------------------------------------

    def saved(self) -> dict:
        """Return the changes since the start as plain values.

        Raises:
            JointChangeError: a drive follows a function that was set while running.
        """
        return {
            "changes": described(self.start, self._model.joints),
            "broken": dict(self.broken),
            "fast": {f"{j}\n{c}": True for j, c in self._fast},
            "couplings": {one.name: one.active for one in self._model.couplings},
            "efforts": self.efforts.saved(),
        }

    def restore(self, saved: dict, differs: bool) -> None:
        """Restore the joints of a checkpoint; the stepper restores the history of the rows.

        Args:
            differs: whether the springs changed, which `Springs.restore` returns.
        """
        self.broken = {name: float(time) for name, time in saved["broken"].items()}
        self._fast = {tuple(key.split("\n")) for key in saved["fast"]}
        for k, one in enumerate(self._model.couplings):
            if one.active != saved["couplings"].get(one.name, one.active):
                self._model.couplings[k], differs = replace(one, active=not one.active), True
        joints, now = changed(self.start, saved["changes"]), self._model.joints
        if differs or any(changes_of(joints[k], now[k]) for k in now.changed_since(joints)):
            now.assign(joints)
            self._coordinates.watch(self._coordinates.values)
            self._backend.rows.set_joints(build_system(self._with_start_loads))
        self.efforts.restore(saved["efforts"])

    # parts --------------------------------------------------------------------------------------------------------

    def rows(self, index: int, *roles: Role, coordinate: str | None = None) -> np.ndarray:
        """Return the measured rows of a joint, or of one coordinate, with given roles in the joint system."""
        a = self._backend.system.row_laws
        found = np.flatnonzero((a.joint == index) & np.isin(a.role, roles) & (a.coupling < 0))
        return np.array([row for row in found if coordinate in (None, a.name[row])], dtype=int)

    def _row(self, index: int, coordinate: str, drive: Drive) -> int:
        """Return the row of a drive."""
        return int(self.rows(index, Role.FORCE if drive.mode == "force" else Role.DRIVE, coordinate=coordinate)[0])

    def restart(self, bodies: np.ndarray, are_moved: bool) -> None:
        """Continue with new velocities, and poses if they `are_moved`, of bodies (n,) bool; the next step closes their joints."""
        stepper = self._stepper
        stepper.sleep.disturb()
        self._coordinates.forget_readings()
        ends = self._unfit_ends(are_moved)
        drives = stepper.rows.jumping_drives(stepper.time, stepper.worlds.lengths, 0.0)
        unfit = np.array([*ends[ends != WORLD], *drives], dtype=int)
        stepper.modes.jump(unfit[bodies[unfit]], constraints=True)
        self._were_moved |= are_moved

    def _unfit_ends(self, are_moved: bool) -> np.ndarray:
        """Return bodies of constraints that are open or that the velocities violate, with repetitions.

        Compliant rows whose vibration steps do not resolve are constraints if bodies `are_moved`; otherwise loads open them."""
        stepper, system = self._stepper, self._backend.system
        q, qd, linear, a = stepper.q, stepper.qd, system.linear, system.row_laws
        lengths = np.broadcast_to(stepper.worlds.lengths, len(q))
        of_rows = system.of_rows(lengths)
        h = np.append(system.of_linear(lengths), of_rows)
        opening, moved = residual(linear, q), residual(linear, q + lengths[:, None] * qd)
        motion = np.maximum(np.abs(opening), np.abs(moved - opening)).max(axis=1, where=linear.K > 0.0, initial=0.0)
        value, rate = stepper.memory.history[[slots.VALUE, slots.RATE]]
        stiff = a.active & (a.mass_stiffness > 0.0) & np.isin(a.role, SPRINGS)
        if are_moved:
            stiff |= stepper.modes.stiff_compliances(system)
        motion = np.append(motion, np.where(stiff, np.maximum(np.abs(value - a.target), of_rows * np.abs(rate)), 0.0))
        ends = np.concatenate([[linear.parent, linear.child], system.row_bodies], axis=1).astype(int)
        speed = np.append(np.abs(qd).max(axis=1), 0.0)[ends].max(axis=0)  # the last one is the world's
        return ends[:, motion > UNFIT * h * np.maximum(speed, self._model.settings.eps_v)].ravel()

    def _jump(self, index: int) -> None:
        """Restart the integrator for the bodies of a joint, whose forces change abruptly.

        If the joint is closed, at the target of a drive too, and has no drives with an effort limit and no springs, the next step
        begins with velocities that fit it. Compliant rows whose vibration the step does not resolve are no springs."""
        modes, system, a = self._stepper.modes, self._backend.system, self._backend.system.row_laws
        bodies, rows = self._bodies(index), self.rows(index, *FORCES)
        stiff = modes.stiff_compliances(system)
        yields = ((a.joint == index) & a.active & (a.stiffness > 0.0) & ~stiff).any()
        holds = (a.law == Law.QUADRATIC) & (a.follows | (a.role == Role.DRIVE))
        has_forces = yields or (a.active & ~holds)[rows].any()
        if has_forces or self._is_open(index):
            modes.jump(bodies, constraints=True)
            return
        articulation = modes.articulations.containing(np.isin(np.arange(len(self._stepper.q)), bodies))
        joints, couplings = self._model.joints, self._model.couplings
        penalty = [joints[one.joint].child for one in couplings if one.active and one.enforcement == "penalty"]
        penalty += [one.child for one in joints if one.active and one.enforcement == "penalty"]
        penalty += system.row_bodies[1][stiff].tolist()
        modes.refit(articulation, bool(np.isin(penalty, np.flatnonzero(articulation)).any()))

    def _bodies(self, index: int) -> list[int]:
        """Return the bodies of a joint, without the world."""
        joint = self._model.joints[index]
        return [body for body in (joint.parent, joint.child) if body != WORLD]

    def _is_open(self, index: int) -> bool:
        """Return whether constraints of a joint that did not act in the last step, or its drives to positions, are open."""
        stepper, system = self._stepper, self._backend.system
        linear, a, last = system.linear, system.row_laws, stepper.applied
        new = (linear.joint == index) & ~(last.stiffness > 0.0).any(axis=1)
        opening = np.abs(residual(linear, stepper.q)).max(axis=1, where=linear.K > 0.0, initial=0.0)[new].max(initial=0.0)
        new = a.active & (a.joint == index) & (last.law == Law.OFF) & np.isin(a.role, SPRINGS)
        new &= (a.mass_stiffness > 0.0) | (a.stiffness > 0.0)
        value = stepper.memory.history[slots.VALUE]
        opening = np.abs(value - a.target)[new].max(initial=opening)
        now = of_body(stepper.time, self._model.joints[index].child)
        drives = [row for row in self.rows(index, Role.DRIVE) if a.active[row] and row in a.target_of]
        step, slow = longest(stepper.worlds.lengths), self._model.settings.eps_v
        if any(abs(value[row] - a.target_of[row](now)) > UNFIT * step * slow for row in drives):
            return True
        return bool(opening > UNFIT * step * max(np.abs(stepper.qd[self._bodies(index)]).max(initial=0.0), slow))

    def rebuild(self, indices: list[int]) -> None:
        """Rebuild the joint system after a change of the joints `indices`; unchanged rows keep their history."""
        stepper, old = self._stepper, self._backend.system
        stepper.forces.record()
        new = build_system(self._with_start_loads)
        states = (stepper.q, stepper.qd, stepper.previous_q, stepper.previous_qd)
        coordinates = (self._coordinates.reader.table, self._coordinates.values)
        stepper.memory, stepper.applied = transfer_memory(old, stepper.memory, stepper.applied, new, coordinates, states)
        if stepper.forces.mean is not None:
            stepper.forces.mean = transfer_forces(old, stepper.forces.mean, new, len(self._model.joints))
        self._backend.rows.set_joints(new)
        stepper.energy = None
        stepper.sleep.disturb()
        for index in indices:
            self._jump(index)
        self._coordinates.forget_readings()


def _value_at(function: Callable[[float], float], what: str, time: float) -> float:
    """Return a finite value of a user's function at a time [s]."""
    return float(finite(function(time), (), f"{what} at t = {time:g} s"))
