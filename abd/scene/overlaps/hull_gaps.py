"""Gaps between the convex hulls of many pairs of bodies along a few directions each, which exclude most pairs.

A direction u separates two bodies by ``min u.x_a - max u.x_b`` or by ``min u.x_b - max u.x_a``. The largest such gap over
any set of directions is a lower bound of the distance of the bodies where it is positive, and minus a distance that
suffices to separate them where it is negative (Gottschalk, Lin and Manocha 1996). The directions of a pair are face
normals of both bodies and the line between the middles of their boxes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from abd.model import Mesh, Model
from abd.scene.geometry.meshes import component_of_vertices

MOST_NORMALS = 12
"""Normals of one mesh that are looked at in the test of all pairs."""
_CHUNK = 1 << 21
"""Most numbers in one array of heights."""
_CONVEX_EFFORT = 4_000_000
"""Pairs of a vertex and a face beyond which a mesh is not tested for convexity."""
_FLAT = 1e-9
"""Height above a face, over the size of the mesh, that counts as none."""


def unit_normals(corners: np.ndarray) -> np.ndarray:
    """(f, 3) unit normals of triangles (f, 3, 3); zero without area."""
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(n, axis=1, keepdims=True)
    return n / np.where(length > 0.0, length, 1.0)


def unique(v: np.ndarray, both: bool = True) -> np.ndarray:
    """Unit vectors (k, 3), those that agree once; `both`: opposite ones count as one."""
    if len(v) == 0:
        return v
    key = np.round(v, 6) + 0.0
    if both:
        key = key * np.sign(key[np.arange(len(v)), (key != 0.0).argmax(axis=1)])[:, None] + 0.0
    return v[np.sort(np.unique(key, axis=0, return_index=True)[1])]


def normals(corners: np.ndarray, both: bool) -> np.ndarray:
    """(k, 3) unit normals of triangles (f, 3, 3) with an area, as in `unique`."""
    n = unit_normals(corners)
    return unique(n[n.any(axis=1)], both)


def is_convex(mesh: Mesh) -> bool:
    """Whether a mesh is closed and no vertex lies outside one of its faces."""
    if not mesh.closed or len(mesh.triangles) * len(mesh.vertices) > _CONVEX_EFFORT:
        return False
    corners = mesh.vertices[mesh.triangles]
    n = unit_normals(corners)
    heights = n @ mesh.vertices.T - np.einsum("fi,fi->f", n, corners[:, 0])[:, None]
    size = np.linalg.norm(np.ptp(mesh.vertices, axis=0))
    return bool(heights.max(initial=0.0) <= _FLAT * size) and bool(n.any())


def _directions(mesh: Mesh) -> np.ndarray:
    found = normals(mesh.vertices[mesh.triangles], both=True)
    return found if len(found) else np.eye(3)


def _components(mesh: Mesh) -> list[np.ndarray]:
    label = component_of_vertices(mesh)
    return [np.flatnonzero(label == k) for k in range(label.max() + 1)]


class Hulls:
    """Face directions, convexity and components of the meshes of a model.

    Attributes:
        normals: function of a mesh's number that returns its directions of faces; convex: whether it is convex.
        components: vertex indices of every connected component. All are computed once.
    """

    def __init__(self, model: Model):
        self.meshes = model.meshes
        self.normals = cache(lambda mesh: _directions(self.meshes[mesh]))
        self.convex = cache(lambda mesh: is_convex(self.meshes[mesh]))
        self.components = cache(lambda mesh: _components(self.meshes[mesh]))

    def gaps(
        self, mesh: np.ndarray, q: np.ndarray, middle: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Largest gaps (m,) [m] of pairs of bodies, and their directions (m, 3) from the second body to the first.

        Args:
            mesh: (n,) of every body; q: (n, 12); middle: (n, 3) of the boxes around the bodies; first, second: (m,).
        """
        best, along = np.full(len(first), -np.inf), np.zeros((len(first), 3))
        if len(first) == 0:
            return best, along
        kinds, which = np.unique(np.stack([mesh[first], mesh[second]], axis=1), axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))
        for (a, b), rows in zip(kinds.tolist(), np.split(order, ends[:-1]), strict=True):
            most = max(1, _CHUNK // max(len(self.meshes[a].vertices), len(self.meshes[b].vertices)))
            for start in range(0, len(rows), most):
                some = rows[start : start + most]
                i, j = first[some], second[some]
                best[some], along[some] = self._of_kind(a, b, q[i], q[j], middle[i] - middle[j])
        return best, along

    def _of_kind(self, a: int, b: int, q_a: np.ndarray, q_b: np.ndarray, centres: np.ndarray):
        """The same for pairs of one pair of meshes, their states q_a, q_b (m, 12) and the lines (m, 3) of their middles."""
        A, B = q_a[:, 3:].reshape(-1, 3, 3), q_b[:, 3:].reshape(-1, 3, 3)
        centres[~centres.any(axis=1)] = (0.0, 0.0, 1.0)
        directions = []
        for map_, mesh in ((A, a), (B, b)):
            known = self.normals(mesh)
            directions += [map_ @ n for n in known[:: 1 + (len(known) - 1) // MOST_NORMALS]]
        directions.append(centres)
        # of directions that are as good the first: pairs of a lattice then push along its axes
        slight = _FLAT * np.linalg.norm(centres, axis=1)
        best, along = np.full(len(q_a), -np.inf), np.zeros((len(q_a), 3))
        for u in directions:
            u = u / np.linalg.norm(u, axis=1, keepdims=True)
            low_a, high_a = extent(u, q_a[:, :3] - q_b[:, :3], A, self.meshes[a].vertices)
            low_b, high_b = extent(u, np.zeros_like(u), B, self.meshes[b].vertices)
            for gap, sign in ((low_a - high_b, 1.0), (low_b - high_a, -1.0)):
                better = gap > best + slight
                best[better], along[better] = gap[better], sign * u[better]
        return best, along


def extent(u: np.ndarray, p: np.ndarray, A: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest ``u . (p + A X)`` (m,) [m] over the vertices X (v, 3), for u, p (m, 3) and A (m, 3, 3)."""
    heights = np.einsum("mi,mij->mj", u, A) @ vertices.T
    shift = np.einsum("mi,mi->m", u, p)
    return heights.min(axis=1) + shift, heights.max(axis=1) + shift
