"""ArtiSynth's former joint types, whose coordinates describe D in C: R_DC = R_CD^T.

    type             like         coordinates           R_DC
    legacy_revolute  hinge        theta                 Rz(theta): the angle counts clockwise about z_D
    roll_pitch       universal    roll, pitch           Rz(roll) Ry(pitch); ``y_D . z_C`` is a measured row
    spherical_rpy    gimbal       roll, pitch, yaw      Rz(roll) Ry(pitch) Rx(yaw); pitch within a quarter turn
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, entry, measure
from abd.joints.pieces.axes import angle, displacement, dot, turn
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion, X, Y, Z, product, rotation
from abd.joints.types import hinge
from abd.model import Joint


@dataclass(frozen=True)
class BallOfParent:
    """A ball joint with measured rows, with the functions of `abd.joints.joint_type.JointType`.

    Attributes:
        description: of the type, for users; held: measured rows [rad]; angles: the coordinates [rad]; turns: motions of which
            R_DC is the product.
    """

    description: str
    held: tuple[Measure, ...]
    angles: tuple[Measure, ...]
    turns: tuple[Motion, ...]
    UID: int = 0

    def __post_init__(self):
        object.__setattr__(self, "__doc__", self.description)

    def rows(self, joint: Joint) -> list[Row]:
        """One point row [m]."""
        return [point(joint)]

    def measured(self, joint: Joint) -> list[Measure]:
        """Rows in addition to the linear one [rad]."""
        return list(self.held)

    def constraints(self, joint: Joint) -> list[Measure]:
        """x, y, z [m] in D, then the measured rows [rad]."""
        return [*(displacement(name) for name in "xyz"), *self.held]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """The angles [rad]."""
        return list(self.angles)

    def motions(self, joint: Joint) -> None:
        """None: the product is in the order opposite to that of the coordinates."""
        return None

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray:
        """T_CD (4, 4) at the angles."""
        return product(list(self.turns), values).T


class ClockwiseHinge:
    """Hinge whose angle counts clockwise about z_D: ArtiSynth's former RevoluteJoint."""

    UID, rows, measured, constraints = hinge.UID, *map(staticmethod, (hinge.rows, hinge.measured, hinge.constraints))

    @staticmethod
    def coordinates(joint: Joint) -> list[Measure]:
        """theta [rad]."""
        return [replace(turn("theta"), scale=-1.0)]

    @staticmethod
    def motions(joint: Joint) -> list[Motion]:
        """Rz(-theta)."""
        return [rotation("theta", -Z)]


LEGACY_TYPES = {
    "legacy_revolute": ClockwiseHinge,
    "roll_pitch": BallOfParent(
        "Universal joint whose angles are those of D in C: ArtiSynth's former RollPitchJoint.",
        (dot("rx", 1, 2, -1.0),),
        (angle("roll", entry(1, 0, -1.0), entry(1, 1)), angle("pitch", entry(0, 2, -1.0), entry(2, 2))),
        (rotation("roll", Z), rotation("pitch", Y)),
    ),
    "spherical_rpy": BallOfParent(
        "Gimbal whose angles are those of D in C: ArtiSynth's former SphericalRpyJoint.",
        (),
        (
            angle("roll", entry(0, 1), entry(0, 0)),
            measure("pitch", True, MeasureKind.ELEVATION, entry(0, 2, -1.0), entry(0, 0), entry(0, 1)),
            angle("yaw", entry(1, 2), entry(2, 2)),
        ),
        (rotation("roll", Z), rotation("pitch", Y), rotation("yaw", X)),
    ),
}
"""Name of the type -> its functions."""
