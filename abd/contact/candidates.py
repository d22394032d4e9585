"""Broad phase: pairs of primitives of two bodies that can come close on a path.

A candidate is ``(pair, kind, a, b)``: pair is an index into `Pairs`, a and b are primitives of the two meshes:

    kind 0   vertex a of body i, target b of body j        (targets: `surfaces`)
    kind 1   vertex a of body j, target b of body i
    kind 2   edge a of body i, edge b of body j; neither within a flat face (`abd.contact.flat_edges`)
    kind 3   vertex a of body i, half-space j

This is the reference implementation. It compares the axis-aligned boxes of the primitives swept along the path, for all
body pairs whose boxes overlap. A point of an arc deviates from its chord by at most an eighth of the bound on its
second derivative. The box of both ends, expanded by that, therefore contains the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.contact.boxes import overlapping_boxes
from abd.contact.pairs import Pairs
from abd.contact.path import Path
from abd.contact.surfaces import Surfaces
from abd.model import Model
from abd.potentials.contact import Contacts, Stencil
from abd.tables import Table

VERTEX_TARGET, TARGET_VERTEX, EDGE_EDGE, VERTEX_PLANE = range(4)


@dataclass(frozen=True)
class Candidates(Table):
    """m candidates, sorted by (pair, kind, a, b); all (m,)."""

    pair: np.ndarray
    kind: np.ndarray
    a: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class _Boxes(Table):
    """Axis-aligned boxes: lower and upper corners (k, 3) [m]."""

    lower: np.ndarray
    upper: np.ndarray

    def around(self, index: np.ndarray) -> _Boxes:
        """Bounding boxes (k,) of the boxes index (k, c)."""
        return _Boxes(self.lower[index].min(axis=1), self.upper[index].max(axis=1))

    def hull(self) -> _Boxes:
        """Bounding box of all boxes as (1, 3) corners; inverted if there are none."""
        lower = self.lower.min(axis=0, keepdims=True, initial=np.inf)
        return _Boxes(lower, self.upper.max(axis=0, keepdims=True, initial=-np.inf))

    def grown(self, margin: float) -> _Boxes:
        return _Boxes(self.lower - margin, self.upper + margin)


def find_candidates(model: Model, surfaces: Surfaces, pairs: Pairs, path: Path, reach: float | np.ndarray) -> Candidates:
    """All primitive pairs whose swept boxes come within `reach` [m] of their separation on the path.

    With the activation distances as reach, scalar or (P,), the list contains every contact that is active on the path.
    It also contains every pair whose distance can reach its separation.
    """
    bend, ends = path.bend, path.samples(np.array([0.0, 1.0]))
    boxes = [_ends(surfaces, ends[:, b], b).grown(float(bend[b]) / 8.0) for b in range(len(bend))]
    margin = pairs.xi + reach
    half_space = surfaces.mesh[pairs.j] < 0
    rows = [np.zeros((0, 4), dtype=np.int64)]
    for k in np.flatnonzero(half_space | _body_boxes_overlap(boxes, pairs, margin)):
        i, j = int(pairs.i[k]), int(pairs.j[k])
        if half_space[k]:
            found = [_near_plane(boxes[i], model.bodies.plane[j], margin[k])]
        else:
            found = _near_mesh(surfaces, i, j, boxes[i].grown(margin[k]), boxes[j])
        rows += [np.column_stack([np.full(len(part), k), part]) for part in found]
    table = np.concatenate(rows)
    return Candidates(*table[np.lexsort(table.T[::-1])].T)


def _ends(surfaces: Surfaces, states: np.ndarray, body: int) -> _Boxes:
    """Boxes of a body's vertices in two states (2, 12)."""
    X = surfaces.vertices[surfaces.vertex_range(body)]
    ends = [q[:3] + X @ q[3:].reshape(3, 3).T for q in states]
    return _Boxes(np.minimum(*ends), np.maximum(*ends))


def _body_boxes_overlap(boxes: list[_Boxes], pairs: Pairs, margin: np.ndarray) -> np.ndarray:
    """(P,) whether the boxes of the two bodies of a pair come within its margin (P,) [m]."""
    hulls = _Boxes.joined(*(box.hull() for box in boxes))
    i, j = hulls[pairs.i], hulls[pairs.j]
    apart = np.maximum(i.lower - j.upper, j.lower - i.upper)
    return np.all(apart <= margin[:, None], axis=1)


