"""Spherical joint (uid 26): the anchors coincide. ``F = c_j - c_i``, ``E = K/2 |F|^2``."""

from __future__ import annotations

from abd.joints.rows import Row, point_row
from abd.model import Joint

UID = 26


def rows(joint: Joint) -> list[Row]:
    """One point row [m]; violation under a load f is ``c h^2 f / K``."""
    return [point_row(joint.parent_frame[:3, 3], joint.child_frame[:3, 3])]
