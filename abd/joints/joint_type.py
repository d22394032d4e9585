"""Base class of joint types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from abd.errors import SceneError
from abd.joint_model import Joint
from abd.joints.measures.axes import Row
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import product

BALL = "quaternion", "mrp"
"""Forms of the configuration of a ball."""


class JointType:
    """Functions that derive rows, coordinates and motions from a `Joint`; they do not depend on the state.

    Penalty and exact enforcement use `rows` and `measured`; compliant enforcement uses `constraints`. Both use
    `combined` and the gaps of `measured`. Invalid parameters raise `SceneError`.
    """

    UID: int = 0
    """Constitution number of the published penalty; 0 if there is none."""
    SYMBOL: str = ""
    """Symbol in pictures: "pin", "ball", "rod", "rope", "spring", or nothing."""
    MARKER: str = "axis"
    """Marker on the child in exports: "axis", "ball", or nothing; rods, ropes and springs connect both bodies instead."""
    FOLLOWS_POSE: bool = False
    """Whether `measured` depends on the pose at the start of a step; then it is `at_pose` at T_CD = 1."""
    AXIS: str = "optional"
    """Axis in a scene: "needed", "optional", or "none" if the orientation of the frames has no effect."""
    POINTS: str = "together"
    """Points in a scene: "together" if one world anchor may define both, "apart" if each body has its own."""
    NEEDED: Mapping[str, Any] = {}
    """Required keys of a scene, with values for which the documentation lists rows and coordinates."""
    ALTERNATIVES: tuple[str, ...] = ()
    """Keys that replace the required ones."""
    OPTIONAL: tuple[str, ...] = ()
    """Optional keys of a scene."""
    FORMS: tuple[str, ...] = ("coordinates",)
    """Forms of the configuration, the default first (`abd.joints.coordinates.configurations`)."""
    PARAMETERS: Mapping[str, float] = {}
    """Default of every number that a scene sets under ``parameters``."""
    RANGES: Mapping[str, tuple[float, float]] = {}
    """Default ranges of coordinates [m or rad]."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys of the type in a scene, without those in degrees."""
        return (*self.NEEDED, *self.ALTERNATIVES, *self.OPTIONAL)

    def rows(self, joint: Joint) -> list[Row]:
        """Constraint rows that are linear in both states.

        Frames (k, 4, 4) and length (k, 1) give the rows of k joints at once (`abd.joints.rows.batches`).
        """
        return []

    def measured(self, joint: Joint) -> list[Measure]:
        """The nonlinear constraint rows, and the gaps (`unilateral`), which must not become negative."""
        return []

    def at_pose(self, joint: Joint, T: np.ndarray) -> list[Measure]:
        """`measured` at the pose T_CD (4, 4)."""
        return self.measured(joint)

    def combined(self, joint: Joint) -> list[Combined]:
        """Rows over several measures: constraints, springs, friction, rotors and forces."""
        return []

    def constraints(self, joint: Joint) -> list[Measure]:
        """All constraints, one measure each [m or rad], in the order of ArtiSynth: x, y, z, rx, ry, rz.

        The gradients of these rows and of the constraint rows of `combined` are independent; there are 6 - freedoms of
        them.
        """
        return [one for one in self.measured(joint) if not one.unilateral]

    def constraints_at(self, joint: Joint, T: np.ndarray) -> list[Measure]:
        """`constraints` at the pose T_CD (4, 4)."""
        return [one for one in self.at_pose(joint, T) if not one.unilateral] if self.FOLLOWS_POSE else self.constraints(joint)

    def held_axes(self, joint: Joint) -> np.ndarray:
        """Axes of D and of C (2, 3) whose relative direction is constrained; 0 if all rotations are, or none."""
        return np.zeros((2, 3))

    def coordinates(self, joint: Joint) -> list[Measure]:
        """Coordinates of the free motion [m or rad], in the order of their index."""
        return []

    def motions(self, joint: Joint) -> list[np.ndarray] | None:
        """Motions (6,), one per coordinate, whose product is T_CD; None if T_CD is not such a product."""
        return None

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray | None:
        """T_CD (4, 4) at the coordinates (k,) [m or rad]; None if the coordinates do not determine it."""
        motions = self.motions(joint)
        return None if motions is None else product(motions, values)

    def project(self, joint: Joint, T: np.ndarray) -> np.ndarray | None:
        """T_GD (4, 4), the admissible pose nearest to T_CD (4, 4); None: `coordinates.configurations.project` finds it."""
        return None


def parameter_error(joint: Joint, key: str, message: str, remedy: str = "") -> SceneError:
    """Return the error for an invalid parameter `key` of a joint."""
    return SceneError.of(message, f"joint {joint.name!r}, {key}", joint.parameters.get(key), remedy=remedy)
