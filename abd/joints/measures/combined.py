"""Rows made of several measures of one joint, ``x = sum_k w_k measure_k - rest``, as screws, bushings and springs have them;
and laws of the relative rotation and angular velocity w of C in D, whatever their angles are:

    rotary_stiffness   energy ``k |phi|^2 / 2``, phi the rotation vector of C in D (shorter than pi)        [N m/rad]
    rotary_damping     power ``d |w|^2``                                                                    [N m s]
    rotary_friction    power ``f (|w_x| + |w_y| + |w_z|)`` along the axes of C, as MuJoCo's frictionloss    [N m]
    rotary_armature    energy ``J |w|^2 / 2`` of a rotor that turns with the joint                          [kg m^2]

The entries of ``M = D^T C`` have ``sum_ij (dM_ij/dt)^2 = 2 |w|^2``: dampers and rotors act on them, so that no angle is needed.
Friction acts on the components of ``R^T M``, R the M at the start of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joints.measures.measures import Measure, MeasureKind, entry, functional, measure
from abd.model import Joint

ROTARY_KEYS = ("rotary_stiffness", "rotary_damping", "rotary_friction", "rotary_armature")
"""Parameters of joint types that take `rotary_laws`."""


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


def rotary_laws(joint: Joint) -> list[Combined]:
    """Springs, dampers, friction and rotors of a joint that has `ROTARY_KEYS` among its parameters."""
    stiffness, damping, friction, armature = (float(joint.parameters.get(key, 0.0)) for key in ROTARY_KEYS)
    found: list[Combined] = []
    if stiffness > 0.0:
        found += [_along(f"spring {name}", rotation_vector(k), stiffness=stiffness) for k, name in enumerate("xyz")]
    if damping > 0.0 or armature > 0.0:
        found += entries((0.5 * damping,) * 3, 0.5 * armature)
    if friction > 0.0:
        at_start = (_turn(k, np.eye(3)) for k in range(3))
        found += [
            _along(f"friction {name}", one, friction=friction, at_pose=lambda T, k=k: _turn(k, T[:3, :3]))
            for k, (name, one) in enumerate(zip("xyz", at_start))
        ]
    return found


def entries(damping: tuple[float, float, float], armature: float = 0.0) -> list[Combined]:
    """Dampers and rotors of the entries of M, column by column, the columns being the axes of C seen from D."""
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


def _turn(k: int, R: np.ndarray) -> Measure:
    """Component k of the axial vector of ``R^T M``: of a small turn about the axes of C since M was R (3, 3) [rad]."""
    i, j = (k + 1) % 3, (k + 2) % 3
    weights = np.zeros((3, 3))
    weights[:, i], weights[:, j] = 0.5 * R[:, j], -0.5 * R[:, i]
    return measure("", True, MeasureKind.AFFINE, functional(M=weights))


def _along(name: str, one: Measure, stiffness: float = 0.0, **keys) -> Combined:
    return Combined(name, True, (one,), (1.0,), stiffness, **keys)
