"""Overlap test of two placed surfaces: whether they intersect, touch or contain one another, and a lower bound of the depth.

Boxes of edges and triangles cull pairs; segments are tested against triangles, containment in closed surfaces by winding numbers.
Surfaces with a thickness must be further apart than their separation. Signs of determinants count as 0 within a bound on their
rounding error (Shewchuk 1997), and contact counts as intersection: pairs that are reported as separate are separate, pairs within
rounding may be reported as intersecting.

The depth estimates the displacement that separates the bodies:

- with points of one body inside the closed surface of the other: the largest distance of such a point from that surface
  (vertices, and midpoints of the parts of edges inside);
- between open surfaces: the largest distance by which edges of one cross triangles of the other; the smaller of both directions;
- for thick surfaces: the separation minus the distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abd.certificate.exact import winding_numbers
from abd.contact.boxes import overlapping_boxes
from abd.model import Mesh
from abd.potentials.distance import edge_edge, point_triangle

_EPSILON = np.finfo(float).eps / 2.0
_BOUND_3D = (7.0 + 56.0 * _EPSILON) * _EPSILON
_BOUND_2D = (3.0 + 16.0 * _EPSILON) * _EPSILON
_DEPTH_EFFORT = 30_000
"""Largest number of point-triangle pairs for the depth of one body within another."""


@dataclass
class Placed:
    """World coordinates of one body's surface; derived data are computed on demand.

    Attributes:
        mesh: the surface; vertices: (v, 3) in the world [m].
        components: function that returns the vertex indices of every connected component.
    """

    mesh: Mesh
    vertices: np.ndarray
    components: Callable[[], list[np.ndarray]]

    def shifted(self, by: np.ndarray) -> Placed:
        """Return the surface translated by a vector (3,) [m]."""
        return replace(self, vertices=self.vertices + by)

    @cached_property
    def low(self) -> np.ndarray:
        return self.vertices.min(axis=0)

    @cached_property
    def high(self) -> np.ndarray:
        return self.vertices.max(axis=0)

    @cached_property
    def corners(self) -> np.ndarray:
        """(f, 3, 3) corners of the triangles."""
        return self.vertices[self.mesh.triangles]

    @cached_property
    def ends(self) -> np.ndarray:
        """(e, 2, 3) ends of the edges."""
        return self.vertices[self.mesh.edges]

    @cached_property
    def triangle_boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.corners.min(axis=1), self.corners.max(axis=1)

    @cached_property
    def edge_boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.ends.min(axis=1), self.ends.max(axis=1)

    def is_near(self, points: np.ndarray) -> np.ndarray:
        """Return (k,) bool, whether points (k, 3) are in the box of the surface."""
        return ((points >= self.low) & (points <= self.high)).all(axis=1)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Return (k,) bool, whether points are inside the surface; False for open surfaces."""
        inside = np.zeros(len(points), dtype=bool)
        if self.mesh.closed:
            near = self.is_near(points)
            inside[near] = np.abs(winding_numbers(points[near], self.corners)) > 0.5
        return inside


def overlap(a: Placed, b: Placed, separation: float) -> tuple[str, float] | None:
    """Return the type of intersection of two bodies, and its depth [m]; None without one."""
    crossings = [_crossings(a, b), _crossings(b, a)]
    if any(len(edges) for edges, _ in crossings):
        depth = _crossing_depth(a, b, crossings)
        return ("intersects" if depth > 0.0 else "touches"), depth
    for outer, inner, what in ((b, a, "lies inside"), (a, b, "contains")):
        depth = _containment_depth(outer, inner)
        if depth is not None:
            return what, depth
    distance = _thick_distance(a, b, separation)
    if distance <= separation:
        return ("is too close to" if separation > 0.0 else "touches"), separation - distance
    return None


def _crossings(a: Placed, b: Placed) -> tuple[np.ndarray, np.ndarray]:
    """Return edges of `a` (k,) and the triangles of `b` (k,) that they intersect."""
    edges, triangles = overlapping_boxes(*a.edge_boxes, *b.triangle_boxes)
    if len(edges) == 0:
        return edges, triangles
    ends, corners = a.ends[edges], b.corners[triangles]
    meets = segments_meet_triangles(ends[:, 0], ends[:, 1], corners[:, 0], corners[:, 1], corners[:, 2])
    return edges[meets], triangles[meets]


