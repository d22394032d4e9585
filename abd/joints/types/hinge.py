"""Hinge, revolute (uid 18): C turns about the axis t, the z of both frames.

    rows         c0_j - c0_i ; c1_j - c1_i, two points ``c -+ length t`` of the axis     E = K/2 (|F_0|^2 + |F_1|^2)
    constraints  x y z rx ry
    coordinates  theta, counter-clockwise about z_D                                      T_CD = Rz(theta)

A force f through the anchor opens it by ``c h^2 f / (2 K)``, a couple tau across the axis turns it by
``c h^2 tau / (2 K length^2)``. Loads on theta, its range, friction and drive, are laws on the
coordinate, the same for all types (`abd.joints.rows.laws`).
"""

from __future__ import annotations

from abd.joints.measures.linear import Row, point_row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, tilt, turn
from abd.joints.pieces.motions import Motion, Z, rotation
from abd.model import Joint

UID = 18


def rows(joint: Joint) -> list[Row]:
    """Two point rows [m], below and above the anchor on the axis."""
    result = []
    for side in (-1.0, 1.0):
        points = [
            frame[..., :3, 3] + side * joint.length * frame[..., :3, 2]
            for frame in (joint.parent_frame, joint.child_frame)
        ]
        result.append(point_row(*points))
    return result


def measured(joint: Joint) -> list[Measure]:
    """No row in addition to the linear ones."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """Five rows in the axes of D: x, y, z [m], rx, ry [rad]."""
    return [displacement("x"), displacement("y"), displacement("z"), tilt("rx"), tilt("ry")]


def coordinates(joint: Joint) -> list[Measure]:
    """theta [rad]."""
    return [turn("theta")]


def motions(joint: Joint) -> list[Motion]:
    """Rz(theta)."""
    return [rotation("theta", Z)]
