"""The contact set in which every local minimum of distance counts once.

The plain sum over all primitive pairs counts a vertex over an edge twice, and over a corner of six triangles six times.
It also counts every edge that crosses an edge of a flat floor. Its forces depend on the triangulation. Here an item of
the candidate list stands for one or more *parts*: closest distances of features, with coefficients. The sum is
independent of the triangulation of a surface, and continuous when contact passes from a face to an edge to a corner.

A vertex v against a surface (improved max operator, Li et al. 2023, "Convergent Incremental Potential Contact")

    E_v = C_v [ sum over triangles t of b(v, t) - sum over edges e of (m_e - 1) b(v, e)
                + sum over corners u of x_u b(v, u) ]

with m_e the number of triangles at an edge, ``x_u = 1 - triangles at u + sum over its edges of (m_e - 1)``, and C_v the
weight of v (`topology`). If the closest point of a triangle is on its side e, both have the same distance. Collected by
the feature of the closest point, most terms cancel:

    inside of a face     1 if the closest point of the face is inside
    edge e               (triangles whose closest point is on e)  -  (m_e - 1) if that of e is inside
    corner u             (targets whose closest point is u)  -  sum of (m_e - 1) of edges whose closest point is u  +  x_u

Each triangle, edge and corner adds its number to one feature. If a feature is active, all of them are targets of v in the
list, or belong to one.

A tie, such as a vertex exactly over a flat edge, may have either result: the coefficients of features at one distance
always sum to 1. On an edge the inside of the first triangle is chosen, whose normal does not depend on the rounding of
the vertex. In a concave region two faces count and their common edge is subtracted; when the closest point leaves a
face, its contribution vanishes continuously.

Two corners of triangles, or two ends of codimensional edges, are vertex and target in both directions. Each direction
subtracts half of ``min(C_v, C_u) b(v, u)``, so that the pair counts once. Two boxes stacked flush count the corners of
their common face, as they do if one is shifted.

Two edges a, b with weights C_a, C_b

    E_ab = C_a C_b m(c) T,     T = b(a, b) product over the four ends k of (1 - l_k b_k / b(a, b))

with b_k the barrier of an end and the other edge. l_k = 1 if the other edge belongs to a triangle. The end is then a
vertex over a surface and counts above, so that T vanishes continuously as the crossing leaves the edge. Codimensional
edges are targets of the ends of other codimensional edges, with l_k = 1, but not of the corners of triangles. For these
``l_k = 1 - share`` of the end (`topology`), and the edges around it carry its contact together. Flat and concave edges
have weight 0.

All terms are functions of distances, so that forces are the exact gradient and conservative. The Hessian contains the
second derivatives of the barriers, without those of T. Terms with negative weight are attractive. As the crossing
approaches an end, T decreases with a curvature across the normal, which is as large as the stiffness along it. This
curvature is that of the distances, not of the barriers (`abd.potentials.contact`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from abd.contact.candidates import EDGE_EDGE, TARGET_VERTEX, VERTEX_TARGET, Candidates
from abd.contact.pairs import Pairs
from abd.contact.surfaces import Surfaces
from abd.contact.topology import CORNER_BIT, SIDE_BIT, Topology
from abd.potentials import mollifier
from abd.potentials.barrier import barrier
from abd.potentials.contact import Closest, ContactParameters, Contacts, Stencil, Weights, closest, thresholds
from cuda_kernels.shared.contact import TIE

INSIDE, SIDE, CORNER, CROSSING, END = range(5)
"""Role of a part: inside of a face, wire or half-space; side or corner of a target; edge pair, or an end of one."""
BITS = np.array([1, 2, 4])
"""Bits of the corners of a target."""
ACROSS = SIDE_BIT + np.array([1, 2, 0])
"""Bits of `Topology.owned` for the sides opposite to the corners."""
WHOLE = 7
"""Bits of all corners: the pattern inside a target."""


@dataclass(frozen=True)
class Minima:
    """Parts of a list of candidates.

    Attributes:
        contacts: (k,) distances; source: (k,) candidate of each; role: (k,) kind of part.
        weight: (k,) of the vertex, or of the two edges; share: (k,) l of an end.
        constant: (k,) term of the part's coefficient; number: (k,) term of the coefficient of the feature with its closest point:
            1 for a target, 1 - m for a side, x for a corner, 0 without features.
        group: (k,) vertex and pair of bodies of a part; features: (k, 8) numbers of the features with its closest point, by
            `BITS` of its corners with a positive weight; the last one is that of the part.
        first: (k, 3) whether a target owns the side opposite to a corner.
        crossing: (c, 5) parts of every edge pair: the pair, then its four ends.
    """

    contacts: Contacts
    source: np.ndarray
    role: np.ndarray
    weight: np.ndarray
    share: np.ndarray
    constant: np.ndarray
    number: np.ndarray
    group: np.ndarray
    features: np.ndarray
    first: np.ndarray
    crossing: np.ndarray

    def __len__(self) -> int:
        return len(self.contacts)

    def weights(self, q: np.ndarray, parameters: ContactParameters) -> Weights:
        """Weights of the parts with the given parameters, in the state q (n, 12)."""
        x = self.contacts.positions(q)
        near = closest(x, self.contacts)
        return self.combined(x, near, self.vertex_coefficients(near), parameters)

    def combined(self, x: np.ndarray, near: Closest, coefficients: np.ndarray, parameters: ContactParameters) -> Weights:
        """Weights of the parts at positions x (k, 4, 3) with the closest points `near` and `vertex_coefficients` (k,)."""
        force = coefficients.copy()
        b, _, _ = barrier(parameters.barrier, near.D, parameters.d_hat, self.contacts.xi)
        value = np.where(force != 0.0, force * b, 0.0)
        c = self.crossing
        force[c], T = self._edge_factors(near.w[c[:, 0]], b[c], self.share[c[:, 1:]])
        total = np.zeros(len(self))
        total[c[:, 0]] = T
        m = np.ones(len(self))
        m[c[:, 1:]] = mollifier.value(x[c[:, 0]], thresholds(self.contacts[c[:, 0]]))[:, None]
        value = np.where(self.role < CROSSING, value, np.where(self.role == CROSSING, total, 0.0))
        counts = self.weight > 0.0
        value = np.where(counts, self.weight * np.where(counts, value, 0.0), 0.0)
        item = np.arange(len(self))
        item[c[:, 1:]] = c[:, :1]
        return Weights(self.weight * m * force, value, item)

    def energy(self, q: np.ndarray, parameters: ContactParameters, count: int) -> np.ndarray:
        """(count,) energies [J] of the candidates in the state q (n, 12); inf at or below the separation."""
        weights, x = self.weights(q, parameters), self.contacts.positions(q)
        own = mollifier.value(x, thresholds(self.contacts))
        stiffness = parameters.kappa * self.contacts.stiffness
        total = np.zeros(count)
        finite = np.isfinite(weights.value)
        np.add.at(total, self.source[finite], (stiffness * own * np.where(finite, weights.value, 0.0))[finite])
        total[self.source[~finite]] = np.inf
        first = (self.role == INSIDE) | (self.role == CROSSING)
        D = closest(x[first], self.contacts[first]).D
        total[self.source[first][self.contacts.xi[first] ** 2 >= D]] = np.inf
        return total

    def vertex_coefficients(self, near: Closest) -> np.ndarray:
        """(k,) coefficients of faces, sides and corners from the closest points of all parts; 0 for edge pairs."""
        weights = -near.w[:, 1:]
        pattern = (weights > TIE) @ BITS
        tied = (weights > 0.0) & (weights <= TIE)
        inside = np.all(weights > 0.0, axis=1) & (np.sum(tied, axis=1) == np.any(tied & self.first, axis=1))
        pattern[inside] = WHOLE
        chosen = np.stack([self.features[np.arange(len(self)), pattern], self.features[:, WHOLE]])
        keys, place = np.unique(self.group * (1 + self.features.max(initial=0)) + chosen, return_inverse=True)
        of_closest, own = place.reshape(chosen.shape)
        return self.constant + np.bincount(of_closest, self.number, len(keys))[own]

    @staticmethod
    def _edge_factors(w: np.ndarray, b: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (c, 5) of T by the barriers, and T (c,), of edge pairs.

        If the closest point of an edge is its end, the barrier of that end is the pair's, and its factor the constant 1
        - l.

        Args:
            w: (c, 4) signed weights; b: (c, 5) barriers; share: (c, 4) l of the ends.
        """
        b = np.where(np.isfinite(b), b, 0.0)
        pair = b[:, 0]
        at = np.abs(w) == 1.0
        ratio = np.minimum(b[:, 1:] / np.where(pair > 0.0, pair, 1.0)[:, None], 1.0)
        ratio = np.where(at, 1.0, ratio)
        factor = 1.0 - share * ratio
        others = np.stack([np.prod(np.delete(factor, k, axis=1), axis=1) for k in range(4)], axis=1)
        whole = np.prod(factor, axis=1)
        of_end = np.where(at, 0.0, -share * others)
        of_pair = whole - np.sum(of_end * ratio, axis=1)
        active = pair > 0.0
        force = np.where(active[:, None], np.column_stack([of_pair, of_end]), 0.0)
        return force, np.where(active, pair * whole, 0.0)


