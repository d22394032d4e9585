"""Hinges: C rotates about an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.joint_model import Joint
from abd.joints.measures.axes import Row, point, turn
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import Z, rotation
from abd.joints.types.axis_types import AxisType


class Hinge(AxisType):
    """Hinge, revolute (uid 18): C rotates about the axis t, the z axis of both frames.

        rows         c0_j - c0_i ; c1_j - c1_i, two points ``c -+ length t`` of the axis     E = K/2 (|F_0|^2 + |F_1|^2)
        constraints  x y z rx ry
        coordinates  theta, counter-clockwise about z_D                                      T_CD = Rz(theta)

    A force f through the anchor displaces it by ``c h^2 f / (2 K)``. A torque tau across the axis tilts it by
    ``c h^2 tau / (2 K length^2)``. Loads, range, friction and drive of theta are laws on the coordinate, which all
    types share (`abd.joints.rows.laws`).
    """

    SYMBOL, AXIS, FORMS = "pin", "needed", ("coordinates", "sincos")
    UID, held, directions = 18, "xyz", "z"

    def rows(self, joint: Joint) -> list[Row]:
        """Two point rows [m], below and above the anchor on the axis."""
        return [point(joint, side * joint.length) for side in (-1.0, 1.0)]


class LegacyRevolute(Hinge):
    """Hinge with an angle that is positive clockwise about z_D: ArtiSynth's former RevoluteJoint.

    coordinates  theta                                                                   T_CD = Rz(-theta)
    """

    FORMS = ("coordinates",)

    def coordinates(self, joint: Joint) -> list[Measure]:
        """theta [rad]."""
        return [replace(turn("theta"), scale=-1.0)]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Rz(-theta)."""
        return [rotation(-Z)]
