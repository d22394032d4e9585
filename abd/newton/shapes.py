"""Newton's shapes as colliders: sizes are half extents, radii and half heights, axes are z."""

from __future__ import annotations

import numpy as np

from abd.scene.geometry import mass
from abd.scene.geometry.meshes import is_closed
from abd.scene.geometry.shapes import sphere
from abd.scene.importers.compound import Collider, hull


def plane_keys(place: np.ndarray) -> dict:
    """Keys of the half-space below the x-y plane of a frame (4, 4)."""
    normal = place[:3, 2]
    return {"half_space": {"normal": normal.tolist(), "offset": float(normal @ place[:3, 3])}}


def shape_collider(newton, kind: int, scale: np.ndarray, source, place: np.ndarray) -> Collider | None:
    """The collider of a shape of a type, with its sizes (3,) [m] or its source; None for types that are unknown here."""
    types, out = newton.GeoType, Collider("", place.copy())
    if kind == types.SPHERE:
        out.make_sphere(float(scale[0]))
    elif kind == types.BOX:
        out.make_box(2.0 * scale)
    elif kind == types.CAPSULE:
        out.make_capsule(float(scale[0]), 2.0 * float(scale[1]))
    elif kind == types.CYLINDER:
        out.make_cone(float(scale[0]), float(scale[0]), 2.0 * float(scale[1]))
    elif kind == types.CONE:
        out.make_cone(float(scale[0]), 0.0, 2.0 * float(scale[1]))
    elif kind == types.ELLIPSOID:
        vertices, triangles = sphere(1.0, 3)
        out.make_solid(vertices * scale, triangles)
    elif kind in (types.MESH, types.CONVEX_MESH):
        vertices = np.asarray(source.vertices, dtype=float).reshape(-1, 3) * scale
        triangles = np.asarray(source.indices, dtype=np.int64).reshape(-1, 3)
        if kind == types.CONVEX_MESH:
            out.make_solid(*hull(vertices))
        else:
            _set_mesh(out, vertices, triangles[:, ::-1] if np.prod(scale) < 0.0 else triangles)
    elif kind == types.HFIELD:
        _set_mesh(out, *_height_field(source))
    else:
        return None
    return out


def _set_mesh(out: Collider, vertices: np.ndarray, triangles: np.ndarray) -> None:
    out.vertices, out.triangles = vertices, triangles
    if is_closed(vertices, triangles) and mass.enclosed_volume(vertices, triangles) != 0.0:
        out.matter = mass.solid(vertices, triangles, 1.0)


def _height_field(field) -> tuple[np.ndarray, np.ndarray]:
    """Open surface of a height field."""
    rows, columns = int(field.nrow), int(field.ncol)
    heights = field.min_z + np.asarray(field.data, dtype=float).reshape(rows, columns) * (field.max_z - field.min_z)
    x, y = np.meshgrid(np.linspace(-field.hx, field.hx, columns), np.linspace(-field.hy, field.hy, rows))
    grid = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (grid[s].ravel() for s in (np.s_[:-1, :-1], np.s_[:-1, 1:], np.s_[1:, 1:], np.s_[1:, :-1]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return np.stack([x, y, heights], axis=2).reshape(-1, 3), triangles
