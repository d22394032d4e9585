"""Intersections of segments with triangles.

Signs of determinants count as 0 within a bound on their rounding error (Shewchuk 1997), and contact counts as intersection.
Pairs that are reported as separate are separate; pairs within rounding may be reported as intersecting.
"""

from __future__ import annotations

import numpy as np

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
