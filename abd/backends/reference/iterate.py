"""States and constants at which the terms of the incremental potential are evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class StepData:
    """Constants of a step, with the fields of the kernels' struct of the same name.

    Attributes:
        pt, At: (n, 3) [m], (n, 3, 3) inertial target; scale: (n,) weight of the inertia [-].
        pk, Ak: prescribed poses; lp, lA: their multipliers.
        held: (n,) bodies fixed for the rest of this step.
        gravity: (3,) [m/s^2]; penalty: stiffness of the penalty of prescribed poses [-]; ch2: (n,) c h^2 [s^2].
    """

    pt: np.ndarray
    At: np.ndarray
    scale: np.ndarray
    pk: np.ndarray
    Ak: np.ndarray
    lp: np.ndarray
    lA: np.ndarray
    held: np.ndarray
    gravity: np.ndarray
    penalty: float
    ch2: np.ndarray


@dataclass
class Iterate:
    """States at which terms are evaluated.

    Attributes:
        q: (n, 12) current iterate; trial: last trial; rest: friction's reference xh.
        target: (n, 12) inertial targets, or target poses.
        step: constants of the step, turn: (n, 3) rotation vectors of its inertial target [rad], both None before the first one;
            ch2: (n,) its c h^2 [s^2]; eps: (n,) friction's, as a displacement [m].
    """

    q: np.ndarray
    trial: np.ndarray
    rest: np.ndarray
    step: StepData | None = None
    turn: np.ndarray | None = None
    target: np.ndarray | None = None
    ch2: np.ndarray | None = None
    eps: np.ndarray | None = None


