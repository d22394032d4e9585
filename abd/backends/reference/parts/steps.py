"""Start and end of a substep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.body_data import inverse_masses
from abd.backends.reference.numpy_bodies import StepData, maps, positions
from abd.backends.reference.numpy_motion import Motion, Target
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.sizes import turning_arms
from abd.potentials.integrators import Scheme, Schemes
from abd.rotations import rotation_vectors


class Steps:
    """Implementation of `abd.backends.protocol.Steps`; friction_work: of the last step [J]."""

    def __init__(self, backend):
        self.backend, self.at, self.n, model = backend, backend.at, backend.n, backend.model
        self.motion = Motion(backend.constants, joined_components(model), *turning_arms(model))
        self.inverse_mass, self.friction_work = inverse_masses(model), 0.0

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        b, at, states, some = self.backend, self.at, self.backend.states, self.backend.target_poses.prescribed
        prescribed = states.now.copy()
        prescribed[some] = states.now[some] if target_poses is None else target_poses
        b.scheme.rows = self.motion.rows(rule, mode, states.now, states.velocity)
        b.scheme.rule, b.scheme.mode = rule, mode
        self.pulled = b.rows.pulls(states.now)
        target = self.motion.coast(rule, b.scheme.rows, states.now, states.velocity, states.forces, self.pulled)
        target = b.scheme.target = self._with_targets(target, prescribed)
        b.device.assign(b.scheme.lengths, rule.h)
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
            held=b.inactive.immobile,
            gravity=b.model.settings.gravity,
            penalty=rule.penalty,
            ch2=at.ch2,
        )
        b.inactive.hold(b.inactive.immobile)
        b.contacts.set_scale(at.ch2)
        for weights in b.potential.regularisations:
            b.device.fill(weights)
        b.friction.forget()

    def _with_targets(self, target: Target, target_poses: np.ndarray) -> Target:
        """Return a target with the target poses (n, 12) of prescribed bodies."""
        some, now = self.backend.target_poses.prescribed, self.backend.states.now
        q, dp, w = target.q.copy(), target.dp.copy(), target.w.copy()
        q[some], dp[some] = target_poses[some], positions(target_poses[some] - now[some])
        w[some] = rotation_vectors(maps(target_poses[some]) @ np.linalg.inv(maps(now[some])))
        return replace(target, q=q, dp=dp, w=w)

    def mobility(self) -> np.ndarray:
        return self.inverse_mass * self.backend.scheme.rule.impulse

    def finish(self) -> None:
        b, at, states, friction = self.backend, self.at, self.backend.states, self.backend.friction
        self.friction_work = friction.work(at.q - at.rest, at.eps, at.ch2)
        friction.keep_anchors(at.q - at.rest, at.q, states.now, at.eps)
        velocity, states.forces = self.motion.keep(
            b.scheme.rule, b.scheme.rows, b.scheme.target, at.q, states.now, states.velocity, states.forces, self.pulled,
            b.rows.pulls(at.q),
        )  # fmt: skip
        states.velocity, states.earlier = velocity, states.velocity
        states.now, states.before = at.q.copy(), states.now
        b.rows.finish()
