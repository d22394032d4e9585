"""`SolverABD`: Newton's solver interface over a simulation.

The first step creates the simulation from its input state, since `newton.eval_fk` may correct the poses of the model before. The
simulation then keeps its state in double precision. A body takes the input state only if it differs from the last output, after a
change by the user or a reset. Kinematic bodies go to their poses in the input state, and keep their velocities there.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from abd.api.simulation import Simulation
from abd.energies import spin
from abd.joint_list import JointList
from abd.joints.rows.change import settings_of, with_settings
from abd.model import Kind, affine_state
from abd.newton.model_values import transform_matrix
from abd.newton.scene import require_rigid_bodies, translate
from abd.optional import required
from abd.rotations import polar

newton = required("newton", "newton", "newton", "abd.newton")

_log = logging.getLogger(__name__)


class SolverABD(newton.solvers.SolverBase):
    """Affine bodies with barriers: no returned state has overlapping bodies, for any step.

    The solver finds contacts and ignores those passed to `step`. Friction and restitution are those of Newton, combined as
    geometric means. Joint limits are never exceeded.

    Args:
        model: a model of Newton with rigid bodies only.
        device: of the simulation: "cpu", "cuda", "cuda:N" or "numpy"; default: that of the model.
        enforcement: of joints: "exact" or "penalty".
        allow_overlaps: exclude contact between bodies that overlap in the first state, which is an error otherwise.
        solver: keys of the scene's table solver, such as ``tolerance=1e-4``; `abd schema` lists them.

    Raises:
        ModelError: the model has no bodies, or particles, cloth, or other non-rigid objects.

    Attributes:
        simulation: the `abd.Simulation`, None before the first step; report: that of the last step.
        notes: on changes and ignored parts of the model.
    """

    def __init__(
        self, model, device: str | None = None, enforcement: str = "exact", allow_overlaps: bool = False, **solver
    ):
        super().__init__(model)
        require_rigid_bodies(model)
        self._device = device or str(model.device)
        self._enforcement, self._allow_overlaps, self._settings = enforcement, allow_overlaps, solver
        self.simulation: Simulation | None = None
        self.report = None
        self.notes: list[str] = []
        self._dt = 0.0

    def step(self, state_in, state_out, control, contacts, dt: float, **_) -> None:
        """Advance by `dt` [s]; `control` may be None for the model's own targets, `contacts` is not used.

        Raises:
            SceneError: bodies overlap in a state that was set from outside. StepFailure: the step did not converge.
        """
        model, control = self.model, self.model if control is None else control
        body_q, body_qd = (array.numpy().astype(float) for array in (state_in.body_q, state_in.body_qd))
        if self.simulation is None or dt != self._dt:
            self._start(state_in, body_q, body_qd, float(dt))
        elif not (np.array_equal(body_q, self._written[0]) and np.array_equal(body_qd, self._written[1])):
            self._take_over(state_in, body_q, body_qd)
        self._goal = body_q
        if model.joint_count:
            self._target[:], self._rate[:] = control.joint_target_q.numpy(), control.joint_target_qd.numpy()
        self._set_loads(state_in, control, body_q)
        self.report = self.simulation.step()
        self._write(state_out, body_q, body_qd)

    def notify_model_changed(self, flags) -> None:
        """Create the simulation again in the next step, after any change of the model."""
        self.simulation = None

    # start ---------------------------------------------------------------------------------------------------------------

    def _start(self, state, body_q: np.ndarray, body_qd: np.ndarray, dt: float) -> None:
        model = self.model
        joint_q = np.zeros(int(model.joint_coord_count)) if state.joint_q is None else state.joint_q.numpy().astype(float)
        made = translate(newton, model, body_q, body_qd, joint_q, dt, self._enforcement, self._settings)
        if self._allow_overlaps:
            from abd.scene.overlaps.starts import filter_overlaps

            made.notes += filter_overlaps(made.scene)
        compiled = made.scene.compile()
        self._goal = body_q
        compiled = replace(compiled, joints=self._driven(compiled, made.drives), motions=self._motions(compiled))
        self.notes = [*made.notes, *compiled.notes]
        for note in made.notes:
            _log.warning(note)
        self.simulation = Simulation(made.scene.set_free(compiled), self._device)
        self._dt, reader = dt, self.simulation.reader
        found = [(reader.joints.names.find(joint), name) for joint, name, *_ in made.coordinates]
        self._places, self._dofs = np.array([one[2:] for one in made.coordinates], dtype=int).reshape(-1, 2).T
        self._columns = np.array([reader.starts[k] + reader.names[reader.of(k)].index(name) for k, name in found], dtype=int)
        self._ends, self._efforts = reader.joints.bodies[[k for k, _ in found]], np.zeros(len(found))

    def _driven(self, compiled, drives) -> JointList:
        """Return the joints with drives that use the targets of Newton's control."""
        count = len(self.model.joint_target_q.numpy()) if self.model.joint_count else 0
        self._target, self._rate = np.zeros(count), np.zeros(int(self.model.joint_dof_count))
        joints = JointList.of(compiled.joints).copy()
        names = joints.names
        for name, coordinate, target, dof, with_position in drives:
            k = names.find(name)
            settings = settings_of(joints[k], coordinate)
            drive = self._followed(settings.drive, target, dof, with_position)
            joints[k] = with_settings(joints[k], replace(settings, drive=drive))
        return joints

    def _followed(self, drive, target: int, dof: int, with_position: bool):
        def rate(_time: float) -> float:
            return float(self._rate[dof])

        if not with_position:
            return replace(drive, target=rate)
        return replace(drive, target=lambda _time: float(self._target[target]), rate=rate)

    def _motions(self, compiled) -> dict:
        """Return motions of kinematic bodies that follow Newton's state."""

        def goal(body: int):
            return lambda _time: transform_matrix(self._goal[body])

        kinds = compiled.bodies.kind[: self.model.body_count]
        return {int(body): goal(int(body)) for body in np.flatnonzero(kinds == Kind.KINEMATIC)}

    # inputs -------------------------------------------------------------------------------------------------------------

    def _take_over(self, state, body_q: np.ndarray, body_qd: np.ndarray) -> None:
        """Move the bodies whose state was changed since the last step; their angles are those nearest to the state's."""
        simulation, count = self.simulation, self.model.body_count
        bodies = simulation.model.bodies
        dynamic = bodies.kind[:count] == Kind.DYNAMIC
        moved = np.flatnonzero(dynamic & (body_q != self._written[0]).any(axis=1))
        other = dynamic & (body_qd != self._written[1]).any(axis=1)
        other[moved] = True
        if len(moved):
            q = simulation.stepper.q.copy()
            for body in moved:
                q[body] = affine_state(transform_matrix(body_q[body]) @ np.linalg.inv(bodies.body_frame[body]))
            near = simulation.coordinates.copy()
            if state.joint_q is not None:
                of_moved = np.isin(self._ends, moved).any(axis=1)
                near[self._columns[of_moved]] = state.joint_q.numpy()[self._places[of_moved]]
            simulation.move_to(q, near)
        if other.any():
            qd = simulation.stepper.qd.copy()
            A = simulation.stepper.q[:, 3:].reshape(-1, 3, 3)
            for body in np.flatnonzero(other):
                qd[body, :3] = body_qd[body, :3]
                qd[body, 3:] = np.cross(body_qd[body, 3:], A[body], axisb=0, axisc=0).ravel()
            simulation.set_velocities(qd)

    def _set_loads(self, state, control, body_q: np.ndarray) -> None:
        """Set the forces on bodies, as wrenches at centres of mass, and the efforts on joints with axes."""
        simulation, wrench = self.simulation, np.zeros((len(self.simulation.model.bodies), 6))
        if state.body_f is not None:
            wrench[: self.model.body_count] = state.body_f.numpy()
        effort = np.zeros(int(self.model.joint_dof_count)) if control.joint_f is None else control.joint_f.numpy().astype(float)
        if effort.any():
            self._add_efforts(wrench, effort, body_q)
        if (change := effort[self._dofs] - self._efforts).any():
            total = simulation.control.efforts.constant
            total[self._columns] += change
            with_row = np.isin(np.arange(len(total)), self._columns)
            simulation.control.efforts.set_constant(total, with_row)
            self._efforts += change
        simulation.loads.set_constant(wrench[:, :3], wrench[:, 3:])

    def _add_efforts(self, wrench: np.ndarray, effort: np.ndarray, body_q: np.ndarray) -> None:
        """Add the efforts on free, distance and ball joints."""
        model, types = self.model, newton.JointType
        arrays = (model.joint_type, model.joint_parent, model.joint_child, model.joint_qd_start, model.joint_axis)
        kind, parent, child, start, axis = (array.numpy() for array in arrays)
        enabled, X_p = model.joint_enabled.numpy().astype(bool), model.joint_X_p.numpy()
        free = np.flatnonzero(enabled & np.isin(kind, (types.FREE, types.DISTANCE)))
        np.add.at(wrench, child[free], effort[start[free, None] + np.arange(6)])
        for k in np.flatnonzero(enabled & (kind == types.BALL)):
            i, span = int(parent[k]), slice(start[k], start[k] + 3)
            frame = transform_matrix(X_p[k])
            frame = frame if i < 0 else transform_matrix(body_q[i]) @ frame
            torque = frame[:3, :3] @ axis[span].astype(float).T @ effort[span]
            wrench[child[k], 3:] += torque
            if i >= 0:
                wrench[i, 3:] -= torque

    # results -------------------------------------------------------------------------------------------------------------

    def _write(self, state, body_q: np.ndarray, body_qd: np.ndarray) -> None:
        """Write poses and velocities of the bodies, and coordinates of the joints, after a step from `body_q` and `body_qd`."""
        simulation, count = self.simulation, self.model.body_count
        stepper, prescribed = simulation.stepper, simulation.stepper.prescribed
        poses = simulation.model.user_transform(stepper.q)[:count]
        turning = spin(stepper.q[:count], stepper.qd[:count])
        q, qd = np.empty((count, 7), dtype=np.float32), np.empty((count, 6), dtype=np.float32)
        q[:, :3], q[:, 3:] = poses[:, :3, 3], Rotation.from_matrix(polar(poses[:, :3, :3])).as_quat()
        qd[:, :3], qd[:, 3:] = stepper.qd[:count, :3], turning
        bodies = prescribed.bodies
        on_time = bodies[(stepper.q[bodies] == prescribed.target_poses(stepper.time)).all(axis=1)]
        q[on_time], qd[bodies] = body_q[on_time], body_qd[bodies]
        q[:, 3:] *= np.where(np.einsum("ni,ni->n", q[:, 3:], body_q[:, 3:]) < 0.0, -1.0, 1.0)[:, None]
        state.body_q.assign(q)
        state.body_qd.assign(qd)
        self._written = q.astype(float), qd.astype(float)
        if self.model.joint_count and state.joint_q is not None:
            newton.eval_ik(self.model, state, state.joint_q, state.joint_qd)
            joint_q = state.joint_q.numpy()
            joint_q[self._places] = simulation.coordinates[self._columns]  # counts turns
            state.joint_q.assign(joint_q)
