"""Fixed joint (uid 25): anchors and triads coincide.

``F = c_j - c_i ; t_j - t_i ; n_j - n_i ; b_j - b_i``, ``E = K/2 sum |F_k|^2``; the direction rows carry an implied
length of 1 m, as the uid defines them.
"""

from __future__ import annotations

from abd.joints.rows import Row, direction_row, point_row
from abd.model import Joint

UID = 25


def rows(joint: Joint) -> list[Row]:
    """One point row [m] and the three direction rows t, n, b [-]."""
    parent, child = joint.parent_frame, joint.child_frame
    anchor = point_row(parent[:3, 3], child[:3, 3])
    return [anchor, *(direction_row(parent[:3, k], child[:3, k]) for k in (2, 0, 1))]
