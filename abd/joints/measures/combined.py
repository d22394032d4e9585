"""Rows of several measures of one joint, ``x = sum_k w_k measure_k - rest``, for screws, bushings and springs.

Laws of the relative rotation and angular velocity w of C in D, independent of a choice of angles:

    rotary_stiffness   energy ``k |phi|^2 / 2``, phi the rotation vector of C in D (shorter than pi)        [N m/rad]
    rotary_damping     power ``d |w|^2``                                                                    [N m s]
    rotary_friction    power ``f (|w_x| + |w_y| + |w_z|)`` along the axes of C, as MuJoCo's frictionloss    [N m]
    rotary_armature    energy ``J |w|^2 / 2`` of a rotor that rotates with the joint                        [kg m^2]

Dampers and rotors act on the entries of ``M = D^T C``, because ``sum_ij (dM_ij/dt)^2 = 2 |w|^2``. Friction acts on the
components of ``R^T M``, R the M at the start of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joint_model import Joint
from abd.joints.measures.axes import small_rotation
from abd.joints.measures.measures import Measure, MeasureKind, entry, measure

ROTARY_KEYS = ("rotary_stiffness", "rotary_damping", "rotary_friction", "rotary_armature")
"""Parameters of joint types that use `rotary_laws`."""


@dataclass(frozen=True)
class Combined:
    """One row of a joint type.

    Attributes:
        name: unique within the joint.
        rotary: x is in radians rather than metres.
        measures, weights: terms of the sum.
        stiffness: of a spring with energy ``stiffness x^2 / 2`` [J]; None for a constraint row, ``x = 0``, and for a
            force law.
        damping: of the spring, power ``damping (dx/dt)^2`` [W].
        friction: Coulomb friction along x [N or N m]; armature: inertia along x [kg or kg m^2].
        at_pose: function of the pose T_CD (4, 4) at the start of a step that returns the only measure, if it depends on
            it.
        rest: value of the sum at which x = 0.
        law: instead of a spring, the force along the sum as a function of (sum, t, rate) at the end of a step [N or N
            m].
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
        """Whether the row is a constraint."""
        return self.stiffness is None and self.law is None


def rotary_laws(joint: Joint) -> list[Combined]:
    """Springs, dampers, friction and rotors of a joint with parameters in `ROTARY_KEYS`."""
    stiffness, damping, friction, armature = (float(joint.parameters.get(key, 0.0)) for key in ROTARY_KEYS)
    found: list[Combined] = []
    if stiffness > 0.0:
        found += [_along(f"spring {name}", rotation_vector(k), stiffness=stiffness) for k, name in enumerate("xyz")]
    if damping > 0.0 or armature > 0.0:
        found += entries((0.5 * damping,) * 3, 0.5 * armature)
    if friction > 0.0:
        found += [
            _along(
                f"friction {name}", small_rotation(name), friction=friction,
                at_pose=lambda T, name=name: small_rotation(name, T[:3, :3]),
            )
            for name in "xyz"
        ]  # fmt: skip
    return found


def entries(damping: tuple[float, float, float], armature: float = 0.0) -> list[Combined]:
    """Dampers and rotors on the entries of M, column by column; the columns are the axes of C in D."""
    return [
        _along(
            f"{'xyz'[k]}{'xyz'[i]}", measure("", True, MeasureKind.AFFINE, entry(i, k)), damping=one, armature=armature
        )
        for k, one in enumerate(damping)
        for i in range(3 if one > 0.0 or armature > 0.0 else 0)
    ]


def rotation_vector(k: int) -> Measure:
    """Component k [rad] of the rotation vector of C in D."""
    return measure("", True, MeasureKind.ROTATION, np.append(np.zeros(3), np.eye(3)[k]))


def _along(name: str, one: Measure, stiffness: float = 0.0, **keys) -> Combined:
    return Combined(name, True, (one,), (1.0,), stiffness, **keys)
