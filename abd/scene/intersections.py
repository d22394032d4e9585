"""Bodies that intersect, contain one another or lie below a half-space in the initial state.

A barrier needs a start without intersections. Body boxes, then boxes of edges and triangles cull; what remains is
decided exactly (`abd.scene.crossings`), containment of closed surfaces by winding numbers. Surfaces with a thickness
must be further apart than the sum of their radii and the scene's minimum separation.

The depth that is reported says how far the bodies have to be moved, roughly:

- where a point of one body lies inside the other's closed surface: the largest distance of such a point (vertices,
  and middles of the parts of edges inside) from that surface;
- between open surfaces: how far the edges of one reach through the triangles of the other, at the deepest; the
  smaller of both ways;
- for thick surfaces: the part of the separation that is missing;
- for half-spaces: the distance of the lowest vertex below the plane.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from abd.errors import Problem
from abd.joint_list import JointList
from abd.model import Kind, Mesh, Model, affine_matrices
from abd.scene.box_pairs import overlapping_boxes
from abd.scene.crossings import segments_meet_triangles
from abd.scene.distances import point_segment, point_triangle, segment_segment, winding_numbers
from abd.scene.meshes import component_of_vertices

_DEPTH_EFFORT = 30_000
"""Number of pairs of a point and a triangle looked at for the depth of one body within another."""


def find_initial_intersections(model: Model) -> list[Problem]:
    """All pairs of bodies that may collide and intersect, touch or contain one another at t = 0.

    Pairs are in order of body indices. Not looked at: pairs of static and kinematic bodies, of one group >= 0, of
    different worlds, of materials that do not meet, and joined bodies whose joint keeps them from colliding.

    Returns:
        one `Problem` per pair, with the names of both bodies, and the depth [m] as its value.
    """
    bodies = model.bodies
    components: dict[int, list[np.ndarray]] = {}
    placed = {k: _Placed(model, k, components) for k in range(len(bodies)) if bodies.mesh[k] >= 0}
    problems = {}
    for i, j in _candidate_pairs(model, placed):
        separation = bodies.radius[i] + bodies.radius[j] + model.settings.minimum_separation
        fault = _fault(placed[i], placed[j], separation)
        if fault is not None:
            problems[i, j] = _problem(bodies.names[i], bodies.names[j], *fault)
    for plane in np.flatnonzero(np.isfinite(bodies.plane[:, 3])):
        others = np.array(sorted(placed), dtype=int)
        for k in others[may_collide(model, np.full(len(others), plane), others)]:
            gap = (placed[k].vertices @ bodies.plane[plane, :3]).min() - bodies.plane[plane, 3]
            separation = bodies.radius[k] + bodies.radius[plane] + model.settings.minimum_separation
            if gap <= separation:
                what = "touches" if gap == separation else "lies partly below"
                problems[plane, k] = _problem(bodies.names[k], bodies.names[plane], what, separation - gap)
    return [problems[pair] for pair in sorted(problems)]


def may_collide(model: Model, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(k,) bool: whether contact between bodies `first` (k,) and `second` (k,) is possible at all."""
    bodies = model.bodies
    moves = bodies.kind == Kind.DYNAMIC
    allowed = (first != second) & (moves[first] | moves[second]) & (bodies.world[first] == bodies.world[second])
    allowed &= (bodies.group[first] != bodies.group[second]) | (bodies.group[first] < 0)
    allowed &= model.materials.enabled[bodies.material[first], bodies.material[second]]
    joined = JointList.of(model.joints).apart.astype(np.int64)
    if len(joined):
        count = len(bodies)
        keys = np.sort(joined, axis=1) @ [count, 1]
        pairs = np.minimum(first, second) * count + np.maximum(first, second)
        allowed &= ~np.isin(pairs, keys)
    return allowed


