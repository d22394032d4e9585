"""Spring and damper between the origins of the two frames, along the line through them, or any force that depends on how far
they are apart and how fast that changes.

Parameters: ``stiffness`` [N/m], ``damping`` [N s/m], ``rest_length`` [m], 0 where not given; ``law``, a function of
``(length, gap, t, speed)`` with ``length = |d|``, ``gap = |d| - rest_length`` [m] and ``speed = d|d|/dt`` [m/s] at the end of a
step, t [s], whose value [N] pushes the origins apart where it is positive: a damper is ``-c speed``.

    combined     a spring on ``|d| - rest_length``, and the law on ``|d|``, with energy ``-int F d|d|``
    coordinates  none

A spring along or about a coordinate of another joint is a setting of that coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, measure
from abd.joints.measures.slopes import gradient
from abd.joints.pieces.combined import Combined
from abd.joints.pieces.motions import Motion
from abd.model import Joint

UID = 0


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


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """None."""
    return []


def combined(joint: Joint) -> list[Combined]:
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


def constraints(joint: Joint) -> list[Measure]:
    """None."""
    return []


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None
