"""Shortest displacement that separates two placed surfaces.

For convex bodies the least penetration lies along a face normal of either or along the cross product of two edges
(Gottschalk, Lin and Manocha 1996). Otherwise these directions, with the extents of the whole bodies, are an upper
bound. Shorter displacements, out of one face or of the part inside only, are tried in ascending order. The first that
separates the surfaces is used.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from abd.scene.overlaps.hull_gaps import normals, unique, unit_normals
from abd.scene.overlaps.overlap import Placed, overlap

MOST_DIRECTIONS = 4096
STRETCHES = (1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
"""Trial displacements along the line of the nearest points of thick surfaces, in multiples of their overlap."""
MOST_TRIALS = 48
"""Displacements shorter than the upper bound that are tried."""
MOST_SUMS = 160
"""Sums of up to three directions that are tried to part bodies that touch in corners."""
MOST_TOUCHING = 14
"""Directions that such sums are made of."""
BEYOND = 1.0 + 1e-9


def escape(a: Placed, b: Placed, separation: float, convex: bool) -> np.ndarray:
    """Return the displacement (3,) of `a` [m] to the distance `separation` [m] from `b`; `convex`: whether both are convex."""
    directions, _ = _directions(a, b)
    gap, direction = _largest_gap(a, b, directions)
    whole = separation - gap
    out = whole * BEYOND * direction
    if convex:
        return out
    for length, direction in _shorter(a, b, separation, directions, whole):
        step = length * BEYOND * direction
        if overlap(a.shifted(step), b, separation) is None:
            return step
    return out


def least_penetration(a: Placed, b: Placed) -> tuple[float, np.ndarray] | None:
    """Largest gap [m] of two convex surfaces over their face normals and the cross products of their edges, and its
    direction (3,) from `b` to `a`: minus the smallest penetration if negative. None with too many directions."""
    directions, are_all = _directions(a, b)
    return _largest_gap(a, b, directions) if are_all else None


def _largest_gap(a: Placed, b: Placed, directions: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest gap [m] of the hulls of two surfaces over directions (k, 3) from `b` to `a`, and its direction (3,)."""
    gaps = (a.vertices @ directions.T).min(axis=0) - (b.vertices @ directions.T).max(axis=0)
    best = int(np.argmax(gaps))
    return float(gaps[best]), directions[best]


def part(a: Placed, b: Placed, separation: float, amount: float) -> list[np.ndarray] | None:
    """Return directions (3,), at most three, along all of which `a` must be moved by `amount` [m] to be separate from `b`.

    For bodies that touch, or overlap by less than the amount; None if a few directions do not separate them.
    """
    found = _touching_directions(a, b, 4.0 * amount + separation)
    sums = []
    for count in (1, 2, 3):
        for chosen in combinations(range(len(found)), count):
            n = found[list(chosen)]
            if count > 1 and np.linalg.cond(n @ n.T) > 1e3:
                continue
            step = np.linalg.lstsq(n, np.full(count, amount), rcond=None)[0]
            sums.append((float(np.linalg.norm(step)), chosen, step))
    sums.sort(key=lambda one: one[:2])
    for _, chosen, step in sums[:MOST_SUMS]:
        if overlap(a.shifted(step), b, separation) is None:
            return list(found[list(chosen)])
    return None


