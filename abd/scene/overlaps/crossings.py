"""Overlaps of boxes, and intersections of segments with triangles.

Signs of determinants count as 0 within a bound on their rounding error (Shewchuk 1997), and contact counts as intersection.
Pairs that are reported as separate are separate; pairs within rounding may be reported as intersecting.
"""

from __future__ import annotations

import numpy as np

_LEAF = 1 << 15
"""Number of box pairs that are compared directly."""
_EPSILON = np.finfo(float).eps / 2.0
_BOUND_3D = (7.0 + 56.0 * _EPSILON) * _EPSILON
_BOUND_2D = (3.0 + 16.0 * _EPSILON) * _EPSILON


def segments_meet_triangles(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return (k,) bool, whether segment (p, q) intersects triangle (a, b, c), boundaries included; all arguments (k, 3).

    Triangles without area intersect no segment.
    """
    side_p, side_q = _sign_3d(a, b, c, p), _sign_3d(a, b, c, q)
    meets = np.zeros(len(p), dtype=bool)

    through = np.flatnonzero((side_p * side_q <= 0) & ((side_p != 0) | (side_q != 0)))
    if len(through):
        ends, corners = (p[through], q[through]), (a[through], b[through], c[through])
        turn = np.stack([_sign_3d(*ends, corners[k], corners[(k + 1) % 3]) for k in range(3)])
        meets[through] = (turn >= 0).all(axis=0) | (turn <= 0).all(axis=0)

    flat = np.flatnonzero((side_p == 0) & (side_q == 0))
    if len(flat):
        meets[flat] = _coplanar_meet(p[flat], q[flat], a[flat], b[flat], c[flat])
    return meets


def _coplanar_meet(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same for segments in the plane of their triangle: after dropping the coordinate of largest normal."""
    drop = np.argmax(np.abs(np.cross(b - a, c - a)), axis=1)
    keep = np.array([[1, 2], [0, 2], [0, 1]])[drop]
    p, q, a, b, c = (np.take_along_axis(x, keep, axis=1) for x in (p, q, a, b, c))
    sides = ((a, b), (b, c), (c, a))
    inside_turns = np.stack([_sign_2d(u, v, p) for u, v in sides])
    meets = (inside_turns >= 0).all(axis=0) | (inside_turns <= 0).all(axis=0)
    for u, v in sides:
        apart = _sign_2d(u, v, p) * _sign_2d(u, v, q) > 0
        apart |= _sign_2d(p, q, u) * _sign_2d(p, q, v) > 0
        apart |= (np.maximum(p, q) < np.minimum(u, v)).any(axis=1) | (np.maximum(u, v) < np.minimum(p, q)).any(axis=1)
        meets |= ~apart
    return meets & (_sign_2d(a, b, c) != 0)


def _sign_3d(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(k,) sign of the determinant of rows a - d, b - d, c - d."""
    u, v, w = a - d, b - d, c - d
    minors = ((1, 2), (2, 0), (0, 1))
    determinant = sum(u[:, k] * (v[:, i] * w[:, j] - v[:, j] * w[:, i]) for k, (i, j) in enumerate(minors))
    permanent = sum(
        np.abs(u[:, k]) * (np.abs(v[:, i] * w[:, j]) + np.abs(v[:, j] * w[:, i])) for k, (i, j) in enumerate(minors)
    )
    return _certain_sign(determinant, _BOUND_3D * permanent)


def _sign_2d(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(k,) sign of the determinant of rows a - c, b - c."""
    u, v = a - c, b - c
    left, right = u[:, 0] * v[:, 1], u[:, 1] * v[:, 0]
    return _certain_sign(left - right, _BOUND_2D * (np.abs(left) + np.abs(right)))


def _certain_sign(determinant: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return (k,) signs, 0 if the rounding error may exceed the determinant."""
    return np.where(np.abs(determinant) <= bound, 0, np.sign(determinant)).astype(np.int8)


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
