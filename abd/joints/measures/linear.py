"""Linear rows of one joint: points and directions that coincide, as 4-vectors that are the same in every state
(`abd.joints.rows.rows`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import Joint


@dataclass(frozen=True)
class Row:
    """4-vectors (4,) of one residual, or (k, 4) of k joints of one kind; ``is_point`` tells metres from unit directions,
    `mask` which world components count."""

    parent: np.ndarray
    child: np.ndarray
    is_point: bool
    mask: tuple[float, float, float] = (1.0, 1.0, 1.0)


def point_row(parent_point: np.ndarray, child_point: np.ndarray) -> Row:
    """The two points coincide."""
    return Row(_with(1.0, parent_point), _with(1.0, child_point), True)


def point(joint: Joint) -> Row:
    """The origins of both frames coincide, ``c_j - c_i`` [m]."""
    return point_row(joint.parent_frame[..., :3, 3], joint.child_frame[..., :3, 3])


def directions(joint: Joint, axes: str) -> list[Row]:
    """Axes of both frames among x, y and z coincide, ``e_j - e_i`` [-], in the order given.

    The energy of one axis has no slope where the two axes point in opposite directions; it is largest there.
    """
    frames = joint.parent_frame, joint.child_frame
    return [Row(*(_with(0.0, F[..., :3, "xyz".index(axis)]) for F in frames), is_point=False) for axis in axes]


def _with(first: float, vector: np.ndarray) -> np.ndarray:
    """(..., 4) vectors (..., 3) behind a number."""
    out = np.full((*vector.shape[:-1], 4), first)
    out[..., 1:] = vector
    return out
