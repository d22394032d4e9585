"""Where energies are evaluated: the iterate of a step, and the trial that a search looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from cuda_kernels.bodies.affine import Pose
from cuda_kernels.bodies.bodies import BodyData, StepData


@dataclass
class Iterate:
    """What terms read, all of it on the device.

    Attributes:
        body: constants of the bodies; step: what the step holds fixed.
        current, trial: poses in slots "current" and "trial"; rest: friction's reference;
            target: where bodies are led, by inertia or to their target poses.
        done: (n,) int32, 1 for bodies whose island takes no part: they keep what they have.
        ch2: (n,) c h^2 of the step [s^2]; eps: (n,) friction's, in displacements [m]; kernels read them in `step` and
            in what is lagged (`Steps.set_scales`), so that records serve steps of any length.
        along: island (n,) of the bodies, and alpha (islands,), where the trial lies on the path of the last search for
            collisions; None otherwise.
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
        """What slot "current" or "trial" is of."""
        return self.current if slot == "current" else self.trial
