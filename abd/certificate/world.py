"""Bodies of one world in `ipctk`: intersections, close primitives, and the smallest gap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from abd.certificate.exact import segment_meets_triangle
from abd.certificate.scene import Scene
from abd.optional import required

ipctk = required("ipctk", "certify", "ipctk", "a certificate")

FACE_VERTEX, EDGE_EDGE, EDGE_VERTEX, VERTEX_VERTEX = (
    kind(0, 0)
    for kind in (ipctk.FaceVertexCandidate, ipctk.EdgeEdgeCandidate, ipctk.EdgeVertexCandidate, ipctk.VertexVertexCandidate)
)
"""Functions of pairs of primitives, of the positions of their vertices; the vertex comes first."""
Close = Iterator[tuple[object, np.ndarray, np.ndarray]]
"""Pairs of primitives of a kind: its functions, and the vertices (k, a) and (k, b) of the first and second primitives."""


class Part(ABC):
    """Bodies of a world whose surfaces are compared, those of a mask (n,), with vertices, edges and faces numbered from 0."""

    def __init__(self, scene: Scene, members: np.ndarray):
        inside = members[scene.owner]
        number = np.cumsum(inside) - 1
        self.scene, self.vertices, self.owner = scene, np.flatnonzero(inside), scene.owner[inside]
        edges, faces = (number[items[inside[items[:, 0]]]] if len(items) else items for items in (scene.edges, scene.faces))
        self.edges, self.faces = (np.asfortranarray(items, dtype=np.int32) for items in (edges, faces))
        self.xi = 2.0 * scene.radius[members].max(initial=0.0) + scene.minimum_separation

    def place(self, positions: np.ndarray) -> np.ndarray:
        """Return the positions of the part's vertices, from those of all vertices (v, 3)."""
        return np.asfortranarray(positions[self.vertices])

    def uncertain(self, close: Close, x: np.ndarray, y: np.ndarray, away: np.ndarray) -> Iterator[tuple]:
        """Yield the pairs of primitives that neither boxes nor planes prove farther apart than their separation on the chords
        from x to y (v, 3).

        Args:
            away: (n,) distance by which the separations of a body exceed its radius [m].

        Yields:
            (functions of the kind, vertices (m, a + b), separations (m,) [m], bodies (m, 2)).
        """
        scene = self.scene
        for kind, first, second in close:
            i, j = self.owner[first[:, 0]], self.owner[second[:, 0]]
            least = scene.radius[i] + scene.radius[j] + scene.minimum_separation + away[i] + away[j]
            (low, high), (other_low, other_high) = _boxes(first, x, y), _boxes(second, x, y)
            near = np.linalg.norm(np.maximum(0.0, np.maximum(low - other_high, other_low - high)), axis=1) <= least
            near[near] = scene.may_touch(i[near], j[near])
            near[near] = ~_separated(first[near], second[near], x, y, least[near])
            if near.any():
                yield kind, np.concatenate([first, second], axis=1)[near], least[near], np.stack([i, j], axis=1)[near]

    def smallest_gap(self, placed: np.ndarray) -> tuple[float, tuple[int, int] | None]:
        """Smallest distance less radii and minimum separation [m] of pairs within d_hat; the pair if it is <= 0."""
        smallest, found = np.inf, None
        reach = np.full(len(self.scene.names), 0.5 * self.scene.d_hat)
        for kind, ids, least, pairs in self.uncertain(self.close(placed, placed, self.scene.d_hat), placed, placed, reach):
            distances = np.sqrt([kind.compute_distance(corners) for corners in placed[ids].reshape(len(ids), -1)])
            gaps = distances - least + self.scene.d_hat
            k = int(np.argmin(gaps))
            if gaps[k] < min(smallest, self.scene.d_hat):
                smallest, found = float(gaps[k]), (int(pairs[k].min()), int(pairs[k].max()))
        return smallest, found if smallest <= 0.0 else None

    @abstractmethod
    def close(self, x: np.ndarray, y: np.ndarray, away: float, ccd=None) -> Close:
        """Yield pairs of primitives that may be closer than their radii plus `away` [m] on the chords from x to y (v, 3).

        ccd: narrow phase of ipctk; none are yielded if it proves at once that all pairs stay farther apart."""


