"""Integration scheme of the current step in device arrays."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import ONE_THREAD, Device
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.sizes import turning_arms
from abd.model import Model
from abd.potentials.integrators import LEVELS, Mode, Scheme, Schemes
from cuda_kernels.bodies import integrators
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.shared.bodies import COLUMNS, WEIGHTS


class DeviceScheme:
    """Coefficients of s schemes, and the scheme, mode and level of each of n bodies.

    Attributes:
        rule: the scheme, or the schemes of several worlds.
        of: (n,) index of the scheme of every body; lengths: (n,) step lengths [s].
        weights (s, 4, 6), motion (s, 3 + levels, columns), stiffness_weights (4,): coefficients of `abd.potentials.integrators`.
        mode: (n,) `abd.potentials.integrators.Mode` of every body.
        of_bodies: kernel arguments that select the row of `motion` of every body.
        writer: the object that wrote the current values; None if they are not valid.
    """

    def __init__(self, model: Model, device: Device):
        n, (armed, arms) = len(model.bodies), turning_arms(model)
        self.device = device
        self.rule: Scheme | Schemes | None = None
        worlds = len(np.unique(model.bodies.world))
        self.of, self.lengths, self._differ = device.zeros(n, wp.int32), device.zeros(n, wp.float64), False
        self.weights = device.zeros((max(worlds, 1), len(Mode), WEIGHTS), wp.float64)
        self.stiffness_weights = device.zeros(len(Mode), wp.float64)
        self.motion = device.zeros((max(worlds, 1), Mode.SMOOTH + LEVELS, COLUMNS), wp.float64)
        self.mode, self.level, self.requests = (device.zeros(count, wp.int32) for count in (n, n, len(armed)))
        self.mechanism, self.armed = device.upload(joined_components(model), wp.int32), device.upload(armed, wp.int32)
        self.arms = device.upload(arms, wp.vec3d)
        self.of_bodies = self.mode, self.mechanism, self.level, self.of, self.motion
        self.writer: object | None = None

    def set_rule(self, rule: Scheme | Schemes) -> None:
        """Set a scheme, or the schemes of several worlds."""
        if rule is self.rule:
            return
        self.rule = None  # invalid until all is written
        write, several = self.device.write, rule.each
        write(self.weights, np.stack([one.weights for one in several]))
        write(self.motion, np.stack([one.motion for one in several]))
        write(self.stiffness_weights, np.array(several[0].stiffness_weights))
        write(self.lengths, np.broadcast_to(rule.h, len(self.lengths)))
        if self._differ or len(several) > 1:
            write(self.of, np.broadcast_to(rule.of, len(self.of)).astype(np.int32))
        self._differ, self.rule = len(several) > 1, rule

    def set_mode(self, mode: np.ndarray) -> None:
        """Set the modes of the bodies (n,)."""
        self.device.write(self.mode, mode.astype(np.int32))

    def launch_levels(self, body, now: Pose, velocity: wp.array) -> None:
        """Choose the level of every mechanism from a state (`abd.potentials.integrators.levels`); launches only."""
        launch, count = self.device.launch, len(self.requests)
        if not count:
            return
        self.device.fill(self.level)
        launch(integrators.levels_of_arms, count, body, self.armed, self.arms, now, velocity, self.of, self.motion, self.requests)
        launch(integrators.choose_levels, count, self.armed, self.mechanism, self.requests, self.level, grain=ONE_THREAD)

    @property
    def of_rows(self) -> tuple[wp.array, wp.array, wp.array]:
        """Kernel arguments of joint rows."""
        return self.weights, self.mode, self.of
