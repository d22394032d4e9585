"""Spring and damper between the origins of the two frames, along the line through them, or any force that depends on how far
they are apart.

Parameters: ``stiffness`` [N/m], ``damping`` [N s/m], ``rest_length`` [m], 0 where not given; ``law``, a function of
``(length, gap, t)`` with ``length = |d|`` and ``gap = |d| - rest_length`` [m] at the end of a step, t [s], whose value [N] pushes
the origins apart where it is positive.

    combined     a spring on ``|d| - rest_length``, and the law on ``|d|``, with energy ``-int F d|d|``
    coordinates  none

A spring along or about a coordinate of another joint is a setting of that coordinate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abd.joints.combined import Combined
from abd.joints.measures import Measure, MeasureKind, measure
from abd.joints.motions import Motion
from abd.joints.rows import Row
from abd.model import Joint

UID = 0


@dataclass(frozen=True)
class LengthLaw:
    """A force by a function of (length, gap, t), as one of (length, t)."""

    function: Callable[[tuple[float, float, float]], float]
    rest: float

    def __call__(self, at: tuple[float, float]) -> float:
        length, t = at
        return float(self.function((length, length - self.rest, t)))


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
