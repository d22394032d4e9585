"""Hinge (uid 18): two points on the axis coincide. ``F = c0_j - c0_i ; c1_j - c1_i``, ``E = K/2 (|F_0|^2 + |F_1|^2)``.

The points lie at ``c -+ length t`` on the axis t. A force f through the anchor opens it by ``c h^2 f / (2 K)``, a
couple tau across the axis turns it by ``c h^2 tau / (2 K length^2)``.
"""

from __future__ import annotations

from abd.joints.rows import Row, point_row
from abd.model import Joint

UID = 18


def rows(joint: Joint) -> list[Row]:
    """Two point rows [m], below and above the anchor on the axis."""
    result = []
    for side in (-1.0, 1.0):
        points = [
            frame[:3, 3] + side * joint.length * frame[:3, 2] for frame in (joint.parent_frame, joint.child_frame)
        ]
        result.append(point_row(*points))
    return result
