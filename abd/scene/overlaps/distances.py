"""Distances between segments, points and triangles, and winding numbers: what the check of the initial state needs."""

from __future__ import annotations

import numpy as np


def point_segment(point: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k,) distances of points (k, 3) from segments (a, b) [m]; a segment may have no length."""
    along = b - a
    square = np.einsum("...i,...i->...", along, along)
    s = np.einsum("...i,...i->...", point - a, along) / np.where(square > 0.0, square, 1.0)
    return np.linalg.norm(point - a - np.clip(s, 0.0, 1.0)[..., None] * along, axis=-1)


def point_triangle(point: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(k,) distances of points from triangles (a, b, c) [m]: the plane's above the inside, else that of an edge."""
    border = np.minimum(np.minimum(point_segment(point, a, b), point_segment(point, b, c)), point_segment(point, c, a))
    normal = np.cross(b - a, c - a)
    square = np.einsum("...i,...i->...", normal, normal)
    safe = np.where(square > 0.0, square, 1.0)
    arm = point - a
    beta = np.einsum("...i,...i->...", np.cross(arm, c - a), normal) / safe
    gamma = np.einsum("...i,...i->...", np.cross(b - a, arm), normal) / safe
    above = (square > 0.0) & (beta >= 0.0) & (gamma >= 0.0) & (beta + gamma <= 1.0)
    height = np.abs(np.einsum("...i,...i->...", arm, normal)) / np.sqrt(safe)
    return np.where(above, np.minimum(height, border), border)


def segment_segment(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k,) distances between segments (p, q) and (a, b) [m]: between the lines where both feet lie inside, else from
    an end to the other segment."""
    nearest = np.minimum(
        np.minimum(point_segment(p, a, b), point_segment(q, a, b)),
        np.minimum(point_segment(a, p, q), point_segment(b, p, q)),
    )
    u, v, w = q - p, b - a, p - a
    uu, uv, vv = (np.einsum("...i,...i->...", x, y) for x, y in ((u, u), (u, v), (v, v)))
    uw, vw = np.einsum("...i,...i->...", u, w), np.einsum("...i,...i->...", v, w)
    determinant = uu * vv - uv * uv
    skew = determinant > 1e-14 * uu * vv
    safe = np.where(skew, determinant, 1.0)
    s, t = (uv * vw - vv * uw) / safe, (uu * vw - uv * uw) / safe
    inside = skew & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
    between = np.linalg.norm(w + s[..., None] * u - t[..., None] * v, axis=-1)
    return np.where(inside, np.minimum(between, nearest), nearest)


def winding_numbers(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(k,) winding numbers of closed triangles (f, 3, 3) about points (k, 3): +-1 inside, 0 outside.

    Solid angles by van Oosterom and Strackee (1983).
    """
    total = np.zeros(len(points))
    rows = max(1, (1 << 16) // max(len(corners), 1))
    for first in range(0, len(points), rows):
        part = slice(first, first + rows)
        a, b, c = (corners[None, :, k] - points[part, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
        triple = np.einsum("ijk,ijk->ij", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("ijk,ijk->ij", x, y) for x, y in ((a, b), (b, c), (c, a)))
        angle = np.arctan2(triple, la * lb * lc + ab * lc + bc * la + ca * lb)
        total[part] = angle.sum(axis=1) / (2.0 * np.pi)
    return total
