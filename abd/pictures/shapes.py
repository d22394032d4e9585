"""Appearance of bodies in their mesh frame: triangles, and the rounding of edges and points by a contact radius.

The surface of a body with radius r is the Minkowski sum of its mesh with a ball: faces offset by r, rods about sharp
edges, balls about isolated points. An affine map moves segments and points, but does not stretch r, as in contact. A
sphere is one ball and a capsule one rod, both exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.pictures.skin import moved_faces, sharp_edges, skin
from abd.scene.geometry import mass

CREASE = np.cos(np.radians(40.0))
"""Cosine of the angle between two faces above which they are shaded as one smooth surface."""


@dataclass(frozen=True)
class Shape:
    """Surface in the mesh frame [m].

    Attributes:
        corners: (f, 3, 3) of triangles; normals: (f, 3, 3) unit normals at them, shared by almost coplanar faces.
        rods: (r, 2, 3) segments of rounded tubes; balls: (b, 3) centres; radius: of both.
        open: whether triangles are visible from both sides.
        vertices, triangles: the shape as one mesh (v, 3), (t, 3), for viewers that draw only triangles.
        box: (2, 3) corners of the bounding box, radius included.
        extent: radius of the bounding ball.
    """

    corners: np.ndarray
    normals: np.ndarray
    rods: np.ndarray
    balls: np.ndarray
    radius: float
    open: bool
    vertices: np.ndarray
    triangles: np.ndarray
    box: np.ndarray
    extent: float


def shape_of(mesh, radius: float) -> Shape:
    """Shape of a mesh (`abd.model.Mesh`, `abd.io.trajectory.StoredMesh`) of bodies with a contact radius [m].

    `mesh` needs vertices, triangles, edges, points and `closed`. Edges without triangles and isolated points of zero radius get a
    small visible radius.
    """
    vertices = np.asarray(mesh.vertices, dtype=float)
    triangles = np.asarray(mesh.triangles, dtype=np.int64).reshape(-1, 3)
    points = np.asarray(mesh.points, dtype=np.int64).reshape(-1)
    loose = _loose_edges(triangles, np.asarray(mesh.edges, dtype=np.int64).reshape(-1, 2))
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    size = float(np.linalg.norm(high - low))
    is_open = len(triangles) > 0 and not mesh.closed
    if len(triangles) and not is_open and mass.enclosed_volume(vertices, triangles) < 0.0:
        triangles = triangles[:, ::-1]
    corners = vertices[triangles]
    if radius > 0.0:
        rods, drawn = vertices[np.concatenate([sharp_edges(vertices, triangles), loose])], radius
        outer, inner = moved_faces(corners, radius)
        corners = np.concatenate([outer, inner]) if is_open else outer
        whole = skin(vertices, triangles, loose, points, radius)
    else:
        rods, drawn = vertices[loose], 0.004 * size or 0.01
        whole = joined((vertices, triangles), skin(vertices, triangles[:0], loose, points, drawn))
    reach = drawn if len(rods) or len(points) else radius
    return Shape(
        corners=corners,
        normals=corner_normals(corners),
        rods=rods,
        balls=vertices[points],
        radius=drawn,
        open=is_open and radius == 0.0,
        vertices=whole[0],
        triangles=whole[1],
        box=np.stack([low - reach, high + reach]),
        extent=float(np.linalg.norm(vertices - 0.5 * (low + high), axis=1).max()) + reach,
    )


def corner_normals(corners: np.ndarray) -> np.ndarray:
    """(f, 3, 3) unit normals at the corners (f, 3, 3) of triangles; zeros for a face without area.

    They are area-weighted means over the adjacent faces within the angle of `CREASE`.
    """
    count = len(corners)
    if count == 0:
        return np.zeros((0, 3, 3))
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal = unit(area, 0.0)
    vertex = _welded(corners.reshape(-1, 3))
    order = np.argsort(vertex, kind="stable")
    start = np.searchsorted(vertex[order], np.arange(vertex.max() + 2))
    valence = np.diff(start)[vertex]
    # every corner with every face about its vertex
    corner = np.repeat(np.arange(3 * count), valence)
    place = np.arange(len(corner)) - np.repeat(np.cumsum(valence) - valence, valence)
    face = order[start[vertex[corner]] + place] // 3
    alike = np.einsum("ki,ki->k", normal[corner // 3], normal[face]) > CREASE
    total = [np.bincount(corner[alike], area[face[alike], axis], minlength=3 * count) for axis in range(3)]
    return unit(np.stack(total, axis=1), 0.0).reshape(count, 3, 3)


def creased(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mesh with separate vertices on each side of a crease: vertices (v, 3), triangles (f, 3), unit normals (v, 3).

    Faces without area are removed.
    """
    corners = np.asarray(vertices, dtype=float)[triangles]
    normals = corner_normals(corners)
    sound = (np.linalg.norm(normals, axis=2) > 0.5).all(axis=1)
    rows = np.concatenate([corners[sound], normals[sound]], axis=2).reshape(-1, 6)
    found, index = np.unique(rows, axis=0, return_inverse=True)
    return found[:, :3], index.reshape(-1, 3).astype(np.int32), found[:, 3:]


def joined(*parts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenation of meshes (vertices, triangles)."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    triangles = [faces + start for (_, faces), start in zip(parts, starts)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(triangles).astype(np.int32)


def turned_from_z(direction: np.ndarray) -> np.ndarray:
    """(..., 3, 3) smallest rotations of z to unit vectors (..., 3); half a turn about x for -z."""
    x, y, z = np.moveaxis(direction, -1, 0)
    down = z < -1.0 + 1e-12
    c = 1.0 / np.where(down, 1.0, 1.0 + z)
    rows = [[1.0 - x * x * c, -x * y * c, x], [-x * y * c, 1.0 - y * y * c, y], [-x, -y, z]]
    out = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    out[down] = np.diag([1.0, -1.0, -1.0])
    return out


def unit(vectors: np.ndarray, otherwise: float | tuple[float, ...] = (0.0, 0.0, 1.0)) -> np.ndarray:
    """(..., 3) unit vectors, and `otherwise` for zero vectors."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.full_like(vectors, otherwise), where=length > 0.0)


def _welded(points: np.ndarray) -> np.ndarray:
    """(k,) index of the distinct position of each point, to a millionth of the extent."""
    extent = np.ptp(points, axis=0).max() or 1.0
    return np.unique(np.round(points / (1e-6 * extent)), axis=0, return_inverse=True)[1].reshape(-1)


def _loose_edges(triangles: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(k, 2) edges without triangles."""
    span = np.array([int(max(triangles.max(initial=0), edges.max(initial=0))) + 1, 1])
    return edges[~np.isin(np.sort(edges, axis=1) @ span, _sides(triangles) @ span)]


def _sides(triangles: np.ndarray) -> np.ndarray:
    """(3 f, 2) sides of triangles (f, 3), the lower vertex first."""
    return np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
