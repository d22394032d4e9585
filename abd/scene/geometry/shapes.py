"""Generated surfaces of the elementary bodies.

Meshes are closed, their triangles counter-clockwise seen from outside. Curved ones are inscribed polyhedra: their vertices
lie on the ideal surface, and mass properties are those of the polyhedron that collides, not of the ideal shape. Exact
spheres and capsules are a point and a segment, which collide at a distance of their radius.
"""

from __future__ import annotations

import numpy as np


def box(extents: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Box about the origin: vertices (8, 3) [m] and triangles (12, 3).

    Args:
        extents: full edge lengths [m].
    """
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return corners * np.asarray(extents, dtype=float), _split_quads(quads)


def sphere(radius: float, subdivisions: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Icosahedron with every triangle split in four `subdivisions` times and its vertices moved onto the sphere."""
    from trimesh.creation import icosphere

    mesh = icosphere(subdivisions=subdivisions, radius=radius)
    return np.array(mesh.vertices), np.array(mesh.faces)


def cylinder(radius: float, length: float, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Closed cylinder along z about the origin; `length` [m] is the full length."""
    return frustum(radius, radius, length, segments)


def cone(radius: float, length: float, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Closed cone along z with its tip up, about the middle of its axis; `length` [m] from base to tip."""
    return frustum(radius, 0.0, length, segments)


def frustum(low: float, high: float, length: float, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Closed frustum along z about the origin, with these radii of its ends [m]; one of them may be 0."""
    half = length / 2.0
    rings = [(height, radius) for height, radius in ((-half, low), (half, high)) if radius > 0.0]
    return revolved(rings, -half, half, segments)


def capsule(radius: float, length: float, segments: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Cylinder of `length` [m] along z with two half-spheres as ends, about the origin."""
    rings = max(segments // 4, 2)
    latitude = np.linspace(0.0, np.pi / 2.0, rings, endpoint=False)
    upper = [(length / 2.0 + radius * np.sin(angle), radius * np.cos(angle)) for angle in latitude]
    lower = [(-height, around) for height, around in reversed(upper)]
    end = length / 2.0 + radius
    return revolved(lower + upper, -end, end, segments)


def revolved(rings: list[tuple[float, float]], bottom: float, top: float, segments: int):
    """Surface of revolution about z through rings (height, radius) from below to above, closed by two poles."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    layers = [np.column_stack([around * circle, np.full(segments, height)]) for height, around in rings]
    vertices = np.concatenate([*layers, [[0.0, 0.0, bottom], [0.0, 0.0, top]]])

    here = np.arange(segments)
    following = (here + 1) % segments
    triangles = [np.stack([following, here, np.full(segments, len(vertices) - 2)], axis=1)]
    for k in range(len(rings) - 1):
        low, high = k * segments, (k + 1) * segments
        triangles.append(_split_quads(np.stack([low + here, low + following, high + following, high + here], axis=1)))
    last = (len(rings) - 1) * segments
    triangles.append(np.stack([last + here, last + following, np.full(segments, len(vertices) - 1)], axis=1))
    return vertices, np.concatenate(triangles)


def _split_quads(quads: np.ndarray) -> np.ndarray:
    """(2k, 3) triangles of (k, 4) quadrilaterals."""
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
