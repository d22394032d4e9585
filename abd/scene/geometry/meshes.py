"""Surfaces: checked and cleaned meshes of triangles, polylines and points, without mass and pose.

Cleaning removes parts that neither collide nor have mass (triangles without area, repeated triangles, unused vertices),
reverses triangles that face against their neighbours, and adds a note. Vertices are never moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints.closure.link_graph import connected_labels
from abd.scene.geometry.boundary import cancel, describe, inverted_triangles, nested_parts, open_sides, welded_sides
from abd.scene.geometry.mass import enclosed_volume
from abd.scene.geometry.mesh_files import RawMesh, read_mesh_file, weld_equal_vertices

_SLIVER = 1e-12
"""Relative height, by its longest edge, below which a triangle has no area."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface in mesh coordinates; equal bodies share one.

    Attributes:
        name: origin of the surface.
        vertices: (v, 3) [m]; each belongs to a triangle, an edge or `points`.
        triangles: (f, 3) int32.
        codim_edges: (c, 2) int32, edges that belong to no triangle.
        points: (p,) int32, vertices that belong to no edge and no triangle.
        closed: the triangles bound a volume with one orientation, after welding equal vertices.
        radius: [m] of the balls around its points and the capsules around its lines, if it consists of these.
        notes: what was changed while reading.
    """

    name: str
    vertices: np.ndarray
    triangles: np.ndarray
    codim_edges: np.ndarray
    points: np.ndarray
    closed: bool
    radius: float = 0.0
    notes: tuple[str, ...] = ()

    def scaled(self, scale: float | tuple[float, float, float]) -> Surface:
        """The surface with its vertices multiplied by one factor, or by one per axis; mirrored, it keeps its outer side.

        Raises:
            SceneError: it has a radius, and the factors differ.
        """
        factors = np.broadcast_to(np.asarray(scale, dtype=float), 3)
        if self.radius > 0.0 and np.ptp(np.abs(factors)) != 0.0:
            remedy = "give one factor, or subdivisions (segments) for a mesh"
            message = f"an exact {self.name} cannot have different scale factors"
            raise SceneError.of(message, key="scale", value=factors.tolist(), remedy=remedy)
        triangles = self.triangles[:, ::-1].copy() if np.prod(np.sign(factors)) < 0.0 else self.triangles
        radius = self.radius * abs(float(factors[0]))
        return replace(self, vertices=self.vertices * factors, triangles=triangles, radius=radius)

    @property
    def edges(self) -> np.ndarray:
        """(e, 2) int32: all edges of the triangles, then the codimensional ones, each once, smaller index first."""
        return np.concatenate([_triangle_edges(self.triangles), self.codim_edges]).astype(np.int32)


def load_surface(path: Path) -> Surface:
    """Return the surface of a file.

    Raises:
        SceneError: the file is invalid or has no valid surface.
    """
    return make_surface(path.stem, read_mesh_file(path), file=str(path))


def make_surface(name: str, raw: RawMesh, file: str = "") -> Surface:
    """Check and tidy a mesh.

    A mesh without any triangle, edge or point is taken for a set of points.

    Raises:
        SceneError: no vertices, vertices that are not finite, or indices out of range.
    """
    _check(name, raw, file)
    vertices, notes = raw.vertices, list(raw.notes)
    triangles, closed, more = _tidy_triangles(vertices, raw.triangles)
    notes += more

    edges = np.unique(np.sort(raw.edges, axis=1), axis=0).reshape(-1, 2)
    length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
    edges = edges[length > 0.0]
    of_triangles = _triangle_edges(triangles)
    count = len(vertices)
    codim_edges = edges[~np.isin(edges @ [count, 1], of_triangles @ [count, 1])]

    bare = not (len(raw.triangles) or len(raw.edges) or len(raw.points))
    points = np.arange(count) if bare else np.unique(raw.points)
    points = np.setdiff1d(points, np.concatenate([triangles.reshape(-1), codim_edges.reshape(-1)]))

    used = np.unique(np.concatenate([triangles.reshape(-1), codim_edges.reshape(-1), points]))
    if len(used) == 0:
        raise SceneError.of(f"mesh '{name}' has no triangle with positive area, no edge and no point", file=file)
    if len(used) < count:
        notes.append(f"{count - len(used)} unused vertices were removed")
    surface = _part(Surface(name, vertices, triangles, codim_edges, points, closed), np.isin(np.arange(count), used))
    if closed:
        label = component_of_vertices(surface)
        inverted = inverted_triangles(surface.vertices, surface.triangles, label)
        if inverted.any():
            notes.append(f"the orientation of {inverted.sum()} triangles was reversed: they faced inwards")
            surface = replace(surface, triangles=_reversed(surface.triangles, inverted))
        inside = nested_parts(surface.vertices, surface.triangles, label)
        if inside:
            notes.append(f"{inside} of its parts are inside others or overlap them: the common volume counts twice")
    return replace(surface, notes=tuple(notes))


def split_components(surface: Surface) -> list[Surface]:
    """The connected components of a surface, ordered by their first vertex; equal vertices count as connected."""
    label = component_of_vertices(surface)
    parts = [_part(surface, label == k) for k in range(label.max() + 1)]
    return [
        replace(part, name=f"{surface.name}_{k}", closed=is_closed(part.vertices, part.triangles)) for k, part in enumerate(parts)
    ]


def _part(surface: Surface, kept: np.ndarray) -> Surface:
    """Return the part of a surface with the vertices `kept` (v,) bool, which hold all or no vertices of an element."""
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    elements = {
        "triangles": surface.triangles[kept[surface.triangles[:, 0]]],
        "codim_edges": surface.codim_edges[kept[surface.codim_edges[:, 0]]],
        "points": surface.points[kept[surface.points]],
    }
    return replace(surface, vertices=surface.vertices[kept], **{key: number[rows] for key, rows in elements.items()})


def component_of_vertices(surface) -> np.ndarray:
    """(v,) number of the connected component of every vertex, from 0 in order of first vertices.

    Args:
        surface: anything with vertices, triangles and codim_edges (`Surface`, `abd.model.Mesh`).
    """
    welded, same = weld_equal_vertices(surface.vertices)
    pairs = np.concatenate([surface.triangles[:, :2], surface.triangles[:, 1:], surface.codim_edges])
    return connected_labels(len(welded), same[pairs])[same]  # numbered by their first nodes


def is_closed(vertices: np.ndarray, triangles: np.ndarray) -> bool:
    """Whether the triangles, after welding equal vertices, bound a volume with one orientation.

    Every directed edge must occur as often as its reverse, or those that do not must cancel in space; edges shared by four or
    more triangles are allowed.
    """
    return len(triangles) >= 4 and cancel(vertices, open_sides(vertices, triangles))


def _check(name: str, raw: RawMesh, file: str) -> None:
    """Raise SceneError with all errors of a mesh."""
    count = len(raw.vertices)
    if count == 0:
        raise SceneError.of(f"mesh '{name}' is empty: it has no vertices", file=file)
    problems = []
    bad = np.flatnonzero(~np.isfinite(raw.vertices).all(axis=1))
    if len(bad):
        message = f"vertex {bad[0]} of mesh '{name}' is not finite ({len(bad)} such vertices)"
        problems.append(Problem(message, value=raw.vertices[bad[0]].tolist(), file=file))
    for kind, indices in (("triangle", raw.triangles), ("edge", raw.edges), ("point", raw.points)):
        outside = (indices < 0) | (indices >= count)
        if outside.any():
            row = int(np.argwhere(outside)[0][0])
            message = f"{kind} {row} of mesh '{name}' has vertex {indices[outside][0]}, but there are {count}"
            problems.append(Problem(message, file=file, value=int(indices[outside][0])))
    if problems:
        raise SceneError(problems)


def _tidy_triangles(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, bool, list[str]]:
    """Triangles without repetitions, in one orientation where possible, without slivers; whether closed; notes."""
    notes = []
    if len(triangles) == 0:
        return triangles, False, notes
    welded = weld_equal_vertices(vertices)[1][triangles]
    distinct = (welded != np.roll(welded, -1, axis=1)).all(axis=1)
    smallest_first = (np.arange(3) + np.argmin(welded, axis=1)[:, None]) % 3
    _, first = np.unique(np.take_along_axis(welded, smallest_first, axis=1), axis=0, return_index=True)
    keep = np.zeros(len(triangles), dtype=bool)
    keep[first] = True
    if (distinct & ~keep).any():
        notes.append(f"{(distinct & ~keep).sum()} repeated triangles were removed")
    kept, welded = triangles[distinct & keep], welded[distinct & keep]

    closed = is_closed(vertices, kept) and enclosed_volume(vertices, kept) != 0.0
    if not closed:
        # Both sides of a sheet are one sheet; within a volume such pairs cancel.
        _, first = np.unique(np.sort(welded, axis=1), axis=0, return_index=True)
        if len(first) < len(kept):
            notes.append(f"{len(kept) - len(first)} repeated triangles of opposite orientation were removed")
            kept = kept[np.sort(first)]
        closed = is_closed(vertices, kept)
    if not closed:
        turned = _face_alike(vertices, kept)
        straight = _reversed(kept, turned)
        if turned.any() and is_closed(vertices, straight):
            notes.append(f"the orientation of {turned.sum()} triangles was reversed to agree with the others")
            kept, closed = straight, True

    a, b, c = np.moveaxis(vertices[kept], 1, 0)
    longest = np.max([np.einsum("ij,ij->i", s, s) for s in (b - a, c - b, a - c)], axis=0)
    sliver = np.linalg.norm(np.cross(b - a, c - a), axis=1) <= _SLIVER * longest
    dropped = int(sliver.sum() + (~distinct).sum())
    if dropped:
        notes.append(f"{dropped} triangles without area were removed")
    sides = open_sides(vertices, kept)
    if closed and len(sides):
        notes.append(f"it is closed: {describe(vertices, sides)}, cancel each other")
    return kept[~sliver], closed, notes


def _face_alike(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(f,) bool: the triangles to turn around so that neighbours across every edge of exactly two agree.

    Each connected part keeps the orientation of most of its triangles. Node 2k of the graph is triangle k as it is, node 2k + 1
    is the triangle turned around; edges connect nodes that agree.
    """
    edge, forward = welded_sides(vertices, triangles)
    count = len(triangles)
    face = np.tile(np.arange(count), 3)
    order = np.argsort(edge, kind="stable")
    shared_by_two = np.flatnonzero(np.bincount(edge) == 2)
    start = np.searchsorted(edge[order], shared_by_two)
    left, right = order[start], order[start + 1]
    # Two triangles agree when they run along their common edge in opposite directions.
    disagree = forward[left] == forward[right]
    first = np.concatenate([2 * face[left], 2 * face[left] + 1])
    second = np.concatenate([2 * face[right] + disagree, 2 * face[right] + ~disagree])
    label = connected_labels(2 * count, np.stack([first, second], axis=1)).reshape(count, 2)  # numbered by their first nodes
    turned, part = label[:, 0] > label[:, 1], label.min(axis=1)
    return turned ^ (np.bincount(part, weights=turned) > 0.5 * np.bincount(part))[part]


def _reversed(triangles: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the triangles with the orientation of the chosen (f,) bool reversed."""
    return np.where(chosen[:, None], triangles[:, ::-1], triangles)


def _triangle_edges(triangles: np.ndarray) -> np.ndarray:
    """(e, 2) edges of the triangles, each once, sorted."""
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0).reshape(-1, 2)

