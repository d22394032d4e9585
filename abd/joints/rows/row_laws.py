"""Which law acts on every measured row, what for, and with which numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np


class Role(IntEnum):
    """What a row is there for."""

    CONSTRAINT = 0
    GAP = 1
    LOWER = 2
    UPPER = 3
    LOCK = 4
    DRIVE = 5
    SPRING = 6
    FORCE = 7
    FRICTION = 8
    ARMATURE = 9
    COUPLING = 10
    APPLIED = 11
    COORDINATE = 12
    """Read only (`abd.joints.rows.rigid_rows`)."""


@dataclass
class RowLaws:
    """The law of every measured row (R,), and the numbers it has; SI units, m or rad.

    Attributes:
        role: `Role`; law: `abd.joints.rows.laws.Law` of the row while it is active.
        joint: (R,) joint, or the first one of a coupling; coupling: index of it, -1 for a joint's own row.
        name: of the row, such as "x", or of the coordinate; rotary: (R,) bool.
        active: (R,) bool; exact: (R,) bool.
        mass_stiffness: K [kg or kg m^2]; kappa of barriers; S of cubic limits; rotor inertia of armatures.
        stiffness, damping, effort: SI.
        bound, sign, distance: of limits and gaps.
        target: value to reach, rest of springs, force of force rows; rate: speed of the target.
        target_of, rate_of: row -> function of t [s] that gives them.
        revision: rises when targets or rates, or their functions, are changed.
        follows: the target is the last value (brakes without an effort limit, passive drives), or moves on from it by
            `rate` (velocity drives). Of a barrier: it is on its way to its range, or bounces, and lets what leaves it go.
        restitution: of barriers, share of the speed that they give back.
        tolerance: residual to which an exact row is held.
    """

    role: np.ndarray
    law: np.ndarray
    joint: np.ndarray
    coupling: np.ndarray
    name: list[str]
    rotary: np.ndarray
    active: np.ndarray
    exact: np.ndarray
    mass_stiffness: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    effort: np.ndarray
    bound: np.ndarray
    sign: np.ndarray
    distance: np.ndarray
    target: np.ndarray
    rate: np.ndarray
    follows: np.ndarray
    restitution: np.ndarray
    tolerance: np.ndarray
    target_of: dict[int, Callable[[float], float]] = field(default_factory=dict)
    rate_of: dict[int, Callable[[float], float]] = field(default_factory=dict)
    revision: int = 0