class Alike(Part):
    """Bodies of similar radii, as one collision mesh of ipctk, built once."""

    def __init__(self, scene: Scene, members: np.ndarray):
        super().__init__(scene, members)
        # vertices of equal labels are not compared: bodies of one group, or two bodies connected by a joint
        count = len(scene.names)
        labels = [np.where(scene.group >= 0, count + scene.group, np.arange(count))]
        for first, second in disjoint_sets(scene.joined_pairs):
            labels.append(np.arange(count))
            labels[-1][second] = first
        self.filter = ipctk.make_static_obstacle_filter(int(scene.dynamic[self.owner].sum()))
        for label in labels:
            self.filter = self.filter & ipctk.make_vertex_patches_filter(label[self.owner].astype(np.int32))
        self.mesh = ipctk.CollisionMesh(np.asfortranarray(scene.rest[self.vertices]), self.edges, self.faces)
        # ipctk 1.6 applies a filter to isolated points by wrong indices, and so loses pairs with edges
        has_points = self.mesh.num_codim_vertices > 0
        if not has_points:
            self.mesh.can_collide = self.filter
        # all exempt pairs are filtered and radii are zero: the functions of ipctk for a whole mesh suffice
        self.plain = self.xi == 0.0 and scene.enabled.all() and not has_points

    def intersections(self, placed: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of bodies with intersecting surfaces, each once."""
        if not ipctk.has_intersections(self.mesh, placed):
            return []
        # find intersecting pairs by the search of has_intersections, with its box margin
        margin = 1e-6 * np.linalg.norm(np.ptp(placed, axis=0))
        search = ipctk.LBVH()
        search.can_vertices_collide = self.filter
        search.build(placed, self.edges, self.faces, margin)
        candidates = search.detect_edge_face_candidates()
        pairs = np.array([(item.edge_id, item.face_id) for item in candidates], dtype=int).reshape(-1, 2)
        first, second = self.owner[self.edges[pairs[:, 0], 0]], self.owner[self.faces[pairs[:, 1], 0]]
        allowed = self.scene.may_touch(first, second)
        found: set[tuple[int, int]] = set()
        for (edge, face), a, b in zip(pairs[allowed], first[allowed], second[allowed], strict=True):
            key = (int(min(a, b)), int(max(a, b)))
            if key not in found:
                points = (*placed[self.edges[edge]], *placed[self.faces[face]])
                if ipctk.is_edge_intersecting_triangle(*points) and segment_meets_triangle(*points):
                    found.add(key)
        return sorted(found)

    def smallest_gap(self, placed: np.ndarray) -> tuple[float, tuple[int, int] | None]:
        if not self.plain:
            return super().smallest_gap(placed)
        collisions = ipctk.NormalCollisions()
        collisions.build(self.mesh, placed, self.scene.d_hat)
        if len(collisions) == 0:
            return np.inf, None
        distance = float(np.sqrt(collisions.compute_minimum_distance(self.mesh, placed)))
        return (distance, None) if distance > 0.0 else super().smallest_gap(placed)

    def close(self, x: np.ndarray, y: np.ndarray, away: float, ccd=None) -> Close:
        near = ipctk.Candidates()
        near.build(self.mesh, x, y, 0.5 * (self.xi + away) * 1.01)
        if self.plain and ccd is not None and near.is_step_collision_free(self.mesh, x, y, away, ccd):
            return
        vertices = np.arange(len(self.owner))[:, None]
        kinds = (
            (FACE_VERTEX, near.fv_candidates, "vertex_id", vertices, "face_id", self.faces),
            (EDGE_EDGE, near.ee_candidates, "edge0_id", self.edges, "edge1_id", self.edges),
            (EDGE_VERTEX, near.ev_candidates, "vertex_id", vertices, "edge_id", self.edges),
            (VERTEX_VERTEX, near.vv_candidates, "vertex0_id", vertices, "vertex1_id", vertices),
        )
        for kind, candidates, one, firsts, other, seconds in kinds:
            if len(candidates):
                sides = ((name, items) for name, items in ((one, firsts), (other, seconds)))
                yield kind, *(items[[getattr(each, name) for each in candidates]] for name, items in sides)


class Mixed(Part):
    """Bodies with a radius, `thick` (n,) bool, and all thinner bodies, which are compared with each other.

    ipctk inflates all primitives by one radius, so that it would compare most of the thin ones."""

    def __init__(self, scene: Scene, thick: np.ndarray, thin: np.ndarray):
        super().__init__(scene, thick | thin)
        bare = np.setdiff1d(np.arange(len(self.owner)), self.edges)
        sides = np.sort(np.concatenate([self.faces[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))]), axis=1)
        count = max(len(self.owner), 1)
        bars = self.edges[~np.isin(np.sort(self.edges, axis=1) @ [count, 1], sides @ [count, 1])]
        vertices = np.arange(len(self.owner))[:, None]
        kinds = (
            (FACE_VERTEX, vertices, self.faces), (EDGE_VERTEX, vertices, bars), (VERTEX_VERTEX, vertices, bare[:, None]),
            (FACE_VERTEX, self.faces, vertices), (EDGE_VERTEX, bars, vertices), (VERTEX_VERTEX, bare[:, None], vertices),
            (EDGE_EDGE, self.edges, self.edges),
        )  # fmt: skip
        self.kinds = []
        for kind, first, second in kinds:
            bodies = self.owner[first[:, 0]]
            each = [first[bodies == body] for body in np.unique(bodies[thick[bodies]])]
            self.kinds.append((kind, each, second[thin[self.owner[second[:, 0]]]]))

    def close(self, x: np.ndarray, y: np.ndarray, away: float, ccd=None) -> Close:
        reach = self.xi + away
        for kind, each, second in self.kinds:
            boxes = _boxes(second, x, y)
            for first in each:
                _, near = _meeting(_boxes(first.reshape(1, -1), x, y), boxes, reach)
                i, j = _meeting(_boxes(first, x, y), (boxes[0][near], boxes[1][near]), reach)
                one, other = first[i], second[near[j]]
                yield (kind, one, other) if one.shape[1] <= other.shape[1] else (kind, other, one)


def parts_of(scene: Scene, world: int) -> tuple[Alike, list[Part]]:
    """Return all bodies of a world, for intersections, and its parts by radii, for gaps and paths."""
    members = (scene.world == world) & np.isin(np.arange(len(scene.world)), scene.owner)
    whole, parts = Alike(scene, members), []
    thinner, remaining = np.zeros_like(members), members.copy()
    while remaining.any():
        part = remaining & (scene.radius <= 2.0 * scene.radius[remaining].min())
        parts.append(whole if (part == members).all() else Alike(scene, part))
        if thinner.any():
            parts.append(Mixed(scene, part, thinner))
        thinner, remaining = thinner | part, remaining & ~part
    return whole, parts


def disjoint_sets(pairs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs (k, 2) divided into sets in which no body occurs twice; each set as first and second bodies."""
    sets: list[list[tuple[int, int]]] = []
    members: list[set[int]] = []
    for first, second in pairs.tolist():
        free = [k for k, bodies in enumerate(members) if first not in bodies and second not in bodies]
        if not free:
            free = [len(sets)]
            sets.append([])
            members.append(set())
        sets[free[0]].append((first, second))
        members[free[0]].update((first, second))
    return [tuple(np.array(found).T) for found in sets]


def _boxes(ids: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners (k, 3) of the boxes around primitives, vertices (k, a), on straight paths from x to y (v, 3)."""
    places = np.concatenate([x[ids], y[ids]], axis=1)
    return places.min(axis=1), places.max(axis=1)


def _meeting(first: tuple, second: tuple, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (m,) and (m,) indices of the boxes (k, 3) and (l, 3) whose distances along all axes are at most `reach` [m]."""
    (low, high), (other_low, other_high) = first, second
    i, j = np.nonzero((low[:, :1] <= other_high[:, 0] + reach) & (high[:, :1] >= other_low[:, 0] - reach))
    for axis in (1, 2):
        near = (low[i, axis] <= other_high[j, axis] + reach) & (high[i, axis] >= other_low[j, axis] - reach)
        i, j = i[near], j[near]
    return i, j


def _separated(first: np.ndarray, second: np.ndarray, x: np.ndarray, y: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return (k,) bool, whether a plane of fixed normal keeps primitives (k, a), (k, b) further apart than `least` (k,).

    The distance along a normal is the least of linear functions of time, so that it is smallest at an end. Normals are the line
    of the middles, and those of the second primitive's face or of both edges."""
    a, b = x[first], x[second]
    middles = a.mean(axis=1) - b.mean(axis=1)
    normals = [middles]
    if b.shape[1] == 3:
        normals.append(np.cross(b[:, 1] - b[:, 0], b[:, 2] - b[:, 0]))
    elif a.shape[1] == b.shape[1] == 2:
        normals.append(np.cross(a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]))
    out = np.zeros(len(first), dtype=bool)
    for n in normals:
        length = np.linalg.norm(n, axis=1) * np.where(np.einsum("ki,ki->k", n, middles) < 0.0, -1.0, 1.0)
        n = n / np.where(length == 0.0, 1.0, length)[:, None]
        gaps = [
            np.einsum("kai,ki->ka", z[first], n).min(axis=1) - np.einsum("kbi,ki->kb", z[second], n).max(axis=1) for z in (x, y)
        ]
        out |= np.minimum(*gaps) > least
    return out