def _near_plane(vertices: _Boxes, plane: np.ndarray, margin: float) -> np.ndarray:
    """(m, 3) rows (kind, a, 0) of the vertices whose boxes extend below the height `margin`."""
    lowest = np.where(plane[:3] > 0.0, vertices.lower, vertices.upper) @ plane[:3] - plane[3]
    a = np.flatnonzero(lowest <= margin)
    return np.column_stack([np.full(len(a), VERTEX_PLANE), a, np.zeros(len(a), dtype=np.int64)])


def _near_mesh(surfaces: Surfaces, i: int, j: int, vertices_i: _Boxes, vertices_j: _Boxes) -> list[np.ndarray]:
    """Rows (kind, a, b) of two bodies with meshes."""
    parts = []
    for kind, (v, vertices), (t, others) in (
        (VERTEX_TARGET, (i, vertices_i), (j, vertices_j)),
        (TARGET_VERTEX, (j, vertices_j), (i, vertices_i)),
    ):
        rows = surfaces.target_range(t)
        corners = surfaces.targets[rows] - surfaces.vertex_range(t).start
        dimension = surfaces.target_dimension[rows]
        least = surfaces.least[surfaces.vertex_range(v)]
        meet = _overlaps(vertices, others.around(corners))
        # two points are a candidate once, from the side of body i
        lowest = least if kind == VERTEX_TARGET else np.maximum(least, 1)
        meet = meet[dimension[meet[:, 1]] >= lowest[meet[:, 0]]]
        parts.append(np.column_stack([np.full(len(meet), kind), meet]))
    (mine_i, edges_i), (mine_j, edges_j) = (_search_edges(surfaces, body) for body in (i, j))
    meet = _overlaps(vertices_i.around(edges_i), vertices_j.around(edges_j))
    parts.append(np.column_stack([np.full(len(meet), EDGE_EDGE), mine_i[meet[:, 0]], mine_j[meet[:, 1]]]))
    return parts


def _search_edges(surfaces: Surfaces, body: int) -> tuple[np.ndarray, np.ndarray]:
    """(k,) edges of a body's mesh for the edge-edge search, and their ends (k, 2) in the mesh."""
    rows = surfaces.edge_range(body)
    mine = np.flatnonzero(surfaces.edge_meets[rows])
    return mine, surfaces.edges[rows][mine] - surfaces.vertex_range(body).start


def _overlaps(a: _Boxes, b: _Boxes) -> np.ndarray:
    """(m, 2) indices of overlapping boxes of a and b."""
    return np.column_stack(overlapping_boxes(a.lower, a.upper, b.lower, b.upper))


def contacts(model: Model, surfaces: Surfaces, pairs: Pairs, candidates: Candidates) -> Contacts:
    """Candidates as `Contacts`, for the contact and friction potentials and for CCD."""
    kind, pair = candidates.kind, candidates.pair
    i, j = pairs.i[pair], pairs.j[pair]
    flipped = kind == TARGET_VERTEX
    first, second = np.where(flipped, j, i), np.where(flipped, i, j)
    mesh_first, mesh_second = surfaces.mesh[first], surfaces.mesh[second]

    index = np.empty((len(candidates), 4), dtype=np.int64)
    plane = kind == VERTEX_PLANE
    index[plane] = (surfaces.vertex_start[mesh_first[plane]] + candidates.a[plane])[:, None]
    target = (kind == VERTEX_TARGET) | flipped
    index[target, 0] = surfaces.vertex_start[mesh_first[target]] + candidates.a[target]
    index[target, 1:] = surfaces.targets[surfaces.target_start[mesh_second[target]] + candidates.b[target]]
    edges = kind == EDGE_EDGE
    index[edges, :2] = surfaces.edges[surfaces.edge_start[mesh_first[edges]] + candidates.a[edges]]
    index[edges, 2:] = surfaces.edges[surfaces.edge_start[mesh_second[edges]] + candidates.b[edges]]

    stencils = np.array([Stencil.POINT_TRIANGLE, Stencil.POINT_TRIANGLE, Stencil.EDGE_EDGE, Stencil.POINT_PLANE])
    return Contacts(
        stencil=stencils[kind],
        first=first,
        second=second,
        rest=surfaces.vertices[index],
        plane=np.where(plane[:, None], model.bodies.plane[second], 0.0),
        xi=pairs.xi[pair],
        stiffness=pairs.stiffness[pair],
        mu=pairs.mu[pair],
        flipped=flipped,
    )
