"""Bounds of positions, velocities and efforts of a joint's coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joints.coordinates.configurations import BALLS, forms
from abd.joints.types import TYPES
from abd.model import CoordinateSettings, Joint


@dataclass(frozen=True)
class Bounds:
    """Closed interval of a quantity; the default is everything. Bounds are equal if both ends are.

    Raises:
        ValueError: the lower end is above the upper one, or an end is not a number.
    """

    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self):
        if not self.lower <= self.upper:
            raise ValueError(f"lower bound {self.lower} is not below upper bound {self.upper}")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __neg__(self) -> Bounds:
        return Bounds(-self.upper, -self.lower)

    def clamp(self, value: float) -> float:
        """The nearest value within."""
        return min(max(value, self.lower), self.upper)

    def intersect(self, other: Bounds) -> Bounds:
        """What lies within both; an error where nothing does."""
        return Bounds(max(self.lower, other.lower), min(self.upper, other.upper))


def position_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of a joint's coordinates [m or rad], by name in their order; the solver's limits enforce them.

    A ball has no coordinates: its positions are those of its quaternion, w, x, y and z, which nothing bounds.
    """
    if _is_ball(joint):
        return {name: Bounds() for name in ("w", "x", "y", "z")}
    return {name: Bounds(c.lower, c.upper) for name, c in _settings(joint).items()}


def velocity_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of the coordinates' rates [m/s or rad/s]; a run reports where they are exceeded. Of a ball those of its
    angular velocity in axes of C."""
    if _is_ball(joint):
        return {name: Bounds() for name in ("wx", "wy", "wz")}
    return {name: Bounds(-c.velocity_limit, c.velocity_limit) for name, c in _settings(joint).items()}


def effort_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of what drives may exert [N or N m]: the smaller of the coordinate's limit and the drive's own. Of a ball
    those of torques about the axes of C."""
    if _is_ball(joint):
        return {name: Bounds() for name in ("tx", "ty", "tz")}
    result = {}
    for name, c in _settings(joint).items():
        effort = min(c.effort_limit, c.drive.effort if c.drive else np.inf)
        result[name] = Bounds(-effort, effort)
    return result


def _is_ball(joint: Joint) -> bool:
    return joint.type in BALLS and bool(forms(joint))


def _settings(joint: Joint) -> dict[str, CoordinateSettings]:
    """Settings of every coordinate of a joint, by name; the default ones where none were given."""
    given = {settings.name: settings for settings in joint.coordinates}
    names = [measure.name for measure in TYPES[joint.type].coordinates(joint)]
    return {name: given.get(name, CoordinateSettings(name)) for name in names}
