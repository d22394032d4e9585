"""The contact set in which every local minimum of distance counts once.

The plain sum over all primitive pairs counts a vertex over an edge twice and over a corner of six triangles six times,
and every edge that crosses an edge of a flat floor. Its forces follow the triangulation. Here an item of the candidate
list stands for one or more *parts*, closest distances of features, with coefficients that make the sum independent of
how a surface is cut into triangles, and continuous wherever contact passes from a face to an edge to a corner.

A vertex v against a surface (improved max operator, Li et al. 2023, "Convergent Incremental Potential Contact")

    E_v = C_v [ sum over triangles t of b(v, t) - sum over edges e of (m_e - 1) b(v, e) + sum over corners u of x_u b(v, u) ]

with m_e the triangles around an edge, ``x_u = 1 - triangles around u + sum over its edges of (m_e - 1)``, and C_v the
weight of v (`topology`). A triangle whose closest point lies on its side e is the same distance as e. Collected by the
feature on which the closest point lies, most of the sum cancels before anything is added:

    inside of a face     1 where the closest point of the face lies inside
    edge e               (triangles whose closest point lies on e)  -  (m_e - 1) where that of e lies inside
    corner u             (targets whose closest point is u)  -  sum of (m_e - 1) of edges whose closest point is u  +  x_u

A tie, such as a vertex exactly over a flat edge, may be decided either way: the coefficients of features at one distance
always add up to 1. On an edge it goes to the inside of the first triangle around, whose normal does not feel by how little
the vertex is beside the edge; all else counts as if the vertex were exactly there. Over a valley two faces count with the
edge between them taken off, and as the closest point leaves one of them its share fades continuously.

Two corners of triangles, or two ends of codimensional edges, meet each other from both sides. Either side gives back half
of ``min(C_v, C_u) b(v, u)``, so that tip to tip counts once, and two boxes that stand flush on one another count the
corners of the face between them, as they do when one is shifted.

Two edges a, b with weights C_a, C_b

    E_ab = C_a C_b m(c) T,     T = b(a, b) product over the four ends k of (1 - l_k b_k / b(a, b))

with b_k the barrier of the end against the other edge. l_k = 1 where the other edge belongs to a triangle: the end is a
vertex against a surface there and counts above, so that T fades to 0 as the crossing leaves the edge, and the vertex
carries on. Codimensional edges are targets of the ends of their like, with l_k = 1, but not of the corners of triangles;
there ``l_k = 1 - share`` of the end (`topology`), and the edges around it carry its contact together. Flat and concave
edges have weight 0.

All of it is a function of distances, so that forces are the exact gradient: nothing is frozen and no energy made. The
Hessian takes the second derivatives of the barriers, and leaves out those of T. What takes away from others pulls: as the
crossing nears an end, T loses to it by a curvature across the normal that is as large as the stiffness along it, and not
of the barriers but of the distances (`abd.potentials.contact`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from abd.contact.candidates import EDGE_EDGE, TARGET_VERTEX, VERTEX_TARGET, Candidates
from abd.contact.pairs import Pairs
from abd.contact.surfaces import Surfaces
from abd.contact.topology import CORNER_BIT, SIDE_BIT, Topology
from abd.potentials import distance, mollifier
from abd.potentials.barrier import barrier
from abd.potentials.contact import ContactParameters, Contacts, Stencil, Weights, closest, thresholds
from abd.potentials.distance import TIE

INSIDE, SIDE, CORNER, CROSSING, END = range(5)
"""What a part is: inside of a face, wire or half-space; side or corner of a target; two edges, or an end of one."""
BITS = np.array([1, 2, 4])
"""Of the corners of a target."""
ACROSS = SIDE_BIT + np.array([1, 2, 0])
"""Bits of `Topology.owned` for the sides across of the corners."""


@dataclass(frozen=True)
class Queries:
    """Where the closest points of targets lie, and which parts they count for.

    Attributes:
        contacts: vertices against targets; part: the part each counts for; pattern: where, as bits of the target's corners
            with a positive weight, the closest point has to lie; first: (m, 3) whether the target speaks for the side
            across of a corner.
        spokes: vertices against the sides around a corner u, with their ends in order, so that they are the sides' own to
            the bit; spoke_part, spoke_extra: the part of u, and m - 1; spoke_rises: u is the first end.
    """

    contacts: Contacts
    part: np.ndarray
    pattern: np.ndarray
    first: np.ndarray
    spokes: Contacts
    spoke_part: np.ndarray
    spoke_extra: np.ndarray
    spoke_rises: np.ndarray


@dataclass(frozen=True)
class Minima:
    """The parts of a list of candidates.

    Attributes:
        contacts: (k,) distances; source: (k,) the candidate of each; role: (k,) what it is.
        constant: (k,) what the coefficient has on its own; extra: (k,) m - 1 of a side.
        weight: (k,) of the vertex, or of the two edges; share: (k,) l of an end.
        queries: what else the coefficients depend on.
        crossing: (c, 5) the parts of every pair of edges: the pair, then its four ends.
    """

    contacts: Contacts
    source: np.ndarray
    role: np.ndarray
    constant: np.ndarray
    extra: np.ndarray
    weight: np.ndarray
    share: np.ndarray
    queries: Queries
    crossing: np.ndarray

    def __len__(self) -> int:
        return len(self.contacts)

    def weights(self, q: np.ndarray, parameters: ContactParameters) -> Weights:
        """Weights of the parts, whose law the parameters are, in the state q (n, 12)."""
        x = self.contacts.positions(q)
        near = closest(x, self.contacts)
        b, _, _ = barrier(parameters.barrier, near.D, parameters.d_hat, self.contacts.xi)
        force = self._of_vertices(q, x)
        value = np.where(force != 0.0, force * b, 0.0)
        c = self.crossing
        force[c], T = self._of_edges(near.w[c[:, 0]], b[c], self.share[c[:, 1:]])
        total = np.zeros(len(self))
        total[c[:, 0]] = T
        cross = mollifier.cross_squared(x[c[:, 0]])[0]
        threshold = thresholds(self.contacts[c[:, 0]])
        m = np.ones(len(self))
        m[c[:, 1:]] = mollifier.mollifier(cross, threshold)[0][:, None]
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

    def _of_vertices(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(k,) coefficients of faces, sides and corners; those of edge pairs are 0."""
        out, asked = self.constant.copy(), self.queries
        _, weights, _ = distance.point_triangle(*asked.contacts.positions(q).swapaxes(0, 1))
        rest = asked.contacts.rest
        # corners of wires and points that are one count as the first of them
        for k, earlier in ((2, 1), (1, 0), (2, 0)):
            one = np.all(rest[:, 1 + k] == rest[:, 1 + earlier], axis=1)
            weights[one, earlier] += weights[one, k]
            weights[one, k] = 0.0
        pattern = (weights > TIE) @ BITS
        tied = (weights > 0.0) & (weights <= TIE)
        inside = np.all(weights > 0.0, axis=1) & (np.sum(tied, axis=1) == np.any(tied & asked.first, axis=1))
        pattern[inside] = np.sum(BITS)
        np.add.at(out, asked.part[pattern == asked.pattern], 1.0)
        side = np.flatnonzero(self.role == SIDE)
        t = distance.edge_parameter(x[side, 0], x[side, 1], x[side, 2])
        out[side] -= self.extra[side] * ((t > TIE) & (t < 1.0 - TIE))
        p, low, high, _ = asked.spokes.positions(q).swapaxes(0, 1)
        t = distance.edge_parameter(p, low, high)
        counts = np.where(asked.spoke_rises, t > TIE, t < 1.0 - TIE)
        np.add.at(out, asked.spoke_part, asked.spoke_extra * counts)
        return out

    @staticmethod
    def _of_edges(w: np.ndarray, b: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of pairs with signed weights w (c, 4), barriers b (c, 5) and shares (c, 4) of the ends: derivatives of T by the
        barriers (c, 5), and T (c,).

        Where the closest point of an edge is its end, that end's barrier is the pair's own, and its factor the constant
        1 - l.
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
    """The parts of candidates `found`, which `listed` are as contacts."""
    of_vertices = np.flatnonzero((found.kind == VERTEX_TARGET) | (found.kind == TARGET_VERTEX))
    of_edges = np.flatnonzero(found.kind == EDGE_EDGE)
    of_planes = np.flatnonzero((found.kind != EDGE_EDGE) & ~np.isin(found.kind, (VERTEX_TARGET, TARGET_VERTEX)))
    bodies = np.where(found.kind == TARGET_VERTEX, pairs.j[found.pair], pairs.i[found.pair])
    others = np.where(found.kind == TARGET_VERTEX, pairs.i[found.pair], pairs.j[found.pair])
    meshes, other_meshes = surfaces.mesh[bodies], surfaces.mesh[others]
    vertex = surfaces.vertex_start[meshes] + found.a
    rows: list[_Rows] = [
        _Rows(listed[of_planes], of_planes, np.full(len(of_planes), INSIDE), constant=np.ones(len(of_planes)))
    ]

    target = surfaces.target_start[np.maximum(other_meshes, 0)] + np.where(np.isin(found.kind, (0, 1)), found.b, 0)
    C = topology.vertex_weight[np.where(found.kind == EDGE_EDGE, 0, vertex)] if len(topology.vertex_weight) else vertex
    v, t = vertex[of_vertices], target[of_vertices]
    inside = np.array([8, 3, 7])[surfaces.target_dimension[t]]
    rows.append(_Rows(listed[of_vertices], of_vertices, np.full(len(of_vertices), INSIDE), weight=C[of_vertices]))
    rows[-1].ask(np.arange(len(of_vertices)), t, inside)
    for k in range(3):
        mine = np.flatnonzero((topology.owned[t] & (1 << (SIDE_BIT + k)) > 0) & (C[of_vertices] > 0.0))
        side = topology.sides[t[mine], k]
        ends = topology.side_ends[side]
        part = _Rows(
            _against(surfaces, listed[of_vertices[mine]], v[mine], ends[:, [0, 1, 1]]),
            of_vertices[mine],
            np.full(len(mine), SIDE),
            weight=C[of_vertices[mine]],
            extra=np.diff(topology.side_start)[side] - 1.0,
        )
        index, row = _ranges(topology.side_start, side)
        part.ask(row, topology.side_target[index], topology.side_pattern[index])
        rows.append(part)
    for k in range(3):
        mine = np.flatnonzero((topology.owned[t] & (1 << (CORNER_BIT + k)) > 0) & (C[of_vertices] > 0.0))
        corner = topology.corners[t[mine], k]
        part = _Rows(
            _against(surfaces, listed[of_vertices[mine]], v[mine], np.repeat(corner[:, None], 3, axis=1)),
            of_vertices[mine],
            np.full(len(mine), CORNER),
            weight=C[of_vertices[mine]],
        )
        index, row = _ranges(topology.ring_start, corner)
        # wires are targets of points and of the ends of wires alone
        meant = surfaces.target_dimension[topology.ring_target[index]] >= surfaces.least[v[mine]][row]
        index, row = index[meant], row[meant]
        part.constant = 1.0 - np.bincount(row, minlength=len(mine)) - 0.5 * _tips(surfaces, topology, v[mine], corner)
        part.ask(row, topology.ring_target[index], topology.ring_pattern[index])
        index, row = _ranges(topology.spoke_start, corner)
        part.spokes = corner[row], topology.spoke_end[index], row, topology.spoke_extra[index]
        rows.append(part)

    a = surfaces.edge_start[surfaces.mesh[pairs.i[found.pair[of_edges]]]] + found.a[of_edges]
    b = surfaces.edge_start[surfaces.mesh[pairs.j[found.pair[of_edges]]]] + found.b[of_edges]
    weight = topology.edge_weight[a] * topology.edge_weight[b]
    flat = weight == 0.0
    rows.append(_Rows(listed[of_edges[flat]], of_edges[flat], np.full(flat.sum(), INSIDE), weight=weight[flat]))
    of_edges, a, b, weight = of_edges[~flat], a[~flat], b[~flat], weight[~flat]
    rows.append(_Rows(listed[of_edges], of_edges, np.full(len(of_edges), CROSSING), weight=weight))
    ends_a, ends_b = surfaces.edges[a], surfaces.edges[b]
    for k in range(4):
        point = ends_a[:, k] if k < 2 else ends_b[:, k - 2]
        across, faced = (ends_b, topology.edge_faced[b]) if k < 2 else (ends_a, topology.edge_faced[a])
        base = listed[of_edges]
        if k >= 2:
            base = _changed(base, first=base.second, second=base.first, flipped=~base.flipped)
        share = np.where(faced, 1.0, 1.0 - topology.vertex_share[point])
        rows.append(
            _Rows(
                _against(surfaces, base, point, across[:, [0, 1, 1]]),
                of_edges,
                np.full(len(of_edges), END),
                weight=weight,
                share=share,
            )
        )
    return _joined(surfaces, topology, rows, len(of_edges))


class _Rows:
    """Parts of one sort, with what they ask: rows among themselves, targets and patterns."""

    def __init__(self, contacts: Contacts, source: np.ndarray, role: np.ndarray, **given: np.ndarray):
        count = len(source)
        self.contacts, self.source, self.role = contacts, source, role
        self.constant = given.get("constant", np.zeros(count))
        self.extra, self.share = given.get("extra", np.zeros(count)), given.get("share", np.zeros(count))
        self.weight = given.get("weight", np.ones(count))
        nothing = np.zeros(0, dtype=np.int64)
        self.asked = nothing, nothing, nothing
        self.spokes = nothing, nothing, nothing, nothing

    def ask(self, row: np.ndarray, target: np.ndarray, pattern: np.ndarray) -> None:
        """Count 1 for a row where the closest point of a target has a pattern."""
        self.asked = row, target, pattern


def _joined(surfaces: Surfaces, topology: Topology, rows: list[_Rows], crossings: int) -> Minima:
    starts = np.cumsum([0] + [len(part.source) for part in rows])
    queries, spokes = [], []
    for part, start in zip(rows, starts, strict=False):
        row, target, pattern = part.asked
        base = part.contacts[row]
        first = (topology.owned[target][:, None] >> ACROSS) & 1 > 0
        queries.append((_retargeted(surfaces, base, surfaces.targets[target]), start + row, pattern, first))
        u, w, row, extra = part.spokes
        low, high = np.minimum(u, w), np.maximum(u, w)
        against = _retargeted(surfaces, part.contacts[row], np.stack([low, high, high], axis=1))
        spokes.append((against, start + row, extra, u == low))

    def all_of(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in rows])

    return Minima(
        contacts=_stacked([part.contacts for part in rows]),
        **{name: all_of(name) for name in ("source", "role", "constant", "extra", "weight", "share")},
        queries=Queries(
            _stacked([part[0] for part in queries]),
            *(np.concatenate([part[k] for part in queries]) for k in (1, 2, 3)),
            _stacked([part[0] for part in spokes]),
            *(np.concatenate([part[k] for part in spokes]) for k in (1, 2, 3)),
        ),
        crossing=starts[-6:-1][None, :] + np.arange(crossings)[:, None],
    )


