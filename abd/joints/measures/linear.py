"""A linear row of one joint: what coincides, as 4-vectors that are the same in every state (`abd.joints.rows.rows`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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


def direction_row(parent_direction: np.ndarray, child_direction: np.ndarray) -> Row:
    """The two directions coincide."""
    return Row(_with(0.0, parent_direction), _with(0.0, child_direction), False)


def _with(first: float, vector: np.ndarray) -> np.ndarray:
    """(..., 4) vectors (..., 3) behind a number."""
    out = np.full((*vector.shape[:-1], 4), first)
    out[..., 1:] = vector
    return out
