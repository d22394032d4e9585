"""Neighbourhoods of the edges and vertices of meshes, and their contact weights.

The contact potential counts every local minimum of distance once (`abd.contact.minima`). This requires the targets
around every edge and vertex, and constants of the rest shape:

    edge weight     convexity of an edge: 0 if its two faces are flat or, on a closed mesh, concave; 1 from `SHARP` on and for
                    edges of one face (the boundary of an open mesh), of none, or of more than two
    vertex weight   largest weight of its edges; 1 for isolated points
    vertex share    vertex weight over the sum of its edges' weights: the fraction of the vertex that each edge carries against
                    codimensional edges; 0 for vertices that have these as targets (`Surfaces.least`)

A flat or concave edge, or vertex, never touches another body first. Coincident vertices count as one, as do edges
between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.contact.flat_edges import unit
from abd.contact.surfaces import Surfaces, least_dimension
from abd.model import Mesh, Model

FLAT = 1e-6
"""Angle [rad] below which two faces are coplanar, up to rounding of their vertices."""
SHARP = 0.05
"""Angle [rad] from which on a convex edge has full weight."""
SIDES = ((0, 1), (1, 2), (2, 0))
"""Corners of the sides of a target."""
SIDE_BIT, CORNER_BIT = 0, 3
"""First bits of `Topology.owned`."""


@dataclass(frozen=True)
class Topology:
    """Neighbourhoods in all meshes; indices of vertices, targets and edges are those of `Surfaces`.

    Attributes:
        vertex_weight, vertex_share: (V,); edge_weight: (E,).
        edge_faced: (E,) whether an edge belongs to a triangle.
        owned: (T,) bits of the sides (from `SIDE_BIT`) and corners (from `CORNER_BIT`) that a target owns as their
            first target.
        sides: (T, 3) sides of a triangle at `SIDES`, -1 for other targets; corners: (T, 3) vertices, the first of
            coincident ones.
        side_extra: (S,) number m of triangles of a side, less one.
        vertex_extra: (V, 2) ``x = 1 - targets + sum of m - 1 of the sides`` around a vertex, for vertices with triangles as
            targets, and with all targets.
        dimension: (V,) largest dimension of the targets around a vertex.
    """

    vertex_weight: np.ndarray
    vertex_share: np.ndarray
    edge_weight: np.ndarray
    edge_faced: np.ndarray
    owned: np.ndarray
    sides: np.ndarray
    corners: np.ndarray
    side_extra: np.ndarray
    vertex_extra: np.ndarray
    dimension: np.ndarray

    @classmethod
    def of(cls, model: Model, surfaces: Surfaces) -> Topology:
        """Topology of a compiled scene."""
        parts = [_of_mesh(mesh) for mesh in model.meshes] or [_of_mesh(_EMPTY_MESH)]
        side_count = np.cumsum([0] + [len(part["side_extra"]) for part in parts])
        joined = {}
        for name in parts[0]:
            values = [part[name] for part in parts]
            if name == "sides":
                values = [np.where(v >= 0, v + first, v) for v, first in zip(values, side_count, strict=False)]
            elif name == "corners":
                values = [v + first for v, first in zip(values, surfaces.vertex_start, strict=False)]
            joined[name] = np.concatenate(values)
        return cls(**joined)


_EMPTY_MESH = Mesh("empty", *(np.zeros(shape, dtype=int) for shape in ((0, 3), (0, 3), (0, 2), (0, 2), 0)))


def _of_mesh(mesh: Mesh) -> dict[str, np.ndarray]:
    """Arrays of `Topology` of one mesh, with local indices."""
    count = len(mesh.vertices)
    isolated = np.zeros(count, dtype=bool)
    isolated[mesh.points.astype(np.int64)] = True
    same = _first_coincident(mesh.vertices, isolated)
    triangles = same[mesh.triangles.reshape(-1, 3).astype(np.int64)]
    wires = same[mesh.codim_edges.reshape(-1, 2).astype(np.int64)]
    points = mesh.points.reshape(-1).astype(np.int64)
    faces, targets = len(triangles), len(triangles) + len(wires) + len(points)

    corners = np.sort(triangles[:, SIDES].reshape(-1, 2), axis=1)
    ends, side = _unique_pairs(corners, count)
    order = np.argsort(side, kind="stable")
    shared = np.bincount(side, minlength=len(ends))
    first_side = order[np.concatenate([[0], np.cumsum(shared)[:-1]]).astype(int)] if len(ends) else order
    owned = np.zeros(targets, dtype=np.int64)
    np.bitwise_or.at(owned, first_side // 3, 1 << (SIDE_BIT + first_side % 3))

    around = np.concatenate([triangles.ravel(), wires.ravel(), points])
    dimension = np.repeat([2, 1, 0], [3 * faces, 2 * len(wires), len(points)])
    target = np.repeat(np.arange(targets), np.repeat([3, 2, 1], [faces, len(wires), len(points)]))
    corner = np.concatenate([np.tile([0, 1, 2], faces), np.tile([0, 1], len(wires)), np.zeros(len(points), int)])
    vertices, first_corner = np.unique(around, return_index=True)
    np.bitwise_or.at(owned, target[first_corner], 1 << (CORNER_BIT + corner[first_corner]))
    largest = np.zeros(count, dtype=np.int64)
    largest[vertices] = dimension[first_corner]

    several = 1 + np.bincount(ends.ravel(), np.repeat(shared - 1, 2), count).astype(np.int64)
    vertex_extra = [several - np.bincount(around[dimension >= least], minlength=count) for least in (2, 0)]
    sides = np.full((targets, 3), -1, dtype=np.int64)
    sides[:faces] = side.reshape(-1, 3)
    edges = np.sort(same[mesh.edges.reshape(-1, 2).astype(np.int64)], axis=1)
    edge_weight, faced = _edge_weights(mesh, triangles, edges, ends, side, shared)
    meets_wires = least_dimension(mesh) <= 1
    vertex_weight, vertex_share = _vertex_weights(edges, edge_weight, isolated, meets_wires, same)
    return {
        "vertex_weight": vertex_weight,
        "vertex_share": vertex_share,
        "edge_weight": edge_weight,
        "edge_faced": faced,
        "owned": owned,
        "sides": sides,
        "corners": np.concatenate([triangles, wires[:, [0, 1, 1]], points[:, None][:, [0, 0, 0]]]),
        "side_extra": shared - 1,
        "vertex_extra": np.stack(vertex_extra, axis=1),
        "dimension": largest,
    }


def _first_coincident(vertices: np.ndarray, isolated: np.ndarray) -> np.ndarray:
    """(v,) first of the vertices that coincide with each; isolated points are separate."""
    same = np.arange(len(vertices))
    kept = np.flatnonzero(~isolated)
    if len(kept):
        # adding zero converts -0.0 to 0.0
        _, first, place = np.unique(vertices[kept] + 0.0, axis=0, return_index=True, return_inverse=True)
        same[kept] = kept[first[place.reshape(-1)]]
    return same


def _unique_pairs(pairs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows (k, 2) of sorted pairs (m, 2) of numbers below `count`, and the index of each row among them."""
    keys, index = np.unique(pairs[:, 0] * max(count, 1) + pairs[:, 1], return_inverse=True)
    return np.stack([keys // max(count, 1), keys % max(count, 1)], axis=1), index.reshape(-1)


def _edge_weights(
    mesh: Mesh, triangles: np.ndarray, edges: np.ndarray, ends: np.ndarray, side: np.ndarray, shared: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (e,) of the edges (e, 2), and whether they belong to a triangle; the first of equal edges counts.

    With the unit directions t_1, t_2 from an edge into its two faces, ``|t_1 + t_2| = 2 sin(angle/2)``. The edge is
    convex if t_2 points to the inner side of the first face.
    """
    weight = np.ones(len(ends))
    two = np.flatnonzero(shared == 2)
    order = np.argsort(side, kind="stable")
    begin = np.concatenate([[0], np.cumsum(shared)])[two]
    inward, normals = [], []
    for place in order[begin], order[begin + 1]:
        # corners k, k + 1 and the corner opposite to side k, numbered as in `SIDES`
        a, b, c = (mesh.vertices[triangles[place // 3, (place % 3 + k) % 3]] for k in (0, 1, 2))
        along = unit(b - a)
        across = c - a
        inward.append(unit(across - np.einsum("mi,mi->m", across, along)[:, None] * along))
        normals.append(unit(np.cross(b - a, c - a)))
    bend = np.linalg.norm(inward[0] + inward[1], axis=1)
    value = np.clip((bend - FLAT) / (SHARP - FLAT), 0.0, 1.0)
    if mesh.closed and len(triangles):
        a, b, c = (mesh.vertices[triangles[:, k]] - mesh.vertices[0] for k in (0, 1, 2))
        outward = 1.0 if np.sum(a * np.cross(b, c)) >= 0.0 else -1.0
        value[outward * np.einsum("mi,mi->m", normals[0], inward[1]) >= 0.0] = 0.0
    weight[two] = value

    count = len(mesh.vertices)
    keys = edges[:, 0] * max(count, 1) + edges[:, 1]
    known = ends[:, 0] * max(count, 1) + ends[:, 1]
    place = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    faced = known[place] == keys if len(known) else np.zeros(len(keys), dtype=bool)
    result = np.where(faced, weight[place], 1.0) if len(known) else np.ones(len(keys))
    _, first = np.unique(keys, return_index=True)
    again = np.ones(len(keys), dtype=bool)
    again[first] = False
    return np.where(again, 0.0, result), faced


def _vertex_weights(
    edges: np.ndarray, weight: np.ndarray, isolated: np.ndarray, meets_wires: np.ndarray, same: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and shares (v,) of the vertices; coincident vertices except the first have the weight 0."""
    count = len(same)
    largest, total = np.zeros(count), np.zeros(count)
    np.maximum.at(largest, edges.ravel(), np.repeat(weight, 2))
    np.add.at(total, edges.ravel(), np.repeat(weight, 2))
    share = np.where(total > 0.0, largest / np.where(total > 0.0, total, 1.0), 1.0)
    share[meets_wires] = 0.0
    value = np.where(isolated, 1.0, np.where(same == np.arange(count), largest, 0.0))
    return value, share[same]
