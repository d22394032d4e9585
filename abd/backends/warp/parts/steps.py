"""Start and end of a substep on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import inverse_masses
from abd.backends.device.graphs import Graphs
from abd.backends.device.totals import Totals
from abd.backends.device.upload import allocate_struct
from abd.backends.linear.linear import LinearSolver
from abd.backends.warp.parts.conditions import Inactive
from abd.backends.warp.parts.rows import Rows
from abd.backends.warp.parts.states import States
from abd.backends.warp.parts.target_poses import TargetPoses
from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.scheme import DeviceScheme
from abd.backends.warp.trial_path import TrialPath
from abd.model import Model
from abd.potentials.integrators import Scheme, Schemes
from cuda_kernels.bodies import integrators, momenta, poses
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.step import statistics


class Steps:
    """Implementation of `abd.backends.protocol.Steps`."""

    def __init__(
        self, model: Model, potential: Potential, states: States, scheme: DeviceScheme, trial_path: TrialPath,
        target_poses: TargetPoses, inactive: Inactive, touch: Touch, rows: Rows, linear: LinearSolver, totals: Totals,
        graphs: Graphs,
    ):  # fmt: skip
        self.potential, self.states, self.scheme, self.trial_path = potential, states, scheme, trial_path
        self.target_poses, self.inactive, self.touch, self.rows = target_poses, inactive, touch, rows
        self.linear, self.totals, self.graphs = linear, totals, graphs
        self.device, self.at, self.n = potential.device, potential.at, potential.n
        self.inverse_mass = inverse_masses(model)
        step, target = self.at.step, allocate_struct(Pose, self.n, self.device)
        self.at.target = target
        step.pt, step.At, step.scale = target.p, target.A, self.device.zeros(self.n, wp.float64)
        potential.friction.turn = trial_path.lead.w
        self.at.ch2, self.at.eps = np.ones(self.n), np.zeros(self.n)
        step.ch2 = self.device.upload(self.at.ch2, wp.float64)
        self._configured: tuple | None = None

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        at = self.at
        self.scheme.set_rule(rule)
        self.scheme.set_mode(mode)
        if target_poses is not None:
            self.target_poses.set_targets(target_poses)
            self.inactive.hold(self.inactive.immobile)
        self.set_scales(rule, eps)
        self.scheme.writer = None
        self.target_poses.launch_penalty(rule.penalty)
        self.graphs.run("begin", self.launch_begin)
        self.potential.contacts.set_scale(at.ch2)
        self.touch.invalidate()
        self.linear.begin()
        self.potential.contacts.candidates.forget()

    def set_scales(self, rule: Scheme | Schemes, eps: float | np.ndarray) -> None:
        """Write c h^2 [s^2] and the static slip eps [m] of friction to the device."""
        at, scales = self.at, (rule.ch2, eps) if isinstance(rule, Scheme) else None
        if scales is not None and scales == self._configured:
            return
        self._configured = None  # not valid until all is written
        at.ch2, at.eps = np.full(self.n, rule.ch2), np.full(self.n, eps)
        self.device.write(at.step.ch2, at.ch2)
        self.potential.friction.set_eps(at.eps)
        self._configured = scales

    def launch_begin(self) -> None:
        """Compute the targets of the step and reset multipliers and regularisation; launches only."""
        launch, n, at, states, scheme = self.device.launch, self.n, self.at, self.states, self.scheme
        scheme.launch_levels(at.body, states.now, states.velocity)
        springs = self.rows.springs
        springs.launch(states.now, scheme.mode, springs.pulled)
        self._launch_targets()
        launch(poses.copy_pose, n, states.now, at.current)
        self.target_poses.launch_reset()
        self.device.fill(self.potential.contacts.law.regularisation)
        joints = self.potential.joints
        if joints.system.has_friction:
            self.device.fill(joints.regularisation)

    @property
    def _target_outputs(self) -> tuple:
        """Kernel outputs: targets, predicted motion and reference pose of slips."""
        return self.at.target, self.at.step.scale, self.trial_path.lead, self.at.rest

    def _launch_targets(self) -> None:
        """Compute the targets by the modes of the bodies; launches only."""
        states = self.states
        known = states.now, states.velocity, states.forces, self.rows.springs.pulled
        self.device.launch(integrators.coast, self.n, self.at.body, *self.scheme.of_bodies, *known, *self._target_outputs)
        self.target_poses.launch_lead(states.now)

    def mobility(self) -> np.ndarray:
        return self.inverse_mass * self.scheme.rule.impulse

    def finish(self) -> None:
        has_friction = self.potential.friction.count > 0
        (self.totals.fill if has_friction else self.totals.leave_empty)("friction")
        self.graphs.run(("finish", has_friction), lambda: self._launch_end(has_friction))
        self.rows.memory.finish_step()

    def _launch_end(self, has_friction: bool) -> None:
        """Compute friction work, if any contact `has_friction`, anchors and the new state; launches only."""
        friction, ends = self.potential.friction, (self.at.current, self.at.rest, self.states.now)
        if has_friction:
            extent, works = self.device.extent(friction.count, friction.capacity), friction.works(*ends[:2], self.at.step.ch2)
            self.totals.launch("friction", statistics.value_statistics, extent, friction.lagged.counts, works)
        friction.keep_anchors(*ends)
        self.launch_finish()

    def launch_finish(self) -> None:
        """Compute the new state without friction; launches only, call `RowMemory.finish_step` afterwards."""
        launch, n, at, states, scheme = self.device.launch, self.n, self.at, self.states, self.scheme
        self.device.copy(states.earlier, states.velocity)
        springs = self.rows.springs
        springs.launch(at.current, scheme.mode, springs.pulls)
        ends = at.current, states.now, at.target, at.step.scale
        known = states.earlier, springs.pulled, springs.pulls, states.forces, states.velocity
        launch(momenta.keep_momentum, n, at.body, *scheme.of_bodies, *ends, *known)
        launch(poses.copy_pose, n, states.now, states.before)
        launch(poses.copy_pose, n, at.current, states.now)
        self.rows.memory.launch_finish(scheme.of_rows, at.current, at.step.ch2, self.totals)
