"""Poses at which energies are evaluated, the iterate of a step and the trial of the line search; and scratch arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.upload import allocate_struct
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.bodies.bodies import BodyData, StepData


@dataclass
class Iterate:
    """Device arrays that the terms of the potential read.

    Attributes:
        body: constants of the bodies; step: constants of the step.
        current, trial: poses of slots "current" and "trial"; rest: reference pose of slips;
            target: inertial targets, or target poses of prescribed bodies.
        done: (n,) int32, 1 for bodies of converged islands, whose results do not change.
        ch2: (n,) c h^2 of the step [s^2]; eps: (n,) displacement [m] at which friction starts to slide. Kernels read copies in
            `step` and in the lagged contacts (`Steps.set_scales`), so that recorded launches hold for any step length.
        along: island (n,) of the bodies and alpha (islands,), if the trial lies on the path of the last collision search;
            None otherwise.
    """

    current: Pose
    trial: Pose | None = None
    rest: Pose | None = None
    body: BodyData | None = None
    step: StepData | None = None
    done: wp.array | None = None
    target: Pose | None = None
    ch2: np.ndarray | None = None
    eps: np.ndarray | None = None
    along: tuple[wp.array, wp.array] | None = None

    def pose(self, slot: str) -> Pose:
        """Pose of slot "current" or "trial"."""
        return self.current if slot == "current" else self.trial


class Scratch:
    """Arrays for intermediate results of n bodies; their contents are valid within one operation.

    Attributes:
        a, b, row: (n,) float64; marks: (n,) int32; vectors: (n, 12); straight: a pose.
    """

    def __init__(self, device: Device, n: int):
        self.a, self.b, self.row = (device.zeros(n, wp.float64) for _ in range(3))
        self.marks = device.zeros(n, wp.int32)
        self.vectors = device.zeros((n, 12), wp.float64)
        self.straight = allocate_struct(Pose, n, device)