def find_minima(surfaces: Surfaces, topology: Topology, pairs: Pairs, found: Candidates, listed: Contacts) -> Minima:
    """Parts of the candidates `found`, which are consecutive for every vertex and contain all targets within the activation;
    `listed` are these candidates as contacts."""
    has_target = np.isin(found.kind, (VERTEX_TARGET, TARGET_VERTEX))
    of_vertices, of_edges = np.flatnonzero(has_target), np.flatnonzero(found.kind == EDGE_EDGE)
    of_planes = np.flatnonzero(~has_target & (found.kind != EDGE_EDGE))
    rows = [_Rows(listed[of_planes], of_planes, INSIDE, constant=1.0)]

    vertices = np.stack([found.pair, found.kind, found.a])[:, of_vertices]
    group = np.cumsum(np.any(np.diff(vertices, axis=1, prepend=-1) != 0, axis=0))
    flipped, pair = found.kind[of_vertices] == TARGET_VERTEX, found.pair[of_vertices]
    i, j = pairs.i[pair], pairs.j[pair]
    v = surfaces.vertex_start[surfaces.mesh[np.where(flipped, j, i)]] + found.a[of_vertices]
    t = surfaces.target_start[surfaces.mesh[np.where(flipped, i, j)]] + found.b[of_vertices]
    C, is_wide = topology.vertex_weight[v], (surfaces.least[v] <= 1).astype(int)
    inside = 3 * t
    sides = np.where(topology.sides[t] >= 0, 3 * topology.sides[t] + 1, inside[:, None])
    first = (topology.owned[t][:, None] >> ACROSS) & 1 > 0
    features = _features(inside, sides, topology.corners[t])
    rows.append(_Rows(listed[of_vertices], of_vertices, INSIDE, C, number=1.0, group=group, features=features, first=first))
    for k in range(6 if len(t) else 0):
        mine = np.flatnonzero((topology.owned[t] >> k & 1 > 0) & (C > 0.0))
        # the ends of a side, or three times the same corner
        ends = topology.corners[t[mine]][:, [k % 3, (k + 1) % 3, (k + 1) % 3] if k < CORNER_BIT else [k % 3] * 3]
        against = _vertex_contacts(surfaces, listed[of_vertices[mine]], v[mine], ends)
        if k < CORNER_BIT:
            side = topology.sides[t[mine], k]
            own, role, number, constant = 3 * side + 1, SIDE, -topology.side_extra[side], 0.0
        else:
            corner = ends[:, 0]
            own, role, number = 3 * corner + 2, CORNER, topology.vertex_extra[corner, is_wide[mine]]
            constant = -0.5 * _mutual_corners(surfaces, topology, v[mine], corner)
        of_part = {"group": group[mine], "features": _features(own, np.tile(own[:, None], 3), ends)}
        rows.append(_Rows(against, of_vertices[mine], role, C[mine], constant=constant, number=number, **of_part))

    a = surfaces.edge_start[surfaces.mesh[pairs.i[found.pair[of_edges]]]] + found.a[of_edges]
    b = surfaces.edge_start[surfaces.mesh[pairs.j[found.pair[of_edges]]]] + found.b[of_edges]
    weight = topology.edge_weight[a] * topology.edge_weight[b]
    flat = weight == 0.0
    rows.append(_Rows(listed[of_edges[flat]], of_edges[flat], INSIDE, weight[flat]))
    of_edges, a, b, weight = of_edges[~flat], a[~flat], b[~flat], weight[~flat]
    rows.append(_Rows(listed[of_edges], of_edges, CROSSING, weight))
    on_first = listed[of_edges]
    on_second = replace(on_first, first=on_first.second, second=on_first.first, flipped=~on_first.flipped)
    for base, edge, other in ((on_first, a, b), (on_second, b, a)):
        for end in surfaces.edges[edge].T:
            against = _vertex_contacts(surfaces, base, end, surfaces.edges[other][:, [0, 1, 1]])
            share = np.where(topology.edge_faced[other], 1.0, 1.0 - topology.vertex_share[end])
            rows.append(_Rows(against, of_edges, END, weight, share=share))
    starts = np.cumsum([0] + [len(part.source) for part in rows])
    return Minima(
        contacts=Contacts.joined(*(part.contacts for part in rows)),
        **{field.name: np.concatenate([part.column(field.name) for part in rows]) for field in fields(_Rows)[1:]},
        crossing=starts[-6:-1][None, :] + np.arange(len(of_edges))[:, None],
    )


