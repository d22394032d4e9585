"""Rows made of several measures of one joint, ``x = sum_k w_k measure_k - rest``: screws, bushings, springs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joints.measures.measures import Measure


@dataclass(frozen=True)
class Combined:
    """One row of a joint type.

    Attributes:
        name: unique within the joint.
        rotary: x is in radians rather than metres.
        measures, weights: summands.
        stiffness: None for a constraint row, ``x = 0``, and beside a law; otherwise that of a spring with energy
            ``stiffness x^2 / 2`` [J].
        damping: of the spring, power ``damping (dx/dt)^2`` [W].
        friction: Coulomb friction along x [N or N m]; armature: inertia along x [kg or kg m^2].
        at_pose: gives the only measure for the pose T_CD (4, 4) at the start of a step, where it depends on that.
        rest: value of the sum at which x = 0.
        law: instead of a spring, the force along the sum as a function of (sum, t, rate) at the end of a step [N or N m].
    """

    name: str
    rotary: bool
    measures: tuple[Measure, ...]
    weights: tuple[float, ...]
    stiffness: float | None = None
    damping: float = 0.0
    rest: float = 0.0
    law: Callable[[Sequence[float]], float] | None = None
    friction: float = 0.0
    armature: float = 0.0
    at_pose: Callable[[np.ndarray], Measure] | None = None

    @property
    def holds(self) -> bool:
        """Whether it is a constraint, and neither a spring nor a force."""
        return self.stiffness is None and self.law is None
