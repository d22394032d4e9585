"""Start and end of a substep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.body_data import BodyData, inverse_masses
from abd.backends.reference.numpy_bodies import StepData, maps, positions
from abd.backends.reference.numpy_motion import HostScheme, Motion, Target
from abd.backends.reference.parts.conditions import Inactive, TargetPoses
from abd.backends.reference.parts.rows import Rows
from abd.backends.reference.parts.states import States
from abd.backends.reference.potential import Potential
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.sizes import turning_arms
from abd.model import Model
from abd.potentials.integrators import Scheme, Schemes
from abd.rotations import rotation_vectors


class Steps:
    """Implementation of `abd.backends.protocol.Steps`; friction_work: of the last step [J]."""

    def __init__(
        self, model: Model, constants: BodyData, potential: Potential, states: States, scheme: HostScheme,
        target_poses: TargetPoses, inactive: Inactive, rows: Rows,
    ):  # fmt: skip
        self.model, self.potential, self.states, self.scheme = model, potential, states, scheme
        self.target_poses, self.inactive, self.rows = target_poses, inactive, rows
        self.at, self.n = potential.at, potential.n
        self.motion = Motion(constants, joined_components(model), *turning_arms(model))
        self.inverse_mass, self.friction_work = inverse_masses(model), 0.0

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        at, states, some = self.at, self.states, self.target_poses.prescribed
        prescribed = states.now.copy()
        prescribed[some] = states.now[some] if target_poses is None else target_poses
        self.scheme.rows = self.motion.rows(rule, mode, states.now, states.velocity)
        self.scheme.rule, self.scheme.mode = rule, mode
        self.pulled = self.rows.pulls(states.now)
        target = self.motion.coast(rule, self.scheme.rows, states.now, states.velocity, states.forces, self.pulled)
        target = self._with_targets(target, prescribed)
        self.scheme.target = target
        self.potential.device.assign(self.scheme.lengths, rule.h)
        at.rest, at.turn, at.target, at.q = target.rest, target.w, target.q, states.now.copy()
        at.ch2, at.eps = np.full(self.n, rule.ch2), np.full(self.n, eps)
        at.step = StepData(
            pt=positions(target.q),
            At=maps(target.q),
            scale=target.scale,
            pk=positions(prescribed),
            Ak=maps(prescribed),
            lp=np.zeros((self.n, 3)),
            lA=np.zeros((self.n, 3, 3)),
            held=self.inactive.immobile,
            gravity=self.model.settings.gravity,
            penalty=rule.penalty,
            ch2=at.ch2,
        )
        self.inactive.hold(self.inactive.immobile)
        self.potential.contacts.set_scale(at.ch2)
        for weights in self.potential.regularisations:
            self.potential.device.fill(weights)
        self.potential.friction.forget()

    def _with_targets(self, target: Target, target_poses: np.ndarray) -> Target:
        """Return a target with the target poses (n, 12) of prescribed bodies."""
        some, now = self.target_poses.prescribed, self.states.now
        q, dp, w = target.q.copy(), target.dp.copy(), target.w.copy()
        q[some], dp[some] = target_poses[some], positions(target_poses[some] - now[some])
        w[some] = rotation_vectors(maps(target_poses[some]) @ np.linalg.inv(maps(now[some])))
        return replace(target, q=q, dp=dp, w=w)

    def mobility(self) -> np.ndarray:
        return self.inverse_mass * self.scheme.rule.impulse

    def finish(self) -> None:
        at, states, rule, friction = self.at, self.states, self.scheme.rule, self.potential.friction
        self.friction_work = friction.work(at.q - at.rest, at.eps, at.ch2)
        friction.keep_anchors(at.q - at.rest, at.q, states.now, at.eps)
        velocity, states.forces = self.motion.keep(
            rule, self.scheme.rows, self.scheme.target, at.q, states.now, states.velocity, states.forces, self.pulled,
            self.rows.pulls(at.q),
        )  # fmt: skip
        states.velocity, states.earlier = velocity, states.velocity
        states.now, states.before = at.q.copy(), states.now
        self.rows.finish()