def _crossing_depth(a: Placed, b: Placed, crossings: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the depth of two crossing surfaces, as defined above."""
    inside, through = [0.0], []
    for inner, outer, (edges, triangles) in ((a, b, crossings[0]), (b, a, crossings[1])):
        if outer.mesh.closed:
            near = inner.vertices[outer.is_near(inner.vertices)]
            inside.append(_inside_depth(outer, np.concatenate([near, _chords(inner, outer, edges, triangles)])))
        if len(edges):
            p, q = np.abs(_heights(inner, outer, edges, triangles))
            through.append(np.minimum(p, q).max())
    return float(max(inside) if max(inside) > 0.0 else min(through))


def _heights(inner: Placed, outer: Placed, edges: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return (2, k) signed heights [m] of both ends of edges above the planes of the triangles they cross."""
    corners = outer.corners[triangles]
    return np.einsum("kei,ki->ek", inner.ends[edges] - corners[:, :1], unit_normals(corners))


def _chords(inner: Placed, outer: Placed, edges: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return midpoints (k, 3) of the segments into which crossings divide the edges."""
    p, q = _heights(inner, outer, edges, triangles)
    proper = p != q
    where = p[proper] / (p - q)[proper]
    cut = np.unique(edges[proper])
    edge = np.concatenate([edges[proper], cut, cut])
    place = np.concatenate([np.clip(where, 0.0, 1.0), np.zeros(len(cut)), np.ones(len(cut))])
    order = np.lexsort((place, edge))
    edge, place = edge[order], place[order]
    same = edge[1:] == edge[:-1]
    middle = ((place[1:] + place[:-1]) / 2.0)[same, None]
    ends = inner.ends[edge[1:][same]]
    return (1.0 - middle) * ends[:, 0] + middle * ends[:, 1]


def _inside_depth(outer: Placed, points: np.ndarray) -> float:
    """Return the largest distance [m] of points inside from the surface; many points are sampled."""
    points = points[:: 1 + len(points) * len(outer.corners) // _DEPTH_EFFORT]
    points = points[outer.contains(points)]
    if len(points) == 0:
        return 0.0
    # No triangle is nearer than its box, and the nearest one is no further than the nearest vertex.
    low, high = outer.triangle_boxes
    to_box = np.zeros((len(points), len(low)))
    to_vertex = np.zeros((len(points), len(outer.vertices)))
    for axis in range(3):
        place = points[:, axis, None]
        to_box += np.maximum(np.maximum(low[:, axis] - place, place - high[:, axis]), 0.0) ** 2
        to_vertex += (place - outer.vertices[:, axis]) ** 2
    point, triangle = np.nonzero(to_box <= (1.0 + 1e-9) * to_vertex.min(axis=1)[:, None])
    corners = outer.corners[triangle]
    distance = np.sqrt(point_triangle(points[point], corners[:, 0], corners[:, 1], corners[:, 2])[0])
    return float(np.minimum.reduceat(distance, np.searchsorted(point, np.arange(len(points)))).max())


def _containment_depth(outer: Placed, inner: Placed) -> float | None:
    """Return the depth [m] of components inside the closed surface of the other body; None without any.

    The surfaces do not cross, so that one vertex per component is tested.
    """
    if not outer.mesh.closed or (inner.low > outer.high).any() or (inner.high < outer.low).any():
        return None
    within = outer.is_near(inner.vertices)
    inside = [members for members in inner.components() if within[members].all()]
    inside = [members for members in inside if outer.contains(inner.vertices[members[:1]])[0]]
    if not inside:
        return None
    return _inside_depth(outer, inner.vertices[np.concatenate(inside)])


def _thick_distance(a: Placed, b: Placed, separation: float) -> float:
    """Return the smallest distance [m] between two surfaces that do not cross, infinite if it exceeds `separation`.

    Without a separation only rods and points are tested; triangles have been tested for crossings.
    """
    thick = separation > 0.0
    rods = [x.ends if thick else x.vertices[x.mesh.codim_edges] for x in (a, b)]
    points = [(x.vertices if thick else x.vertices[x.mesh.points])[:, None] for x in (a, b)]
    pairs = [rods, points, *((points[k], x) for k, other in ((0, b), (1, a)) for x in (other.corners, rods[1 - k]))]
    return min(_nearest(*pair, separation) for pair in pairs)


def _nearest(first: np.ndarray, second: np.ndarray, separation: float) -> float:
    """Return the smallest distance of points (n, 1, 3) and simplices (m, ., 3), or of edges (n, 2, 3) and (m, 2, 3).

    Only pairs with boxes within `separation` count; infinite without any."""
    if len(first) == 0 or len(second) == 0:
        return np.inf
    i, j = overlapping_boxes(
        first.min(axis=1) - separation, first.max(axis=1) + separation, second.min(axis=1), second.max(axis=1)
    )
    if len(i) == 0:
        return np.inf
    x, y = first[i], second[j]
    if first.shape[1] == 2:
        squares = edge_edge(x[:, 0], x[:, 1], y[:, 0], y[:, 1])[0]
    else:
        corners = np.minimum([0, 1, 2], y.shape[1] - 1)  # points and edges as triangles without area
        squares = point_triangle(x[:, 0], *np.moveaxis(y[:, corners], 1, 0))[0]
    return float(np.sqrt(squares.min()))


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


def unit_normals(corners: np.ndarray) -> np.ndarray:
    """(f, 3) unit normals of triangles (f, 3, 3); zero without area."""
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(n, axis=1, keepdims=True)
    return n / np.where(length > 0.0, length, 1.0)
