"""Exact tests for cases in which distances are dominated by rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

BLOCK = 2_000_000
"""Number of point-triangle or point-box pairs per block."""


def winding_numbers(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return (k,) winding numbers of a surface with corners (f, 3, 3) around points (k, 3), by solid angles.

    van Oosterom and Strackee, The solid angle of a plane triangle, 1983.
    """
    total = np.zeros(len(points))
    size = max(1, BLOCK // max(1, len(points)))
    for begin in range(0, len(corners), size):
        a, b, c = np.moveaxis(corners[None, begin : begin + size] - points[:, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
        volume = np.einsum("kfi,kfi->kf", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("kfi,kfi->kf", *two) for two in ((a, b), (b, c), (c, a)))
        total += np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum(axis=1)
    return total / (2.0 * np.pi)


def segment_meets_triangle(e0, e1, t0, t1, t2) -> bool:
    """Exact test by rational arithmetic; a segment in the triangle's plane counts as an intersection."""
    e0, e1, t0, t1, t2 = ([Fraction(float(x)) for x in point] for point in (e0, e1, t0, t1, t2))
    below, above = _orientation(t0, t1, t2, e0), _orientation(t0, t1, t2, e1)
    if below == above == 0:
        return True
    if below * above > 0:
        return False
    turns = [_orientation(e0, e1, a, b) for a, b in ((t0, t1), (t1, t2), (t2, t0))]
    return min(turns) >= 0 or max(turns) <= 0


def _orientation(a, b, c, d) -> int:
    """Sign of the volume of a tetrahedron."""
    u, v, w = ([y - x for x, y in zip(a, point, strict=True)] for point in (b, c, d))
    volume = (
        u[0] * (v[1] * w[2] - v[2] * w[1]) - u[1] * (v[0] * w[2] - v[2] * w[0]) + u[2] * (v[0] * w[1] - v[1] * w[0])
    )
    return (volume > 0) - (volume < 0)
