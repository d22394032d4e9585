"""Edges within flat faces, which never touch another body first.

When two disjoint surfaces approach and an edge reaches the inside of a flat face, it lies in its plane. Then either one
of its ends is over the face (a vertex-triangle pair), or it crosses the border of the face (an edge-edge pair). Edges
that divide a flat face into triangles therefore add no collision. In the contact set of local minima they have the
weight 0 (`abd.contact.topology`). The search omits them: a box has 12 edges instead of 18, a cylinder half of them.
"""

from __future__ import annotations

import numpy as np

from abd.model import Mesh

EXACT = 1e-12
"""Angle [rad] below which two faces are coplanar in the search; covers rounding of vertices, not of files."""


def within_faces(mesh: Mesh) -> np.ndarray:
    """(e,) bool, which edges of a mesh lie between exactly two coplanar triangles, on opposite sides."""
    triangles = mesh.triangles.reshape(-1, 3).astype(np.int64)
    edges = np.sort(mesh.edges.reshape(-1, 2).astype(np.int64), axis=1)
    count = max(len(mesh.vertices), 1)
    sides = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    across = triangles[:, [2, 0, 1]].ravel()
    keys = sides[:, 0] * count + sides[:, 1]
    order = np.argsort(keys, kind="stable")
    known, first, shared = np.unique(keys[order], return_index=True, return_counts=True)
    two = shared == 2
    first, known = first[two], known[two]
    a, b = mesh.vertices[known // count], mesh.vertices[known % count]
    along = unit(b - a)
    inward = []
    for place in (first, first + 1):
        c = mesh.vertices[across[order[place]]] - a
        inward.append(unit(c - np.einsum("mi,mi->m", c, along)[:, None] * along))
    # unit directions into the two faces; opposite for coplanar faces
    sound = np.all([np.linalg.norm(one, axis=1) > 0.5 for one in inward], axis=0)
    flat = known[sound & (np.linalg.norm(inward[0] + inward[1], axis=1) <= EXACT)]
    return np.isin(edges[:, 0] * count + edges[:, 1], flat)


def unit(v: np.ndarray) -> np.ndarray:
    """(k, 3) unit vectors of v (k, 3); zero vectors remain."""
    length = np.linalg.norm(v, axis=1)
    return v / np.where(length > 0.0, length, 1.0)[:, None]
