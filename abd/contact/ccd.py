"""Continuous collision detection by conservative advancement, on straight paths and on arcs.

From a safe t the two primitives of a contact are known to stay apart for a while: over [t, t + tau] a point of body b
departs from its tangent ``x + tau v`` by at most ``bend_b tau^2 / 2``, so

- along the unit normal n at t, which separates the two convex primitives, points k of the first and l of the second
  are at least ``n.(x_k - x_l) + tau n.(v_k - v_l) - (bend_i + bend_j) tau^2 / 2`` apart, and the distance is at least
  the smallest of these;
- in any direction the distance falls by at most ``(max_k |v_k - v| + max_l |v_l - v|) tau`` and the same quadratic
  term, v the mean velocity of the four points (additive CCD, Li et al. 2021).

Both are proofs; the larger tau is taken, spending nine tenths of the gap beyond the separation, and the positions are
evaluated on the path again. The first bound is never the weaker one except for gaps at the limit of rounding. It lets
motion along a face pass at once, and it is exact for a half-space on a straight path. Contacts whose gap exceeds all
that their bodies can approach one another are free without a march.
"""

from __future__ import annotations

import numpy as np

from abd.contact.path import Path
from abd.potentials.contact import FIRST, Contacts, Stencil, closest, heights

ENOUGH = 0.1
"""Share of the initial gap at which the march ends."""
LEFT = 0.099
"""Share of the current gap that an advance leaves; below `ENOUGH`, so that rounding does not decide on one more."""


def time_of_impact(
    path: Path, contacts: Contacts, limit: np.ndarray | float = 1.0, iterations: int = 1000
) -> np.ndarray:
    """How far along the path every contact is proven to stay beyond its separation.

    Args:
        path: arcs of all bodies; contacts: m candidates.
        limit: (m,) how far the path is followed at most; iterations: largest number of advances.

    Returns:
        (m,) values of alpha in [0, limit]. The limit where the path is free; otherwise the gap is down to a tenth or
        less of the initial one, unless the advances ran out: then alpha is what had been proven until then. 0 for
        contacts at or below their separation at the start.
    """
    end = np.broadcast_to(np.asarray(limit, dtype=float), len(contacts))
    t = np.zeros(len(contacts))
    bend = path.bend
    bends = bend[contacts.first] + bend[contacts.second]
    rows = np.arange(len(contacts))
    stop = np.full(len(contacts), -np.inf)
    for advance in range(iterations + 1):
        here = contacts[rows]
        x, v = _motion(path, here, t[rows])
        near = closest(x, here)
        gap = np.sqrt(near.D) - here.xi
        if advance == 0:
            stop = np.maximum(ENOUGH * gap, 0.0)
            far = gap > path.approach(contacts.first, contacts.second) * end
            t[far] = end[far]
        going = (gap > stop[rows]) & (t[rows] < end[rows])
        if advance == iterations or not np.any(going):
            break
        rows, here, x, v, gap, r = rows[going], here[going], x[going], v[going], gap[going], near.r[going]
        tau = np.maximum(
            _along_normal(x, v, r, here, gap, bends[rows]),
            _root((1.0 - LEFT) * gap, _relative_speed(v, here), bends[rows]),
        )
        t[rows] = np.minimum(t[rows] + tau, end[rows])
        rows = rows[t[rows] < end[rows]]
    return t


def _motion(path: Path, contacts: Contacts, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions [m] and velocities [m per unit of alpha] (m, 4, 3) of the points at alpha = t (m,).

    A half-space is stood in for by the foot of its point, which does not move.
    """
    owners, times = contacts.owners.ravel(), np.repeat(t, 4)
    X = contacts.rest.reshape(-1, 3, 1)
    x = path.origins(owners, times) + (path.maps(owners, times) @ X)[:, :, 0]
    v = path.dp[owners] + (path.rates(owners, times) @ X)[:, :, 0]
    x, v = x.reshape(-1, 4, 3), v.reshape(-1, 4, 3)
    plane = contacts.stencil == Stencil.POINT_PLANE
    half_space = contacts.plane[plane]
    x[plane, 1:] -= (heights(x[plane], half_space)[:, None] * half_space[:, :3])[:, None]
    v[plane, 1:] = 0.0
    return x, v


def _sides(contacts: Contacts) -> np.ndarray:
    """(m, 4) true where a point belongs to the first primitive; feet on a half-space belong to the second."""
    stand_in = np.where(contacts.stencil == Stencil.POINT_PLANE, Stencil.POINT_TRIANGLE, contacts.stencil)
    return FIRST[stand_in] > 0.0


def _along_normal(
    x: np.ndarray, v: np.ndarray, r: np.ndarray, contacts: Contacts, gap: np.ndarray, bends: np.ndarray
) -> np.ndarray:
    """(m,) tau until `LEFT` of the gap is left between some two points, measured along the normal."""
    n = r / np.linalg.norm(r, axis=1)[:, None]
    place = np.einsum("mi,mki->mk", n, x - x[:, :1])
    speed = np.einsum("mi,mki->mk", n, v)
    first = _sides(contacts)
    apart = place[:, :, None] - place[:, None] - (contacts.xi + LEFT * gap)[:, None, None]
    closing = speed[:, None] - speed[:, :, None]
    tau = _root(apart, closing, np.broadcast_to(bends[:, None, None], apart.shape))
    return np.where(first[:, :, None] & ~first[:, None], tau, np.inf).min(axis=(1, 2))


def _relative_speed(v: np.ndarray, contacts: Contacts) -> np.ndarray:
    """(m,) largest speed of the first primitive's points plus that of the second's, against their mean velocity."""
    relative = v - v.mean(axis=1, keepdims=True)
    speed = np.sqrt(np.einsum("mki,mki->mk", relative, relative))
    first = _sides(contacts)
    return np.where(first, speed, 0.0).max(axis=1) + np.where(first, 0.0, speed).max(axis=1)


def _root(gap: np.ndarray, speed: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Smallest tau >= 0 with ``speed tau + bend tau^2 / 2 = gap``: inf if there is none, 0 for gaps below 0."""
    gap = np.maximum(gap, 0.0)
    root = np.sqrt(speed**2 + 2.0 * bend * gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        closing, leaving = 2.0 * gap / (speed + root), (root - speed) / bend
    tau = np.where(speed > 0.0, closing, leaving)
    return np.where(gap > 0.0, np.where(np.isnan(tau), np.inf, tau), 0.0)
