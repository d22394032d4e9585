"""Continuous collision detection by conservative advancement, on straight paths and on arcs.

From a safe t the two primitives of a contact provably stay apart for a time tau: over [t, t + tau] a point deviates
from its tangent ``x + tau v`` by at most ``bend tau^2 / 2``. Four bounds determine tau. The largest applies and
consumes four fifths of the gap beyond the separation; then the positions are evaluated on the path again.

- Speed: in any direction the distance decreases by at most ``(max_k |v_k - v| + max_l |v_l - v|) tau`` and the
  quadratic term of both bodies, v the mean velocity of the four points (additive CCD, Li et al. 2021).
- Plane: in the frame of the second body its primitive is fixed, behind the plane across the closest points. Points of
  the first primitive, with the velocity ``u = v - p' - A' A^-1 (x - p)`` there, stay ahead of the plane while
  ``n . (x_k - x_l) + tau n . u_k`` exceeds their bend in that frame. Sliding and common rotation are permitted.
- Points: two points stay apart along their connecting line, independently of rotation. Balls that spin in contact are
  permitted.
- Lines, for two edges: with c the first, e the second, and r between any two points of them, ``r . (e x c) / |e x c|``
  is the distance of their lines. Crossing edges may slide and rotate on one another. The triple product is the
  difference of large terms if the edges are long or almost parallel; a bound of its rounding error is subtracted.

The second body strains along the path: distances in its frame differ from true ones by a factor of ``1 + stretch tau``.
A last bound needs no advancement: the length of path within which the gap cannot decrease by four fifths.
"""

from __future__ import annotations

import numpy as np

from abd.contact.path import Path
from abd.potentials.contact import FIRST, Contacts, Stencil, closest, heights
from abd.potentials.distance import dot
from cuda_kernels.shared.contact import (
    CANCELLATION,
    FINAL_FRACTION,
    MAX_REPEATED_ADVANCES,
    REMAINING_FRACTION,
    STRAINED,
    UNBOUNDED_BEND,
)


def time_of_impact(
    path: Path,
    contacts: Contacts,
    limit: np.ndarray | float = 1.0,
    iterations: int = 1000,
    least: np.ndarray | float = np.inf,
) -> np.ndarray:
    """Fraction of the path on which every contact provably stays beyond its separation.

    Args:
        path: arcs of all bodies; contacts: m candidates.
        limit: (m,) largest fraction; iterations: largest number of advances.
        least: (m,) gaps to which the advancement continues, even if they are less than a fifth of the initial gap [m].

    Returns:
        (m,) alpha in [0, limit]. It is the limit if the path is collision-free. Otherwise the gap there is at most a
        fifth of the initial gap, and at most `least`; after the largest number of advances it may be larger. 0 for
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
            bent, stretch = _frames(path, contacts, x)
            stop = np.maximum(np.minimum(FINAL_FRACTION * gap, least), 0.0)
            approach, room = path.approach(contacts.first, contacts.second), (1.0 - REMAINING_FRACTION) * np.maximum(gap, 0.0)
            free = (approach * end <= room) & (gap > 0.0)
            by_bodies = np.where(free, end, np.minimum(room / np.where(approach > 0.0, approach, np.inf), end))
            t[free] = end[free]
        going = (gap > stop[rows]) & (t[rows] < end[rows])
        if advance == iterations or not np.any(going):
            break
        rows, here, x, v, gap, r = rows[going], here[going], x[going], v[going], gap[going], near.r[going]
        floor, frame, u = (
            here.xi + REMAINING_FRACTION * gap,
            (bent[rows], stretch[rows]),
            _relative_velocities(path, here, t[rows], x, v),
        )
        tau = np.maximum(
            _plane(x, u, r, here, floor, *frame),
            _root((1.0 - REMAINING_FRACTION) * gap, _relative_speed(v, here), bends[rows]),
        )
        points = _is_point_pair(here)
        n = r[points] / _norm(r[points])[:, None]
        closing = dot(n, v[points, 1] - v[points, 0])
        tau[points] = np.maximum(tau[points], _root((1.0 - REMAINING_FRACTION) * gap[points], closing, bends[rows][points]))
        edges = here.stencil == Stencil.EDGE_EDGE
        left, ends = 1.0 - t[rows][edges], near.w[going][edges]
        lines = _lines(x[edges], u[edges], r[edges], ends[:, 1], floor[edges], left, *(part[edges] for part in frame))
        tau[edges] = np.maximum(tau[edges], lines)
        t[rows] = np.minimum(t[rows] + tau, end[rows])
        rows = rows[t[rows] < end[rows]]
    return np.maximum(t, by_bodies)


def proven_fractions(path: Path, contacts: Contacts, least: np.ndarray | float = np.inf) -> np.ndarray:
    """(m,) proven collision-free fraction of the path between two states; 1 if the whole path is.

    Both ends are free of intersections. A gap may decrease to a fifth of its value at the end, or to `least` [m] if
    that is smaller.
    """
    x, _ = _motion(path, contacts, np.ones(len(contacts)))
    end = np.maximum(np.sqrt(closest(x, contacts).D) - contacts.xi, 0.0)
    return time_of_impact(path, contacts, iterations=MAX_REPEATED_ADVANCES, least=np.minimum(FINAL_FRACTION * end, least))


def _motion(path: Path, contacts: Contacts, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions [m] and velocities [m per unit of alpha] (m, 4, 3) of the points at alpha = t (m,).

    A half-space is represented by the foot of its point, which is fixed.
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
    """(m, 4) whether a point belongs to the first primitive; feet on a half-space belong to the second."""
    stand_in = np.where(contacts.stencil == Stencil.POINT_PLANE, Stencil.POINT_TRIANGLE, contacts.stencil)
    return FIRST[stand_in] > 0.0


def _is_point_pair(contacts: Contacts) -> np.ndarray:
    """(m,) whether the target is a point (a, a, a)."""
    a, b, c = np.moveaxis(contacts.rest[:, 1:], 1, 0)
    return (contacts.stencil == Stencil.POINT_TRIANGLE) & (a == b).all(axis=1) & (b == c).all(axis=1)


def _frames(path: Path, contacts: Contacts, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bend (m,) of the first primitives' points in the frames of the second bodies, and stretch (m,) of these per unit
    of alpha.

    With r = x - p and y = A^-1 r of the second body: ``A y' = r' - A' y`` and ``A y'' = r'' - A'' y - 2 A' y'``, with
    every factor bounded over the whole path, where ``|A' A^-1| <= |W| + |S| / (1 - |S|)``.
    """
    first, second = contacts.first, contacts.second
    turn, strain, bend = path.turn[second], path.strain[second], path.bend[first]
    stretch = strain / np.maximum(1.0 - strain, 1.0 - STRAINED)
    arms = np.linalg.norm(x - path.p[second][:, None], axis=2)
    travel = np.linalg.norm(path.dp[first] - path.dp[second], axis=1) + path.affine_speed[first]
    far = np.where(_sides(contacts), arms, 0.0).max(axis=1) + travel
    spin = turn + stretch
    relative = (turn**2 + 2.0 * turn * stretch) * far + 2.0 * spin * (travel + spin * far)
    bent = (1.0 + stretch) * (bend + np.where(spin > 0.0, relative, 0.0))
    return np.where(strain > STRAINED, UNBOUNDED_BEND, bent), stretch


