"""Connectors that keep a point on a plane or profile, or on one side of it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.axes import displacement
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure


class PlanarConnector(JointType):
    """Planar connector: the origin of C stays in the x-y plane of D; with ``unilateral``, in or above it.

    rows         z measured [m]; unilateral: the gap z >= 0
    constraints  z, or none
    coordinates  none
    """

    SYMBOL, AXIS = "ball", "needed"
    OPTIONAL = ("unilateral",)

    def measured(self, joint: Joint) -> list[Measure]:
        """z [m], a residual or a gap."""
        return [replace(displacement("z"), unilateral=_is_unilateral(joint))]


class SegmentedPlanarConnector(JointType):
    """Segmented planar connector: the origin of C stays on a profile of D; with ``unilateral``, on or above it.

    Parameters: ``segments`` (k, 2), k >= 2, corners (x, z) [m] of a polyline in the x-z plane of D, extruded along y;
    ``unilateral``. The first and the last segment extend to infinity. The upper side is on the left in the order of the
    corners (+z if x increases).

        rows         ``n . (r - p)`` measured [m], n the normal and p a corner of the segment nearest to r; unilateral: a gap
        constraints  n, or none
        coordinates  none

    The nearest segment is constant during a step (`at_pose`). `measured` and `constraints` use the segment at T_CD = 1.
    """

    SYMBOL, AXIS = "ball", "needed"
    NEEDED: ClassVar = {"segments": ((-1.0, 0.0), (1.0, 0.0))}
    OPTIONAL = ("unilateral",)
    FOLLOWS_POSE = True

    def measured(self, joint: Joint) -> list[Measure]:
        """n [m], a residual or a gap, at T_CD = 1."""
        return self.at_pose(joint, np.eye(4))

    def at_pose(self, joint: Joint, T: np.ndarray) -> list[Measure]:
        """`measured` of the segment nearest to the origin of C at the pose T_CD (4, 4)."""
        corners = _corners(joint)
        start, u = corners[:-1], np.diff(corners, axis=0)
        offset = T[[0, 2], 3] - start
        along = np.sum(offset * u, axis=1) / np.sum(u * u, axis=1)
        low, high = np.zeros(len(u)), np.ones(len(u))
        low[0], high[-1] = -np.inf, np.inf
        difference = offset - np.clip(along, low, high)[:, None] * u
        k = int(np.argmin(np.sum(difference * difference, axis=1)))
        nx, nz = np.array([-u[k, 1], u[k, 0]]) / np.linalg.norm(u[k])
        distance = functional(r=(nx, 0.0, nz), constant=-(nx * start[k, 0] + nz * start[k, 1]))
        return [measure("n", False, MeasureKind.AFFINE, distance, unilateral=_is_unilateral(joint))]


def _is_unilateral(joint: Joint) -> bool:
    return bool(joint.parameters.get("unilateral", False))


def _corners(joint: Joint) -> np.ndarray:
    corners = np.asarray(joint.parameters["segments"], dtype=float)
    if not np.diff(corners, axis=0).any(axis=1).all():
        raise parameter_error(joint, "segments", "has the same corner twice in succession")
    return corners
