"""Linear rows of one joint: coincident points and directions, as constant 4-vectors (`abd.joints.rows.rows`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joint_model import Joint


@dataclass(frozen=True)
class Row:
    """4-vectors (4,) of one residual, or (k, 4) for k joints.

    `is_point` distinguishes points [m] from unit directions; `mask` selects the world components.
    """

    parent: np.ndarray
    child: np.ndarray
    is_point: bool
    mask: tuple[float, float, float] = (1.0, 1.0, 1.0)


def point_row(parent_point: np.ndarray, child_point: np.ndarray) -> Row:
    """Row of two coincident points."""
    return Row(_with(1.0, parent_point), _with(1.0, child_point), True)


def point(joint: Joint) -> Row:
    """Row of coincident frame origins, ``c_j - c_i`` [m]."""
    return point_row(joint.parent_frame[..., :3, 3], joint.child_frame[..., :3, 3])


def directions(joint: Joint, axes: str) -> list[Row]:
    """Rows of coincident axes among x, y and z, ``e_j - e_i`` [-], in the given order.

    The energy of an axis is largest, and has zero gradient, where both axes are opposite.
    """
    frames = joint.parent_frame, joint.child_frame
    return [Row(*(_with(0.0, F[..., :3, "xyz".index(axis)]) for F in frames), is_point=False) for axis in axes]


def _with(first: float, vector: np.ndarray) -> np.ndarray:
    """(..., 4): a number followed by vectors (..., 3)."""
    out = np.full((*vector.shape[:-1], 4), first)
    out[..., 1:] = vector
    return out
