"""Start and end of a substep on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import inverse_masses
from abd.backends.device.upload import allocate_struct
from abd.potentials.integrators import Scheme, Schemes
from cuda_kernels.bodies import integrators, momenta, poses
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.step import statistics


class Steps:
    """Implementation of `abd.backends.protocol.Steps`."""

    def __init__(self, backend):
        self.backend, self.device, self.at, self.n = backend, backend.device, backend.at, backend.n
        self.inverse_mass = inverse_masses(backend.model)
        step, target = self.at.step, allocate_struct(Pose, self.n, self.device)
        self.at.target = target
        step.pt, step.At, step.scale = target.p, target.A, self.device.zeros(self.n, wp.float64)
        backend.friction.turn = backend.trial_path.lead.w
        self.at.ch2, self.at.eps = np.ones(self.n), np.zeros(self.n)
        step.ch2 = self.device.upload(self.at.ch2, wp.float64)
        self._configured: tuple | None = None

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        b = self.backend
        b.scheme.set_rule(rule)
        b.scheme.set_mode(mode)
        if target_poses is not None:
            self.device.write(b.target_poses.q, target_poses)
            b.inactive.hold(b.inactive.immobile)
        self.set_scales(rule, eps)
        b.scheme.writer = None
        self.device.fill(self.at.step.penalty, rule.penalty)
        b.graphs.run("begin", self.launch_begin)
        b.contacts.set_scale(self.at.ch2)
        b.touch.invalidate()
        b.linear.begin()
        b.contacts.candidates.forget()

    def set_scales(self, rule: Scheme | Schemes, eps: float | np.ndarray) -> None:
        """Write c h^2 [s^2] and the static slip eps [m] of friction to the device."""
        at, scales = self.at, (rule.ch2, eps) if isinstance(rule, Scheme) else None
        if scales is not None and scales == self._configured:
            return
        self._configured = None  # not valid until all is written
        at.ch2, at.eps = np.full(self.n, rule.ch2), np.full(self.n, eps)
        self.device.write(at.step.ch2, at.ch2)
        self.backend.friction.set_eps(at.eps)
        self._configured = scales

    def launch_begin(self) -> None:
        """Compute the targets of the step and reset multipliers and regularisation; launches only."""
        b, at, launch = self.backend, self.at, self.device.launch
        states, scheme, springs = b.states, b.scheme, b.rows.springs
        scheme.launch_levels(at.body, states.now, states.velocity)
        springs.launch(states.now, scheme.mode, springs.pulled)
        known = states.now, states.velocity, states.forces, springs.pulled
        outputs = at.target, at.step.scale, b.trial_path.lead, at.rest
        launch(integrators.coast, self.n, at.body, *scheme.of_bodies, *known, *outputs)
        b.target_poses.launch_lead(states.now)
        launch(poses.copy_pose, self.n, states.now, at.current)
        self.device.fill(b.contacts.law.regularisation)
        if b.system.has_friction:
            self.device.fill(b.joints.regularisation)

    def mobility(self) -> np.ndarray:
        return self.inverse_mass * self.backend.scheme.rule.impulse

    def finish(self) -> None:
        b, has_friction = self.backend, self.backend.friction.count > 0
        (b.totals.fill if has_friction else b.totals.leave_empty)("friction")
        b.graphs.run(("finish", has_friction), lambda: self._launch_end(has_friction))
        b.rows.finish_step()

    def _launch_end(self, has_friction: bool) -> None:
        """Compute friction work, if any contact `has_friction`, anchors and the new state; launches only."""
        b, friction, ends = self.backend, self.backend.friction, (self.at.current, self.at.rest, self.backend.states.now)
        if has_friction:
            extent, works = self.device.extent(friction.count, friction.capacity), friction.works(*ends[:2], self.at.step.ch2)
            b.totals.launch("friction", statistics.value_statistics, extent, friction.lagged.counts, works)
        friction.keep_anchors(*ends)
        self.launch_finish()

    def launch_finish(self) -> None:
        """Compute the new state without friction; launches only, call `Rows.finish_step` afterwards."""
        b, launch, n, at = self.backend, self.device.launch, self.n, self.at
        states, scheme, springs = b.states, b.scheme, b.rows.springs
        self.device.copy(states.earlier, states.velocity)
        springs.launch(at.current, scheme.mode, springs.pulls)
        ends = at.current, states.now, at.target, at.step.scale
        known = states.earlier, springs.pulled, springs.pulls, states.forces, states.velocity
        launch(momenta.keep_momentum, n, at.body, *scheme.of_bodies, *ends, *known)
        launch(poses.copy_pose, n, states.now, states.before)
        launch(poses.copy_pose, n, at.current, states.now)
        b.rows.launch_finish()
