"""Directions that separate bodies: gaps between the hulls of many pairs, and the shortest escape of one surface from another.

A direction u separates two bodies by ``min u.x_a - max u.x_b`` or by ``min u.x_b - max u.x_a``. The largest such gap over
any set of directions is a lower bound of the distance of the bodies where it is positive, and minus a distance that
suffices to separate them where it is negative. Of many pairs, the directions are some face normals of both bodies and the line
between the middles of their boxes, which exclude most pairs.

For convex bodies the least penetration lies along a face normal of either or along the cross product of two edges
(Gottschalk, Lin and Manocha 1996). Otherwise these directions, with the extents of the whole bodies, are an upper
bound. Shorter displacements, out of one face or of the part inside only, are tried in ascending order. The first that
separates the surfaces is used.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

from abd.joints.closure.link_graph import members
from abd.model import Mesh, Model
from abd.scene.geometry.meshes import component_of_vertices
from abd.scene.overlaps.overlap import Placed, overlap, unit_normals

MOST_NORMALS = 12
"""Normals of one mesh that are looked at in the test of all pairs."""
_CHUNK = 1 << 21
"""Most numbers in one array of heights."""
_CONVEX_EFFORT = 4_000_000
"""Pairs of a vertex and a face beyond which a mesh is not tested for convexity."""
_FLAT = 1e-9
"""Height above a face, over the size of the mesh, that counts as none."""


def unique(v: np.ndarray, both: bool = True) -> np.ndarray:
    """Unit vectors (k, 3), those that agree once; `both`: opposite ones count as one."""
    if len(v) == 0:
        return v
    key = np.round(v, 6) + 0.0
    if both:
        key = key * np.sign(key[np.arange(len(v)), (key != 0.0).argmax(axis=1)])[:, None] + 0.0
    return v[np.sort(np.unique(key, axis=0, return_index=True)[1])]


def normals(corners: np.ndarray, both: bool) -> np.ndarray:
    """(k, 3) unit normals of triangles (f, 3, 3) with an area, as in `unique`."""
    n = unit_normals(corners)
    return unique(n[n.any(axis=1)], both)


def is_convex(mesh: Mesh) -> bool:
    """Whether a mesh is closed and no vertex lies outside one of its faces."""
    if not mesh.closed or len(mesh.triangles) * len(mesh.vertices) > _CONVEX_EFFORT:
        return False
    corners = mesh.vertices[mesh.triangles]
    n = unit_normals(corners)
    heights = n @ mesh.vertices.T - np.einsum("fi,fi->f", n, corners[:, 0])[:, None]
    size = np.linalg.norm(np.ptp(mesh.vertices, axis=0))
    return bool(heights.max(initial=0.0) <= _FLAT * size) and bool(n.any())


def _face_normals(mesh: Mesh) -> np.ndarray:
    found = normals(mesh.vertices[mesh.triangles], both=True)
    return found if len(found) else np.eye(3)


class Hulls:
    """Face directions, convexity and components of the meshes of a model.

    Attributes:
        normals: function of a mesh's number that returns its directions of faces; convex: whether it is convex.
        components: vertex indices of every connected component. All are computed once.
    """

    def __init__(self, model: Model):
        self.meshes = model.meshes
        self.normals = cache(lambda mesh: _face_normals(self.meshes[mesh]))
        self.convex = cache(lambda mesh: is_convex(self.meshes[mesh]))
        self.components = cache(lambda mesh: members(component_of_vertices(self.meshes[mesh])))

    def gaps(
        self, mesh: np.ndarray, q: np.ndarray, middle: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Largest gaps (m,) [m] of pairs of bodies, and their directions (m, 3) from the second body to the first.

        Args:
            mesh: (n,) of every body; q: (n, 12); middle: (n, 3) of the boxes around the bodies; first, second: (m,).
        """
        best, along = np.full(len(first), -np.inf), np.zeros((len(first), 3))
        if len(first) == 0:
            return best, along
        kinds, which = np.unique(np.stack([mesh[first], mesh[second]], axis=1), axis=0, return_inverse=True)
        for (a, b), rows in zip(kinds.tolist(), members(which.ravel()), strict=True):
            most = max(1, _CHUNK // max(len(self.meshes[a].vertices), len(self.meshes[b].vertices)))
            for start in range(0, len(rows), most):
                some = rows[start : start + most]
                i, j = first[some], second[some]
                best[some], along[some] = self._of_kind(a, b, q[i], q[j], middle[i] - middle[j])
        return best, along

    def _of_kind(self, a: int, b: int, q_a: np.ndarray, q_b: np.ndarray, centres: np.ndarray):
        """The same for pairs of one pair of meshes, their states q_a, q_b (m, 12) and the lines (m, 3) of their middles."""
        A, B = q_a[:, 3:].reshape(-1, 3, 3), q_b[:, 3:].reshape(-1, 3, 3)
        centres[~centres.any(axis=1)] = (0.0, 0.0, 1.0)
        directions = []
        for map_, mesh in ((A, a), (B, b)):
            known = self.normals(mesh)
            directions += [map_ @ n for n in known[:: 1 + (len(known) - 1) // MOST_NORMALS]]
        directions.append(centres)
        # of directions that are as good the first: pairs of a lattice then push along its axes
        slight = _FLAT * np.linalg.norm(centres, axis=1)
        best, along = np.full(len(q_a), -np.inf), np.zeros((len(q_a), 3))
        for u in directions:
            u = u / np.linalg.norm(u, axis=1, keepdims=True)
            low_a, high_a = extent(u, q_a[:, :3] - q_b[:, :3], A, self.meshes[a].vertices)
            low_b, high_b = extent(u, np.zeros_like(u), B, self.meshes[b].vertices)
            for gap, sign in ((low_a - high_b, 1.0), (low_b - high_a, -1.0)):
                better = gap > best + slight
                best[better], along[better] = gap[better], sign * u[better]
        return best, along


def extent(u: np.ndarray, p: np.ndarray, A: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest ``u . (p + A X)`` (m,) [m] over the vertices X (v, 3), for u, p (m, 3) and A (m, 3, 3)."""
    heights = np.einsum("mi,mij->mj", u, A) @ vertices.T
    shift = np.einsum("mi,mi->m", u, p)
    return heights.min(axis=1) + shift, heights.max(axis=1) + shift


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
