"""Appearance of bodies in their mesh frame: triangles, and the rounding of edges and points by a contact radius.

The surface of a body with radius r is the Minkowski sum of its mesh with a ball: faces offset by r, rods about sharp
edges, balls about isolated points. An affine map moves segments and points, but does not stretch r, as in contact. A
sphere is one ball and a capsule one rod, both exact. Viewers and exports draw these as triangles (`skin`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from abd.joints.closure.link_graph import connected_labels
from abd.rotations import polar
from abd.scene.geometry import mass
from abd.scene.geometry.frames import triad
from abd.scene.geometry.shapes import sphere

CREASE = np.cos(np.radians(40.0))
"""Cosine of the angle between two faces above which they are shaded as one smooth surface."""
AROUND = 16
"""Facets of a tube."""
FLAT = 0.98
"""Cosine of the angle between two normals above which faces remain joined, without a tube between them."""


class Shape:
    """Surface in the mesh frame [m] of bodies with a contact radius.

    Edges without triangles and isolated points of zero radius get a small visible radius.

    Args:
        mesh: vertices, triangles, edges, points and `closed` (`abd.model.Mesh`, `abd.io.trajectory.StoredMesh`); radius: [m].

    Attributes:
        corners: (f, 3, 3) of triangles; normals: (f, 3, 3) unit normals at them, shared by almost coplanar faces.
        rods: (r, 2, 3) segments of rounded tubes; balls: (b, 3) centres; radius: of both.
        open: whether triangles are visible from both sides.
        box: (2, 3) corners of the bounding box, radius included; extent: radius of the bounding ball.
    """

    def __init__(self, mesh, radius: float):
        vertices = np.asarray(mesh.vertices, dtype=float)
        triangles = np.asarray(mesh.triangles, dtype=np.int64).reshape(-1, 3)
        points = np.asarray(mesh.points, dtype=np.int64).reshape(-1)
        loose = _loose_edges(triangles, np.asarray(mesh.edges, dtype=np.int64).reshape(-1, 2))
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        is_open = len(triangles) > 0 and not mesh.closed
        if len(triangles) and not is_open and mass.enclosed_volume(vertices, triangles) < 0.0:
            triangles = triangles[:, ::-1]
        if radius > 0.0:
            (outer, inner), sharp = offset_faces(vertices, triangles, radius)
            self.corners = np.concatenate([outer, inner]) if is_open else outer
            self.rods, self.radius = vertices[np.concatenate([sharp, loose])], radius
        else:
            self.corners, self.rods = vertices[triangles], vertices[loose]
            self.radius = 0.004 * float(np.linalg.norm(high - low)) or 0.01
        self.normals, self.balls, self.open = corner_normals(self.corners), vertices[points], is_open and radius == 0.0
        reach = self.radius if len(self.rods) or len(points) else radius
        self.box = np.stack([low - reach, high + reach])
        self.extent = float(np.linalg.norm(vertices - 0.5 * (low + high), axis=1).max()) + reach
        self._source = vertices, triangles, loose, points, radius > 0.0

    @cached_property
    def mesh(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vertices (v, 3), triangles (t, 3) and unit normals (v, 3) of all, for programs that draw only triangles (`creased`)."""
        vertices, triangles, loose, points, is_round = self._source
        if is_round:
            return creased(*skin(vertices, triangles, loose, points, self.radius))
        return creased(*joined((vertices, triangles), skin(vertices, triangles[:0], loose, points, self.radius)))


