"""Exact tests: does a segment meet a triangle?

Signs of determinants are computed in floating point, and again in integers of any length where a bound on the
rounding error does not settle them (Shewchuk 1997), so the answer is that of the coordinates as they are.
Touching counts as meeting.
"""

from __future__ import annotations

import numpy as np

_EPSILON = np.finfo(float).eps / 2.0
_BOUND_3D = (7.0 + 56.0 * _EPSILON) * _EPSILON
_BOUND_2D = (3.0 + 16.0 * _EPSILON) * _EPSILON


def segments_meet_triangles(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(k,) bool: whether segment (p, q) meets triangle (a, b, c), boundaries included; all arguments (k, 3).

    Triangles without area meet nothing.
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
    """The same for segments in the plane of their triangle: exact after dropping the coordinate of largest normal."""
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
    """(k,) exact sign of the determinant of rows a - d, b - d, c - d."""
    u, v, w = a - d, b - d, c - d
    minors = ((1, 2), (2, 0), (0, 1))
    determinant = sum(u[:, k] * (v[:, i] * w[:, j] - v[:, j] * w[:, i]) for k, (i, j) in enumerate(minors))
    permanent = sum(
        np.abs(u[:, k]) * (np.abs(v[:, i] * w[:, j]) + np.abs(v[:, j] * w[:, i])) for k, (i, j) in enumerate(minors)
    )
    return _settle(determinant, _BOUND_3D * permanent, (a, b, c, d))


def _sign_2d(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(k,) exact sign of the determinant of rows a - c, b - c."""
    u, v = a - c, b - c
    left, right = u[:, 0] * v[:, 1], u[:, 1] * v[:, 0]
    return _settle(left - right, _BOUND_2D * (np.abs(left) + np.abs(right)), (a, b, c))


def _settle(determinant: np.ndarray, bound: np.ndarray, corners: tuple[np.ndarray, ...]) -> np.ndarray:
    """(k,) signs, exact where the rounded determinant is not beyond its error bound."""
    sign = np.sign(determinant).astype(np.int8)
    # A bound of zero means that every product has a factor that is exactly zero: so is the determinant.
    unclear = np.flatnonzero((np.abs(determinant) <= bound) & (bound > 0.0))
    if len(unclear):
        sign[unclear] = _exact_signs([corner[unclear] for corner in corners])
    return sign


def _exact_signs(corners: list[np.ndarray]) -> np.ndarray:
    """(k,) signs of the determinants of the differences to the last corner, in integers of any length."""
    points = np.stack(corners)
    mantissa, exponent = np.frexp(points)
    whole = (mantissa * 2.0**53).astype(np.int64)
    least = np.where(whole != 0, exponent, np.iinfo(exponent.dtype).max).min(axis=(0, 2), keepdims=True)
    shift = np.where(whole != 0, exponent - least, 0)
    points = whole.astype(object) << shift.astype(object)
    *rows, last = points
    rows = [(row - last).T for row in rows]
    if len(rows) == 2:
        (a, b), (c, d) = rows
        value = a * d - b * c
    else:
        (a, b, c), (d, e, f), (g, h, i) = rows
        value = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)
    return (value > 0).astype(np.int8) - (value < 0).astype(np.int8)