@dataclass(frozen=True)
class _Rows:
    """Parts of one role: the columns of `Minima`, or values common to all."""

    contacts: Contacts
    source: np.ndarray
    role: int
    weight: np.ndarray | float = 1.0
    share: np.ndarray | float = 0.0
    constant: np.ndarray | float = 0.0
    number: np.ndarray | float = 0.0
    group: np.ndarray | int = 0
    features: np.ndarray | int = 0
    first: np.ndarray | bool = False

    def column(self, name: str) -> np.ndarray:
        width = {"features": (WHOLE + 1,), "first": (3,)}.get(name, ())
        return np.broadcast_to(getattr(self, name), (len(self.source), *width))


def _features(own: np.ndarray, sides: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """`Minima.features` of parts with the numbers `own` (k,) and `sides` (k, 3), and vertices at their corners (k, 3)."""
    (s, t, u), (a, b, c) = sides.T, (3 * corners + 2).T
    return np.stack([own, a, b, s, c, u, t, own], axis=1)


def _vertex_contacts(surfaces: Surfaces, base: Contacts, vertex: np.ndarray, corners: np.ndarray) -> Contacts:
    """Contacts of vertices (m,) of the first bodies of `base` with features of corners (m, 3) of the second bodies."""
    stencil = np.full(len(base), Stencil.POINT_TRIANGLE)
    rest = surfaces.vertices[np.column_stack([vertex, corners])]
    return replace(base, stencil=stencil, rest=rest)


def _mutual_corners(surfaces: Surfaces, topology: Topology, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(m,) smaller weight, relative to that of v, of corners v, u that are targets of each other; else 0."""
    # point-point pairs are candidates once
    both = topology.dimension[[v, u]] >= np.maximum(surfaces.least[[u, v]], 1)
    weight = topology.vertex_weight
    return np.where(both.all(axis=0), np.minimum(1.0, weight[u] / np.where(weight[v] > 0.0, weight[v], 1.0)), 0.0)
