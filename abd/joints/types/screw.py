"""Screw joint."""

from __future__ import annotations

from abd.joints.measures.axes import displacement, turn
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import Motion, Z, screw
from abd.joints.types.axis_types import AxisType
from abd.model import Joint


class Screw(AxisType):
    """Screw: C translates along z of D by ``lead`` [m/rad] times its rotation; a negative lead is left-handed.

    rows         x, y and ``z - lead theta`` measured [m]; t as a linear direction row
    constraints  x y rx ry, and always the row ``z - lead theta``
    coordinates  theta                                              T_CD = (Rz(theta); 0, 0, lead theta)
    """

    SYMBOL = "pin"
    held, directions = "xy", "z"

    def combined(self, joint: Joint) -> list[Combined]:
        """``z - lead theta`` [m]; theta counts turns."""
        return [Combined("z", False, (displacement("z"), turn("theta")), (1.0, -float(joint.parameters["lead"])))]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """theta [rad]."""
        return [turn("theta")]

    def motions(self, joint: Joint) -> list[Motion]:
        """Screw motion about z."""
        return [screw("theta", Z, float(joint.parameters["lead"]))]
