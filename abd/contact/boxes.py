"""Overlaps of axis-aligned boxes."""

from __future__ import annotations

import numpy as np

_LEAF = 1 << 15
"""Number of box pairs that are compared directly."""


def overlapping_boxes(
    low_a: np.ndarray, high_a: np.ndarray, low_b: np.ndarray, high_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Indices (k,), (k,) of all pairs of boxes of two sets that overlap or touch, sorted.

    Both sets are culled to each other's bounding box, then the larger is halved at the middle of its boxes, until few
    pairs are left to compare directly.

    Args:
        low_a, high_a: (n, d) corners; low_b, high_b: (m, d).
    """
    found_a, found_b = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    work = [(np.arange(len(low_a)), np.arange(len(low_b)))]
    while work:
        a, b = work.pop()
        if len(a) == 0 or len(b) == 0:
            continue
        a = a[_touches(low_a[a], high_a[a], low_b[b].min(axis=0), high_b[b].max(axis=0))]
        if len(a) == 0:
            continue
        b = b[_touches(low_b[b], high_b[b], low_a[a].min(axis=0), high_a[a].max(axis=0))]
        if len(a) * len(b) <= _LEAF:
            overlap = np.ones((len(a), len(b)), dtype=bool)
            for axis in range(low_a.shape[1]):
                overlap &= low_a[a, None, axis] <= high_b[None, b, axis]
                overlap &= high_a[a, None, axis] >= low_b[None, b, axis]
            i, j = np.nonzero(overlap)
            found_a.append(a[i])
            found_b.append(b[j])
        elif len(a) >= len(b):
            work += [(half, b) for half in _halves(low_a, high_a, a)]
        else:
            work += [(a, half) for half in _halves(low_b, high_b, b)]
    i, j = np.concatenate(found_a), np.concatenate(found_b)
    order = np.lexsort((j, i))
    return i[order], j[order]


def _touches(low: np.ndarray, high: np.ndarray, box_low: np.ndarray, box_high: np.ndarray) -> np.ndarray:
    return ((low <= box_high) & (high >= box_low)).all(axis=1)


def _halves(low: np.ndarray, high: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the members by their middles along the axis on which these spread most."""
    middle = low[members] + high[members]
    axis = int(np.argmax(np.ptp(middle, axis=0)))
    order = np.argsort(middle[:, axis], kind="stable")
    return members[order[: len(order) // 2]], members[order[len(order) // 2 :]]
