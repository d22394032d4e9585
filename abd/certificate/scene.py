"""Constant part of a trajectory, read from its file: bodies, overlap rules, and meshes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


class Scene:
    """Constant part of a trajectory: bodies, overlap rules, and merged meshes.

    Attributes:
        names, dynamic, group, world, material, radius: (n,) of the bodies; plane: (n, 4).
        rest: (v, 3) vertices of all bodies in their mesh frames, dynamic bodies first; owner: (v,) their bodies.
        edges, faces: (e, 2), (f, 3) into `rest`.
        start: first vertex of every body with vertices, in order; bodies_in_order: these bodies.
    """

    def __init__(self, file):
        bodies = file["bodies"]
        self.names = [name.decode() for name in bodies["name"][...]]
        self.dynamic = np.array([kind == b"dynamic" for kind in bodies["kind"][...]], dtype=bool)
        self.group, self.world, self.material, self.radius, self.plane, self.mesh = (
            bodies[name][...] for name in ("group", "world", "material", "radius", "plane", "mesh")
        )
        self.enabled = file["materials/enabled"][...]
        self.tolerance, self.d_hat, self.minimum_separation = (
            float(file["solver"].attrs[name]) for name in ("tolerance", "d_hat", "minimum_separation")
        )
        index = {name: k for k, name in enumerate(self.names)}
        joints = [joint for joint in file["joints"].values() if not joint.attrs["collide"]]
        copies = [joint["bodies"][...] for joint in joints if "bodies" in joint]
        single = [[index.get(name, -1) for name in joint.attrs["bodies"]] for joint in joints if "bodies" not in joint]
        apart = np.concatenate([np.array(single, dtype=np.int64).reshape(-1, 2), *copies, bodies["filtered"][...]])
        pairs = np.sort(apart[apart.min(axis=1) >= 0], axis=1)
        self.joined_pairs = np.unique(pairs, axis=0)
        self.joined = self.joined_pairs @ [len(self.names), 1]
        self.surfaces = [Surface(file["meshes"][str(k)]) for k in range(len(file["meshes"]))]

        order = np.argsort(~self.dynamic, kind="stable")
        self.bodies_in_order = order[self.mesh[order] >= 0]
        parts = [self.surfaces[self.mesh[body]] for body in self.bodies_in_order]
        counts = np.array([len(part.vertices) for part in parts], dtype=int)
        self.start = np.concatenate([[0], np.cumsum(counts)])[:-1]
        self.owner = np.repeat(self.bodies_in_order, counts)
        self.rest = np.concatenate([np.empty((0, 3)), *(part.vertices for part in parts)])
        shifted = list(zip(parts, self.start, strict=True))
        self.edges = np.concatenate([np.empty((0, 2), int), *(part.edges + start for part, start in shifted)])
        self.faces = np.concatenate([np.empty((0, 3), int), *(part.triangles + start for part, start in shifted)])
        probes = [part.probes + start for part, start in shifted]
        self.probes = np.concatenate([np.empty(0, int), *probes])
        """One vertex of every connected component of every body."""

    def may_touch(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return (k,) bool: whether the rules forbid these pairs of bodies to overlap."""
        keys = np.minimum(first, second) * len(self.names) + np.maximum(first, second)
        allowed = (first != second) & (self.dynamic[first] | self.dynamic[second])
        allowed &= self.world[first] == self.world[second]
        allowed &= (self.group[first] != self.group[second]) | (self.group[first] < 0)
        return allowed & self.enabled[self.material[first], self.material[second]] & ~np.isin(keys, self.joined)

    def positions(self, transform: np.ndarray) -> np.ndarray:
        """Return (v, 3) world positions for transforms (n, 4, 4)."""
        matrices = transform[self.owner]
        return np.einsum("vij,vj->vi", matrices[:, :3, :3], self.rest) + matrices[:, :3, 3]

    def half_space_gaps(self, *positions: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield each half-space, the bodies (k,) that may not overlap it, and their least gaps (k,) [m] at positions (v, 3)."""
        bodies = self.bodies_in_order
        for plane in np.flatnonzero(np.isfinite(self.plane[:, 3])).tolist() if len(bodies) else ():
            height = np.min([one @ self.plane[plane, :3] for one in positions], axis=0) - self.plane[plane, 3]
            gap = np.minimum.reduceat(height, self.start) - self.radius[bodies] - self.radius[plane] - self.minimum_separation
            relevant = self.may_touch(np.full(len(bodies), plane), bodies)
            yield plane, bodies[relevant], gap[relevant]


class Surface:
    """One mesh: vertices (v, 3), triangles with an area (f, 3), edges (e, 2), and whether it is closed."""

    def __init__(self, group):
        self.vertices = group["vertices"][...]
        triangles = group["triangles"][...].astype(int)
        self.edges = group["edges"][...].astype(int)
        welded, same = np.unique(self.vertices, axis=0, return_inverse=True)
        same = same.reshape(-1)
        corners = same[triangles]
        sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
        sides = sides[sides[:, 0] != sides[:, 1]]
        count = len(welded)
        # Closed: every directed edge occurs as often as its reverse, so that winding numbers are integers.
        forward, backward = np.sort(sides @ [count, 1]), np.sort(sides @ [1, count])
        self.closed = len(sides) > 0 and np.array_equal(forward, backward)
        links = np.concatenate([sides, same[self.edges]])
        graph = coo_matrix((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(count, count))
        component = connected_components(graph, directed=False)[1][same]
        self.probes = np.unique(component, return_index=True)[1]
        a, b, c = (self.vertices[triangles[:, k]] for k in range(3))
        self.triangles = triangles[np.any(np.cross(b - a, c - a) != 0.0, axis=1)]