def skin(
    vertices: np.ndarray, triangles: np.ndarray, loose: np.ndarray, points: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (v, 3) [m] and triangles (f, 3) of the surface around a mesh: moved faces, tubes about edges and balls.

    Hidden parts inside are kept. loose: (c, 2) edges of no triangle; points: (p,) of no edge."""
    faces, sharp = offset_faces(vertices, triangles, radius)
    edges = np.concatenate([sharp, loose])
    middles = np.unique(np.concatenate([edges.ravel(), points])).astype(int)
    ball, round_faces = sphere(radius, 3 if len(middles) <= 8 else 2)
    return joined(
        copies(faces.reshape(-1, 3, 3), np.array([[0, 1, 2]])),
        copies(*_tubes(vertices[edges], radius)),
        copies(vertices[middles][:, None] + ball, round_faces),
    )


def copies(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One mesh of k meshes with vertices (k, v, 3) and the same triangles (f, 3)."""
    starts = vertices.shape[1] * np.arange(len(vertices))
    return vertices.reshape(-1, 3), (triangles + starts[:, None, None]).reshape(-1, 3)


def offset_faces(vertices: np.ndarray, triangles: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return faces (f, 3) moved outwards by a radius, and to the other side, turned (2, f, 3, 3); and sharp edges (k, 2).

    Faces with an almost flat edge remain joined: its ends are moved along the area-weighted mean of the faces' normals,
    if it is close to the normal of each.
    """
    corners = vertices[triangles]
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal, area = unit(area, 0.0), area.repeat(3, axis=0)
    sides = _sides(triangles)
    edges, number, count = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True)
    number = number.reshape(-1)
    # corners of faces at the ends of the sides, in the order of the edge's vertices
    ends = np.take_along_axis(_sides(np.arange(triangles.size).reshape(-1, 3)), np.argsort(sides, axis=1), axis=1)
    total = np.zeros((len(edges), 3))
    np.add.at(total, number, np.tile(normal, (3, 1)))
    # two unit normals at the angle t add up to 2 cos t/2
    flat = (count == 2) & (np.einsum("ei,ei->e", total, total) > 2.0 + 2.0 * FLAT)
    while True:
        pairs = np.flatnonzero(flat[number])
        pairs = pairs[np.argsort(number[pairs], kind="stable")].reshape(-1, 2)
        group = connected_labels(triangles.size, ends[pairs].transpose(0, 2, 1).reshape(-1, 2))
        total = np.zeros_like(area)
        np.add.at(total, group, area)
        out = unit(total, 0.0)[group].reshape(corners.shape)
        apart = np.einsum("fci,fi->fc", out, normal).reshape(-1) < FLAT
        is_bent = flat & (np.bincount(number, apart[ends].any(axis=1), minlength=len(edges)) > 0)
        if not is_bent.any():
            break
        flat &= ~is_bent
    return np.stack([corners + radius * out, (corners - radius * out)[:, ::-1]]), edges[~flat]


def _tubes(ends: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Open tubes about segments (e, 2, 3): vertices (e, v, 3), triangles (f, 3) of one tube."""
    x, y = perpendicular(unit(ends[:, 1] - ends[:, 0]))
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = radius * (np.cos(angle)[:, None] * x[:, None] + np.sin(angle)[:, None] * y[:, None])
    here, following = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND
    lower = np.stack([here, following, AROUND + following], axis=1)
    upper = np.stack([here, AROUND + following, AROUND + here], axis=1)
    return np.concatenate([ends[:, :1] + ring, ends[:, 1:] + ring], axis=1), np.concatenate([lower, upper])


def corner_normals(corners: np.ndarray) -> np.ndarray:
    """(f, 3, 3) unit normals at the corners (f, 3, 3) of triangles: area-weighted means over adjacent faces within `CREASE`.

    They are zero for a face without area."""
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
    """Vertices (v, 3), separate on each side of a crease, triangles (f, 3) of positive area, and unit normals (v, 3)."""
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


def scaled_rotations(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotations R (n, 3, 3) and scales s (n, 3) of maps A (n, 3, 3), and the remaining shear ``A - R diag(s)``.

    Scales are the lengths of the columns of A; R is closest to their directions.
    """
    scales = np.sqrt(np.einsum("nij,nij->nj", A, A))  # faster than reductions over short axes
    R = polar(A / np.where(scales > 0.0, scales, 1.0)[:, None])
    return R, scales, A - R * scales[:, None]


def segment_poses(ends: np.ndarray, radius: np.ndarray, shortest: float = 0.0) -> np.ndarray:
    """(..., 4, 4) maps of a shape of radius 1 along z from 0 to 1 onto segments (..., 2, 3) with radii (...,) [m].

    shortest: length of the shapes of shorter segments [m].
    """
    along = ends[..., 1, :] - ends[..., 0, :]
    out = np.zeros((*along.shape[:-1], 4, 4))
    out[..., :3, :3] = triad(unit(along))
    out[..., :3, :2] *= np.asarray(radius)[..., None, None]
    out[..., :3, 2] *= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), shortest)
    out[..., :3, 3] = ends[..., 0, :]
    out[..., 3, 3] = 1.0
    return out


def unit(vectors: np.ndarray, otherwise: float | tuple[float, ...] = (0.0, 0.0, 1.0)) -> np.ndarray:
    """(..., 3) unit vectors, and `otherwise` for zero vectors."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.full_like(vectors, otherwise), where=length > 0.0)


def perpendicular(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (k, 3) perpendicular to unit vectors (k, 3) and to each other."""
    x = unit(np.cross(axis, np.eye(3)[np.argmin(np.abs(axis), axis=1)]))
    return x, np.cross(axis, x)


def _welded(points: np.ndarray) -> np.ndarray:
    """(k,) index of the distinct position of each point, to a millionth of the extent."""
    extent = np.ptp(points, axis=0).max() or 1.0
    return np.unique(np.round(points / (1e-6 * extent)), axis=0, return_inverse=True)[1].reshape(-1)


def _loose_edges(triangles: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(k, 2) edges without triangles."""
    span = np.array([int(max(triangles.max(initial=0), edges.max(initial=0))) + 1, 1])
    return edges[~np.isin(np.sort(edges, axis=1) @ span, np.sort(_sides(triangles), axis=1) @ span)]


def _sides(triangles: np.ndarray) -> np.ndarray:
    """(3 f, 2) sides of triangles (f, 3)."""
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