def _directions(a: Placed, b: Placed) -> tuple[np.ndarray, bool]:
    """Unit directions (k, 3), of both signs, along which the least penetration is looked for; whether they suffice if both are
    convex."""
    middle = (a.low + a.high - b.low - b.high) / 2.0
    parts = [np.eye(3), middle[None], *(normals(x.corners, both=False) for x in (a, b))]
    edges = [unique(_unit(x.ends[:, 1] - x.ends[:, 0])) for x in (a, b)]
    if are_all := len(edges[0]) * len(edges[1]) <= MOST_DIRECTIONS:
        parts.append(np.cross(edges[0][:, None], edges[1][None]).reshape(-1, 3))
    found = unique(_unit(np.concatenate(parts)))
    found = found[:: 1 + len(found) // MOST_DIRECTIONS]
    return np.concatenate([found, -found]), are_all


def _shorter(a: Placed, b: Placed, separation: float, directions: np.ndarray, bound: float):
    """Return lengths and unit directions of trial displacements, the shortest first, most of them below `bound`.

    They lead through a face of `b` along its normal, or put a face of `a` behind the part of `b` that it has passed, by the
    extents of the other body and of its part within the common box.
    """
    displacements = []
    low, high = np.maximum(a.low, b.low) - separation, np.minimum(a.high, b.high) + separation
    common = [x.vertices[((x.vertices >= low) & (x.vertices <= high)).all(axis=1)] for x in (a, b)]
    for sign, moving, still, inner in ((1.0, a, b, common[0]), (-1.0, b, a, common[1])):
        n = normals(still.corners, both=False)
        corners = still.corners[:, 0]
        for face in n if still.mesh.closed else np.concatenate([n, -n]):
            planes = np.unique(np.round(corners[np.abs(unit_normals(still.corners) @ face - 1.0) < 1e-6] @ face, 12))
            for points in (moving.vertices, inner):
                if len(points) and len(planes):
                    displacements += [(float(t), tuple(sign * face)) for t in planes - (points @ face).min() + separation]
    if separation > 0.0:
        arms = a.vertices[:, None] - b.vertices[None, : max(1, 1_000_000 // len(a.vertices))]
        lengths = np.linalg.norm(arms, axis=2)
        arm, nearest = arms.reshape(-1, 3)[lengths.argmin()], float(lengths.min())
        if 0.0 < nearest < separation:
            yield from ((stretch * (separation - nearest), arm / nearest) for stretch in STRETCHES)
    for inner in common:
        if len(inner):
            spread = np.ptp(inner @ directions.T, axis=0)
            displacements += [(float(t + separation), tuple(u)) for t, u in zip(spread, directions, strict=True)]
    displacements = sorted({one for one in displacements if 0.0 < one[0] < bound})
    kept = displacements[:: 1 + len(displacements) // MOST_TRIALS]
    yield from ((length, np.array(direction)) for length, direction in kept)


def _touching_directions(a: Placed, b: Placed, reach: float) -> np.ndarray:
    """(k, 3) unit directions in which `a` may leave `b`: normals of faces, and of crossing edges, near the other body."""
    displacements = []
    for sign, still, other in ((1.0, b, a), (-1.0, a, b)):
        if len(still.corners):
            low, high = still.triangle_boxes
            close = ((low <= other.high + reach) & (high >= other.low - reach)).all(axis=1)
            n = unit_normals(still.corners)[close]
            displacements += [sign * n] if still.mesh.closed else [n, -n]
    near = []
    for still, other in ((a, b), (b, a)):
        low, high = still.edge_boxes if len(still.ends) else np.zeros((2, 0, 3))
        ends = still.ends[((low <= other.high + reach) & (high >= other.low - reach)).all(axis=1)]
        near.append(unique(_unit(ends[:, 1] - ends[:, 0])))
    if len(near[0]) * len(near[1]) <= MOST_TOUCHING:
        crossed = np.cross(near[0][:, None], near[1][None]).reshape(-1, 3)
        displacements += [crossed, -crossed]
    displacements.append(((a.low + a.high) - (b.low + b.high))[None])
    return unique(_unit(np.concatenate(displacements)), both=False)[:MOST_TOUCHING]


def _unit(v: np.ndarray) -> np.ndarray:
    """Unit vectors of those rows of v (k, 3) that have a length."""
    length = np.linalg.norm(v, axis=1)
    long = length > 1e-12 * length.max(initial=0.0)
    return v[long] / length[long, None]
