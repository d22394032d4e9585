"""Springs, dampers and other forces between two frames; see `bushing` for all six axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType
from abd.joints.measures.axes import displacement
from abd.joints.measures.combined import Combined, entries
from abd.joints.measures.measures import MeasureKind, measure
from abd.joints.measures.slopes import gradient

LAWS = ("force_formula", "force_function")
"""Keys of force functions: of springs, and of the coordinates of other joints."""


@dataclass(frozen=True)
class LengthLaw:
    """Force function of (length, t, speed) from a function of (length, gap, t, speed)."""

    function: Callable[[Sequence[float]], float]
    rest: float

    def __call__(self, at: Sequence[float]) -> float:
        length, t, speed = at
        return float(self.function((length, length - self.rest, t, speed)))

    def gradient(self, values: Sequence[float]) -> np.ndarray:
        """Derivatives (3,)."""
        length, t, speed = values
        by_length, by_gap, by_time, by_speed = gradient(self.function, (length, length - self.rest, t, speed))
        return np.array([by_length + by_gap, by_time, by_speed])


class Spring(JointType):
    """Spring and damper between the origins of both frames, along their connecting line, or a general force law.

    Parameters:

        stiffness, damping, rest_length  [N/m], [N s/m], [m]; default 0
        law                              function of ``(length, gap, t, speed)`` that returns a force [N]

    A positive force of the law pushes the origins apart; a damper is ``-c speed``. The arguments are ``length = |d|``,
    ``gap = |d| - rest_length`` [m], t [s] and ``speed = d|d|/dt`` [m/s] at the end of a step.

        combined     a spring on ``|d| - rest_length``, and the law on ``|d|``, with energy ``-int F d|d|``
        coordinates  none

    A spring along or about a coordinate of another joint is a setting of that coordinate.
    """

    SYMBOL, AXIS, POINTS = "spring", "none", "apart"
    NEEDED: ClassVar = {"stiffness": 10.0}
    ALTERNATIVES, OPTIONAL = LAWS, ("damping", "rest_length")

    def combined(self, joint: Joint) -> list[Combined]:
        """The spring, if any, and the law, if any."""
        stiffness, damping, rest = (
            float(joint.parameters.get(key, 0.0)) for key in ("stiffness", "damping", "rest_length")
        )
        length = measure("length", False, MeasureKind.LENGTH)
        law = joint.parameters.get("law")
        spring = [Combined("length", False, (length,), (1.0,), stiffness, damping, rest)]
        if law is None:
            return spring
        return (spring if stiffness or damping else []) + [
            Combined("law", False, (length,), (1.0,), law=LengthLaw(law, rest)),
        ]


class Damper(JointType):
    """Damper: forces against the velocity of C in D (ArtiSynth's frame, rotary and inertial damping).

        combined     power ``linear_damping |v|^2 + rotary_damping |w|^2``, and ``sum_k direction_damping_k |d e_k/dt|^2``

    v is the velocity of the origin of C in D [m/s], w the angular velocity [rad/s], e_k the axes of C in D. Rotary and
    direction damping act on the entries of ``M = D^T C``, because ``sum_k |d e_k/dt|^2 = 2 |w|^2``. Parameters, all
    optional: ``linear_damping`` [N s/m], ``rotary_damping`` [N m s], ``direction_damping`` (3,) [kg m^2/s].
    """

    OPTIONAL = ("linear_damping", "rotary_damping")

    def combined(self, joint: Joint) -> list[Combined]:
        """Dampers along x, y, z and on the nine entries of M."""
        linear, rotary = (float(joint.parameters.get(f"{key}_damping", 0.0)) for key in ("linear", "rotary"))
        each = [0.5 * rotary + float(one) for one in joint.parameters.get("direction_damping", (0.0, 0.0, 0.0))]
        found = [Combined(name, False, (displacement(name),), (1.0,), 0.0, linear) for name in "xyz" if linear > 0.0]
        return found + entries(tuple(each))