def _relative_velocities(path: Path, contacts: Contacts, t: np.ndarray, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(m, 4, 3) velocities of the points in the frames of the second bodies; world velocities for half-spaces."""
    second = contacts.second
    spin = path.rates(second, t) @ np.linalg.inv(path.maps(second, t))
    arms = x - path.origins(second, t)[:, None]
    field = path.dp[second][:, None] + np.einsum("mij,mkj->mki", spin, arms)
    return v - np.where((contacts.stencil == Stencil.POINT_PLANE)[:, None, None], 0.0, field)


def _plane(
    x: np.ndarray,
    u: np.ndarray,
    r: np.ndarray,
    contacts: Contacts,
    floor: np.ndarray,
    bend: np.ndarray,
    stretch: np.ndarray,
) -> np.ndarray:
    """(m,) tau until a point of the first primitive is at the distance `floor` (m,) ahead of the plane."""
    n = r / np.linalg.norm(r, axis=1)[:, None]
    place = np.einsum("mi,mki->mk", n, x - x[:, :1])
    first = _sides(contacts)
    behind = np.where(first, -np.inf, place).max(axis=1)
    room = place - (behind + floor)[:, None]
    speed = (floor * stretch)[:, None] - np.einsum("mi,mki->mk", n, u)
    tau = _root(room, speed, np.broadcast_to(bend[:, None], room.shape))
    return np.where(first, tau, np.inf).min(axis=1)


def _lines(
    x: np.ndarray,
    u: np.ndarray,
    r: np.ndarray,
    along: np.ndarray,
    floor: np.ndarray,
    left: np.ndarray,
    bend: np.ndarray,
    stretch: np.ndarray,
) -> np.ndarray:
    """(m,) tau <= `left` until the lines of two edges are at the distance `floor`.

    r (m, 3) leads from a point of the second edge to the point of the first at the parameter `along` (m,).
    """
    c, e, du = x[:, 1] - x[:, 0], x[:, 3] - x[:, 2], u[:, 1] - u[:, 0]
    across, turned, er = np.cross(e, c), np.cross(e, du), np.cross(e, r)
    volume = dot(r, across)
    sign = np.where(volume < 0.0, -1.0, 1.0)
    rate = sign * (dot(u[:, 0] + along[:, None] * du, across) - dot(du, er))
    curve = sign * dot(u[:, 0], turned)
    length, arm = _norm(e), _norm(c) + _norm(r)
    arms, speeds = 2.0 * _norm(er) + _norm(across), _norm(np.cross(e, u[:, 0])) + _norm(np.cross(e, u[:, 1]))
    error = bend * (arms + left * speeds) + 0.5 * length * bend**2 * left**2
    growth = 2.0 * floor * (length * bend * (1.0 + left * stretch) + stretch * _norm(turned))
    noise = CANCELLATION * (np.linalg.norm(x, axis=2).max(axis=1) + length + _norm(c)) * length * arm
    noise_rate = CANCELLATION * length * (_norm(u[:, 0]) + _norm(u[:, 1])) * arm
    speed = floor * (_norm(turned) + stretch * _norm(across)) - rate + noise_rate
    room = sign * volume - floor * _norm(across) - noise
    return _root(room, speed, error + growth + np.maximum(0.0, -2.0 * curve))


def _norm(v: np.ndarray) -> np.ndarray:
    """(m,) lengths of v (m, 3)."""
    return np.sqrt(dot(v, v))


def _relative_speed(v: np.ndarray, contacts: Contacts) -> np.ndarray:
    """(m,) largest speed of the first primitive's points plus that of the second's, relative to their mean velocity."""
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
    tau = np.where(np.isnan(tau) & (speed == 0.0) & (bend == 0.0), np.inf, tau)
    return np.where((gap > 0.0) & ~np.isnan(tau), tau, 0.0)