class _Placed:
    """World coordinates of one body's surface at t = 0; what else is asked for is made then.

    Args:
        components: vertex indices of the connected components of meshes seen so far, shared by all bodies.
    """

    def __init__(self, model: Model, body: int, components: dict[int, list[np.ndarray]]):
        self.number = int(model.bodies.mesh[body])
        self.mesh: Mesh = model.meshes[self.number]
        self._components = components
        matrix = affine_matrices(model.bodies.q[body : body + 1])[0]
        self.vertices = self.mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3]
        self.low, self.high = self.vertices.min(axis=0), self.vertices.max(axis=0)

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

    @property
    def components(self) -> list[np.ndarray]:
        """Vertex indices of every connected component."""
        if self.number not in self._components:
            label = component_of_vertices(self.mesh)
            self._components[self.number] = [np.flatnonzero(label == k) for k in range(label.max() + 1)]
        return self._components[self.number]

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(k,) bool: inside the closed surface; never for open ones."""
        inside = np.zeros(len(points), dtype=bool)
        if self.mesh.closed:
            near = ((points >= self.low) & (points <= self.high)).all(axis=1)
            inside[near] = np.abs(winding_numbers(points[near], self.corners)) > 0.5
        return inside


def _candidate_pairs(model: Model, placed: dict[int, _Placed]) -> list[tuple[int, int]]:
    """Pairs i < j of bodies that may collide and whose boxes, grown by their radii, overlap."""
    if not placed:
        return []
    index = np.array(sorted(placed))
    margin = (model.bodies.radius[index] + model.settings.minimum_separation / 2.0)[:, None]
    low = np.array([placed[k].low for k in index]) - margin
    high = np.array([placed[k].high for k in index]) + margin
    first, second = overlapping_boxes(low, high, low, high)
    first, second = index[first[first < second]], index[second[first < second]]
    wanted = may_collide(model, first, second)
    return list(zip(first[wanted].tolist(), second[wanted].tolist()))


def _fault(a: _Placed, b: _Placed, separation: float) -> tuple[str, float] | None:
    """What is wrong between two bodies, and its depth [m]; None where they are apart."""
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


def _crossings(a: _Placed, b: _Placed) -> tuple[np.ndarray, np.ndarray]:
    """Edges of `a` (k,) and the triangles of `b` (k,) that they meet."""
    edges, triangles = overlapping_boxes(*a.edge_boxes, *b.triangle_boxes)
    if len(edges) == 0:
        return edges, triangles
    ends, corners = a.ends[edges], b.corners[triangles]
    meets = segments_meet_triangles(ends[:, 0], ends[:, 1], corners[:, 0], corners[:, 1], corners[:, 2])
    return edges[meets], triangles[meets]


def _crossing_depth(a: _Placed, b: _Placed, crossings: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Depth of two surfaces that cross, as the head of this file says."""
    inside, through = [0.0], []
    for inner, outer, (edges, triangles) in ((a, b, crossings[0]), (b, a, crossings[1])):
        if outer.mesh.closed:
            inside.append(
                _inside_depth(outer, np.concatenate([_near(inner, outer), _chords(inner, outer, edges, triangles)]))
            )
        if len(edges):
            p, q = np.abs(_heights(inner, outer, edges, triangles))
            through.append(np.minimum(p, q).max())
    return float(max(inside) if max(inside) > 0.0 else min(through))


def _near(inner: _Placed, outer: _Placed) -> np.ndarray:
    """Vertices (k, 3) of one surface within the other's box."""
    within = ((inner.vertices >= outer.low) & (inner.vertices <= outer.high)).all(axis=1)
    return inner.vertices[within]


def _heights(inner: _Placed, outer: _Placed, edges: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(2, k) signed heights [m] of both ends of edges above the planes of the triangles they meet."""
    corners = outer.corners[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.einsum("kei,ki->ek", inner.ends[edges] - corners[:, :1], normal)


def _chords(inner: _Placed, outer: _Placed, edges: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Middles (k, 3) of the pieces into which crossings cut the edges."""
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


def _inside_depth(outer: _Placed, points: np.ndarray) -> float:
    """Largest distance [m] of those points that lie inside from the surface; of a sample where there are many."""
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
    distance = point_triangle(points[point], corners[:, 0], corners[:, 1], corners[:, 2])
    return float(np.minimum.reduceat(distance, np.searchsorted(point, np.arange(len(points)))).max())


def _containment_depth(outer: _Placed, inner: _Placed) -> float | None:
    """Depth [m] of a component that lies entirely inside the other body's closed surface; None where none does.

    The surfaces do not cross, so one vertex per component decides.
    """
    if not outer.mesh.closed or (inner.low > outer.high).any() or (inner.high < outer.low).any():
        return None
    within = ((inner.vertices >= outer.low) & (inner.vertices <= outer.high)).all(axis=1)
    inside = [members for members in inner.components if within[members].all()]
    inside = [members for members in inside if outer.contains(inner.vertices[members[:1]])[0]]
    if not inside:
        return None
    return _inside_depth(outer, inner.vertices[np.concatenate(inside)])


def _thick_distance(a: _Placed, b: _Placed, separation: float) -> float:
    """Smallest distance [m] between two surfaces that do not cross, as far as it is at most `separation`.

    Without a separation only rods and points can still touch: what has triangles has been compared already.
    """
    thick = separation > 0.0
    rods = [x.ends if thick else x.vertices[x.mesh.codim_edges] for x in (a, b)]
    points = [(x.vertices if thick else x.vertices[x.mesh.points])[:, None] for x in (a, b)]
    nearest = _nearest(*rods, segment_segment, separation)
    nearest = min(nearest, _nearest(*points, _point_point, separation))
    for point, rod, other in ((points[0], rods[1], b), (points[1], rods[0], a)):
        nearest = min(nearest, _nearest(point, other.corners, point_triangle, separation))
        nearest = min(nearest, _nearest(point, rod, point_segment, separation))
    return nearest


def _point_point(point: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.linalg.norm(point - other, axis=-1)


def _nearest(first: np.ndarray, second: np.ndarray, distance, separation: float) -> float:
    """Smallest distance among the simplices (n, ., 3) and (m, ., 3) whose boxes are within `separation`."""
    if len(first) == 0 or len(second) == 0:
        return np.inf
    i, j = overlapping_boxes(
        first.min(axis=1) - separation, first.max(axis=1) + separation, second.min(axis=1), second.max(axis=1)
    )
    if len(i) == 0:
        return np.inf
    return float(distance(*np.moveaxis(first[i], 1, 0), *np.moveaxis(second[j], 1, 0)).min())


def _problem(first: str, second: str, what: str, depth: float) -> Problem:
    return Problem(
        f"'{first}' {what} '{second}' at t = 0, depth {depth:.3g} m",
        value=float(depth),
        remedy="move them apart, or keep them from colliding (group, material pair, joint)",
    )
