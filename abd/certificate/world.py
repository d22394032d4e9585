"""Bodies of one world in `ipctk`: intersections and the smallest gap."""

from __future__ import annotations

import numpy as np

from abd.certificate.exact import segment_meets_triangle
from abd.certificate.scene import Scene
from abd.optional import required

ipctk = required("ipctk", "certify", "ipctk", "a certificate")


class World:
    """Bodies of one world as one collision mesh of ipctk, built once.

    Args:
        bodies: (n,) bool, the bodies of the mesh; uncompared: (n,) bool, bodies that are not compared with each other.
    """

    def __init__(self, scene: Scene, bodies: np.ndarray, uncompared: np.ndarray):
        self.scene = scene
        members = bodies[scene.owner]
        number = np.cumsum(members) - 1
        self.vertices = np.flatnonzero(members)
        self.owner = scene.owner[members]
        edges = number[scene.edges[members[scene.edges[:, 0]]]] if len(scene.edges) else scene.edges
        faces = number[scene.faces[members[scene.faces[:, 0]]]] if len(scene.faces) else scene.faces
        self.edges, self.faces = (np.asfortranarray(items, dtype=np.int32) for items in (edges, faces))
        # Vertices of equal labels are not compared: bodies of one group, or two bodies connected by a joint.
        count = len(scene.names)
        labels = [np.where(scene.group >= 0, count + scene.group, np.arange(count))]
        labels.append(np.where(uncompared, count, np.arange(count)))
        for first, second in disjoint_sets(scene.joined_pairs):
            labels.append(np.arange(count))
            labels[-1][second] = first
        self.filter = ipctk.make_static_obstacle_filter(int(scene.dynamic[self.owner].sum()))
        for label in labels:
            self.filter = self.filter & ipctk.make_vertex_patches_filter(label[self.owner].astype(np.int32))
        self.mesh = ipctk.CollisionMesh(np.asfortranarray(scene.rest[members]), self.edges, self.faces)
        self.mesh.can_collide = self.filter
        self.xi = scene.radius[bodies].max(initial=0.0) * 2.0 + scene.minimum_separation
        # All exempt pairs are filtered and radii are zero: the minimum of ipctk is the smallest gap.
        self.plain = self.xi == 0.0 and scene.enabled.all()

    def intersections(self, positions: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of bodies with intersecting surfaces, each once."""
        if not ipctk.has_intersections(self.mesh, positions):
            return []
        # Find intersecting pairs by the search of has_intersections, with its box margin.
        margin = 1e-6 * np.linalg.norm(np.ptp(positions, axis=0))
        search = ipctk.LBVH()
        search.can_vertices_collide = self.filter
        search.build(positions, self.edges, self.faces, margin)
        candidates = search.detect_edge_face_candidates()
        pairs = np.array([(item.edge_id, item.face_id) for item in candidates], dtype=int).reshape(-1, 2)
        first, second = self.owner[self.edges[pairs[:, 0], 0]], self.owner[self.faces[pairs[:, 1], 0]]
        allowed = self.scene.may_touch(first, second)
        found: set[tuple[int, int]] = set()
        for (edge, face), a, b in zip(pairs[allowed], first[allowed], second[allowed], strict=True):
            key = (int(min(a, b)), int(max(a, b)))
            if key not in found:
                points = (*positions[self.edges[edge]], *positions[self.faces[face]])
                if ipctk.is_edge_intersecting_triangle(*points) and segment_meets_triangle(*points):
                    found.add(key)
        return sorted(found)

    def smallest_gap(self, positions: np.ndarray) -> tuple[float, tuple[int, int] | None]:
        """Smallest distance less radii and minimum separation [m] of pairs within d_hat; the pair if it is <= 0."""
        reach = self.scene.d_hat + self.xi
        collisions = ipctk.NormalCollisions()
        collisions.build(self.mesh, positions, reach)
        if len(collisions) == 0:
            return np.inf, None
        if self.plain:
            distance = float(np.sqrt(collisions.compute_minimum_distance(self.mesh, positions)))
            if distance > 0.0:
                return distance, None
        # No wrapper of a collision may outlive the collection, which ipctk would release.
        count = range(len(collisions))
        ids = np.array([collisions[k].vertex_ids(self.edges, self.faces) for k in count])
        squared = np.array([collisions[k].compute_distance(positions, self.edges, self.faces) for k in count])
        first = self.owner[ids[:, 0]]
        # Vertex-vertex, edge-vertex, face-vertex and edge-edge stencils begin with the first primitive, and their last
        # vertex belongs to the second one or, for a vertex against an edge or a face, to that edge or face.
        last = ids[np.arange(len(ids)), (ids >= 0).sum(axis=1) - 1]
        second = self.owner[last]
        xi = self.scene.radius[first] + self.scene.radius[second] + self.scene.minimum_separation
        gaps = np.where(self.scene.may_touch(first, second), np.sqrt(squared) - xi, np.inf)
        k = int(np.argmin(gaps))
        gap = float(gaps[k])
        return gap, (int(min(first[k], second[k])), int(max(first[k], second[k]))) if gap <= 0.0 else None


def parts_of(scene: Scene, world: int) -> list[World]:
    """Bodies of a world in parts by their radii, because ipctk compares all bodies of a part within the largest range.

    The first part has the bodies of zero radius. Each further part has bodies of up to twice its smallest radius,
    compared with each other and with all thinner bodies.
    """
    members = (scene.world == world) & np.isin(np.arange(len(scene.world)), scene.owner)
    remaining, parts = members.copy(), []
    while remaining.any():
        least = scene.radius[remaining].min()
        part = remaining & (scene.radius <= 2.0 * least)
        thinner = members & ~remaining
        parts.append(World(scene, thinner | part, thinner))
        remaining &= ~part
    return parts


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


def gap_within(gaps: np.ndarray, reach: float) -> float:
    """Smallest of the gaps if within reach, else infinity."""
    smallest = float(gaps.min(initial=np.inf))
    return smallest if smallest < reach else np.inf