def _against(surfaces: Surfaces, base: Contacts, vertex: np.ndarray, corners: np.ndarray) -> Contacts:
    """Vertices (m,) of the first bodies of `base` against the feature with the corners (m, 3) of the second ones."""
    stencil = np.full(len(base), Stencil.POINT_TRIANGLE)
    rest = surfaces.vertices[np.column_stack([vertex, corners])]
    return _changed(base, stencil=stencil, rest=rest)


def _retargeted(surfaces: Surfaces, base: Contacts, corners: np.ndarray) -> Contacts:
    """The first points of `base` against other features of the second bodies."""
    rest = np.concatenate([base.rest[:, :1], surfaces.vertices[corners]], axis=1)
    return _changed(base, rest=rest)


def _tips(surfaces: Surfaces, topology: Topology, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(m,) the smaller weight over that of v of corners v, u which meet each other from both sides; else 0."""
    both = np.ones(len(v), dtype=bool)
    for corner, other in ((v, u), (u, v)):
        first = np.minimum(topology.ring_start[corner], max(len(topology.ring_target) - 1, 0))
        alone = topology.ring_start[corner] == topology.ring_start[corner + 1]
        # points meet once
        both &= ~alone & (surfaces.target_dimension[topology.ring_target[first]] >= np.maximum(surfaces.least[other], 1))
    weight = topology.vertex_weight
    return np.where(both, np.minimum(1.0, weight[u] / np.where(weight[v] > 0.0, weight[v], 1.0)), 0.0)


def _ranges(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices start[r] .. start[r + 1] of all rows one after the other, and the place in `rows` of each."""
    count = start[rows + 1] - start[rows]
    row = np.repeat(np.arange(len(rows)), count)
    index = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + start[rows][row]
    return index.astype(np.int64), row


def _stacked(parts: list[Contacts]) -> Contacts:
    return Contacts(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Contacts)))


def _changed(base: Contacts, **values: np.ndarray) -> Contacts:
    return Contacts(*(values.get(field.name, getattr(base, field.name)) for field in fields(Contacts)))
