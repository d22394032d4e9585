"""Springs, dampers and other forces between two frames, but for those of bushings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joints.joint_type import JointType
from abd.joints.measures.axes import displacement
from abd.joints.measures.combined import Combined, entries
from abd.joints.measures.measures import MeasureKind, measure
from abd.joints.measures.slopes import gradient
from abd.model import Joint


@dataclass(frozen=True)
class LengthLaw:
    """A force by a function of (length, gap, t, speed), as one of (length, t, speed)."""

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
    """Spring and damper between the origins of the two frames, along the line through them, or any force that depends on how far
    they are apart and how fast that changes.

    Parameters: ``stiffness`` [N/m], ``damping`` [N s/m], ``rest_length`` [m], 0 where not given; ``law``, a function of
    ``(length, gap, t, speed)`` with ``length = |d|``, ``gap = |d| - rest_length`` [m] and ``speed = d|d|/dt`` [m/s] at the end of
    a step, t [s], whose value [N] pushes the origins apart where it is positive: a damper is ``-c speed``.

        combined     a spring on ``|d| - rest_length``, and the law on ``|d|``, with energy ``-int F d|d|``
        coordinates  none

    A spring along or about a coordinate of another joint is a setting of that coordinate.
    """

    def combined(self, joint: Joint) -> list[Combined]:
        """The spring where there is one, and the law."""
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
    """Damper: forces against the velocity of C in D, without any stiffness (ArtiSynth's frame, rotary and inertial damping).

        combined     power ``linear_damping |v|^2 + rotary_damping |w|^2``, and ``sum_k direction_damping_k |d e_k/dt|^2``

    v is the velocity of the point of C in D [m/s], w the angular velocity [rad/s], e_k the axes of C seen from D. The axes of C
    bring w along, ``sum_k |d e_k/dt|^2 = 2 |w|^2``, which is how both dampings act: on entries of ``M = D^T C``. Parameters, all
    optional: ``linear_damping`` [N s/m], ``rotary_damping`` [N m s], ``direction_damping`` (3,) [kg m^2/s].
    """

    def combined(self, joint: Joint) -> list[Combined]:
        """Dampers along x, y, z, and of the nine entries of M."""
        linear, rotary = (float(joint.parameters.get(f"{key}_damping", 0.0)) for key in ("linear", "rotary"))
        each = [0.5 * rotary + float(one) for one in joint.parameters.get("direction_damping", (0.0, 0.0, 0.0))]
        found = [Combined(name, False, (displacement(name),), (1.0,), 0.0, linear) for name in "xyz" if linear > 0.0]
        return found + entries(tuple(each))
