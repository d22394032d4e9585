"""Linear blocks that joint types are made of: the anchors coincide, axes of the two frames coincide."""

from __future__ import annotations

from abd.joints.measures.linear import Row, direction_row, point_row
from abd.joints.pieces.axes import NAMES
from abd.model import Joint


def point(joint: Joint) -> Row:
    """``c_j - c_i`` [m]."""
    return point_row(joint.parent_frame[..., :3, 3], joint.child_frame[..., :3, 3])


def directions(joint: Joint, axes: str) -> list[Row]:
    """``e_j - e_i`` [-] for axes e among x, y and z, in the order given.

    The energy of one axis has no slope where the two axes point in opposite directions; it is largest there.
    """
    columns = [NAMES.index(axis) for axis in axes]
    return [direction_row(joint.parent_frame[..., :3, k], joint.child_frame[..., :3, k]) for k in columns]
