"""Triangles of the surface of bodies with a contact radius, for viewers and exports.

The surface of a mesh with radius r is that of its Minkowski sum with a ball: balls about vertices, tubes about edges, faces
moved out by r to both sides. Hidden parts inside are kept. Tubes and balls are omitted where faces meet almost flat, because
they would close a slit narrower than r/5.
"""

from __future__ import annotations

import numpy as np

from abd.scene.geometry.shapes import sphere

AROUND = 16
"""Facets of a tube."""
FLAT = 0.98
"""Cosine of the angle between two normals above which faces count as one."""


def skin(
    vertices: np.ndarray, triangles: np.ndarray, codim_edges: np.ndarray, points: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (v, 3) [m] and triangles (f, 3) around a mesh in its own frame.

    Args:
        vertices: (v, 3) [m]; triangles: (f, 3); codim_edges: (c, 2) edges of no triangle; points: (p,) of no edge.
        radius: [m].
    """
    sharp = np.concatenate([sharp_edges(vertices, triangles), codim_edges.reshape(-1, 2)])
    middles = np.unique(np.concatenate([sharp.ravel(), points])).astype(int)
    faces = moved_faces(vertices[triangles.reshape(-1, 3)], radius).reshape(-1, 3, 3)
    parts = [(faces, np.array([[0, 1, 2]])), _tubes(vertices[sharp], radius)]
    ball, round_faces = sphere(radius, 3 if len(middles) <= 8 else 2)
    parts.append((vertices[middles][:, None] + ball, round_faces))
    corners, found, start = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)], 0
    for copies, faces in parts:
        count = copies.shape[1]
        shifts = start + count * np.arange(len(copies))
        corners.append(copies.reshape(-1, 3))
        found.append((faces[None] + shifts[:, None, None]).reshape(-1, 3))
        start += count * len(copies)
    return np.concatenate(corners), np.concatenate(found).astype(np.int32)


def sharp_edges(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(k, 2) edges of triangles (f, 3) at which faces end or meet at an angle."""
    triangles = triangles.reshape(-1, 3).astype(np.int64)
    if len(triangles) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    sides = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    edges, number, count = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
    total = np.zeros((len(edges), 3))
    np.add.at(total, number.reshape(-1), np.tile(normal, (3, 1)))
    # two unit normals at the angle t add up to 2 cos t/2
    flat = (count == 2) & (np.einsum("ei,ei->e", total, total) > 2.0 + 2.0 * FLAT)
    return edges[~flat]


def moved_faces(corners: np.ndarray, radius: float) -> np.ndarray:
    """(2, f, 3, 3) faces (f, 3, 3) moved outwards by a radius, and to the other side, turned."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    out = radius * (normal / np.where(length > 0.0, length, 1.0))[:, None]
    return np.stack([corners + out, (corners - out)[:, ::-1]])


def _tubes(ends: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Open tubes about segments (e, 2, 3)."""
    along = ends[:, 1] - ends[:, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    least = np.eye(3)[np.argmin(np.abs(along), axis=1)]
    x = np.cross(along, least)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.cross(along, x)
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = radius * (np.cos(angle)[:, None] * x[:, None] + np.sin(angle)[:, None] * y[:, None])
    copies = np.concatenate([ends[:, :1] + ring, ends[:, 1:] + ring], axis=1)
    here, following = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND
    lower = np.stack([here, following, AROUND + following], axis=1)
    upper = np.stack([here, AROUND + following, AROUND + here], axis=1)
    return copies, np.concatenate([lower, upper])
