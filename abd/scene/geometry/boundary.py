"""Open edges, nested parts and inverted parts of a mesh."""

from __future__ import annotations

import numpy as np

from abd.certificate.exact import winding_numbers
from abd.scene.geometry.mesh_files import weld_equal_vertices

WAVES = 8
"""Number of plane waves that are integrated along open edges."""
SAME = 1e-6
"""Integral along open edges that cancel, over their length: vertices of one place may differ by that part of the size."""
SAMPLES = 100
"""Number of points of one part that are tested against another."""
VOLUME_ROUNDING = 1e-9
"""Volume of a part over the sum of the absolute volumes of its tetrahedra, up to which it has none."""
MOST_TRIANGLES = 200_000
"""Largest number of triangles for a comparison of parts."""


def open_sides(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return directed sides (k, 2) without an opposite side of another triangle, after welding equal vertices."""
    edge, forward = welded_sides(vertices, triangles)
    excess = np.bincount(edge, weights=forward)[edge]
    sides = np.stack([triangles.T.reshape(-1), np.roll(triangles, -1, axis=1).T.reshape(-1)], axis=1)
    return sides[excess * forward > 0]


def welded_sides(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the sides of all triangles (3f,), first all first ones, after welding equal vertices: the number of the undirected edge,
    and the direction along it, 1 or -1, 0 for sides of no length."""
    corners = weld_equal_vertices(vertices)[1][triangles].astype(np.int64)
    start, end = corners.T.reshape(-1), np.roll(corners, -1, axis=1).T.reshape(-1)
    _, edge = np.unique(np.minimum(start, end) * len(vertices) + np.maximum(start, end), return_inverse=True)
    return edge.reshape(-1), np.sign(end - start)


def cancel(vertices: np.ndarray, sides: np.ndarray) -> bool:
    """Return whether directed sides (k, 2) cancel in space, as along T-junctions and between vertices that differ by rounding.

    The integral of plane waves along them vanishes: ``d (exp(i w.b) - exp(i w.a)) / (i w.d)``, d = b - a.
    """
    if not len(sides):
        return True
    a, b = vertices[sides[:, 0]], vertices[sides[:, 1]]
    middle, size = vertices.mean(axis=0), np.ptp(vertices, axis=0).max()
    waves = np.random.default_rng(0).normal(size=(WAVES, 3)) * 5.0 / size
    d, half = b - a, 0.5 * (b - a) @ waves.T
    wave = np.exp(1j * (0.5 * (a + b) - middle) @ waves.T) * np.sinc(half / np.pi)
    return bool(np.abs(np.einsum("kw,ki->wi", wave, d)).max() <= SAME * np.linalg.norm(d, axis=1).sum())


def describe(vertices: np.ndarray, sides: np.ndarray) -> str:
    """Describe the number of open edges and the position of the first."""
    if not len(sides):
        return "no open edges"
    x, y, z = vertices[sides[0]].mean(axis=0)
    return f"{len(sides)} open edges, one of them at ({x:.6g}, {y:.6g}, {z:.6g})"


def nested_parts(vertices: np.ndarray, triangles: np.ndarray, label: np.ndarray) -> int:
    """Return the number of parts of a closed surface whose solid side is inside other parts as well: a winding number above 1.

    Args:
        label: (v,) part of every vertex.
    """
    parts = label[triangles[:, 0]]
    count = int(parts.max()) + 1
    if not 1 < count <= SAMPLES or len(triangles) > MOST_TRIANGLES:
        return 0
    own = [vertices[triangles[parts == k]] for k in range(count)]
    boxes = [(one.min(axis=(0, 1)), one.max(axis=(0, 1))) for one in own]
    depth = SAME * np.ptp(vertices, axis=0).max()
    found = 0
    for k, corners in enumerate(own):
        middle, a, b = corners.mean(axis=1), corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        points = np.concatenate([middle, 0.5 * (middle + corners[:, 0]), middle + 0.98 * (corners[:, 0] - middle)])
        normal = np.cross(a, b)
        points -= np.tile(depth * normal / np.linalg.norm(normal, axis=1, keepdims=True), (3, 1))
        points = points[:: max(1, len(points) // SAMPLES)]
        winding = np.full(len(points), float(np.einsum("ki,ki->", corners[:, 0] - corners[0, 0], normal) > 0.0))
        for other, (low, high) in enumerate(boxes):
            near = ((points > low) & (points < high)).all(axis=1)
            if other != k and near.any():
                winding[near] += winding_numbers(points[near], own[other])
        found += bool((winding > 1.5).any())
    return found


def inverted_triangles(vertices: np.ndarray, triangles: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return (f,) bool, the triangles to reverse so that no closed part that is outside of all others faces inwards.

    Parts within a reversed one face outwards or inwards by their depth: within one other part they bound a cavity.

    Args:
        label: (v,) part of every vertex.
    """
    corners, parts = vertices[triangles], label[triangles[:, 0]]
    _, first, parts = np.unique(parts, return_index=True, return_inverse=True)
    a, b, c = np.moveaxis(corners - corners[first[parts], :1], 1, 0)
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    rounding = VOLUME_ROUNDING * np.bincount(parts, weights=np.abs(volume))
    volume = np.bincount(parts, weights=volume)
    inverted = np.zeros(len(first), dtype=bool)
    if not (volume < -rounding).any():
        return inverted[parts]
    own = np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1])
    low, high = (np.array([limit(corners[rows], axis=(0, 1)) for rows in own]) for limit in (np.min, np.max))

    def around(k: int) -> list[int]:
        """Return the parts that contain part k."""
        points = corners[own[k]].mean(axis=1)[:: max(1, len(own[k]) // SAMPLES)]
        larger = np.flatnonzero((low <= low[k]).all(axis=1) & (high >= high[k]).all(axis=1))
        return [j for j in larger if j != k and (np.abs(winding_numbers(points, corners[own[j]])) > 0.5).all()]

    for k in np.flatnonzero(volume < -rounding):
        if cancel(vertices, open_sides(vertices, triangles[own[k]])) and not around(k):
            inverted[k] = True
            for j in np.flatnonzero((low >= low[k]).all(axis=1) & (high <= high[k]).all(axis=1)):
                outer = around(j)
                inverted[j] |= k in outer and volume[j] * (-1) ** len(outer) < 0.0
    return inverted[parts]
