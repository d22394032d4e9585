"""Values of a Newton model in a scene: names, transforms and shapes.

Sizes of shapes are half extents, radii and half heights; axes are z.
"""

from __future__ import annotations

import numpy as np

from abd.errors import AbdError
from abd.rotations import pose, quaternion_matrix
from abd.scene.geometry.shapes import sphere
from abd.scene.importers.compound import Collider, height_grid, hull


class ModelError(AbdError):
    """A Newton model with unsupported content."""

    exit_status = 2


def transform_matrix(values: np.ndarray) -> np.ndarray:
    """(4, 4) of Newton's transform: position, then quaternion x, y, z, w."""
    x, y, z, w = np.asarray(values[3:7], dtype=float)
    return pose(quaternion_matrix(np.array([w, x, y, z])), np.asarray(values[:3], dtype=float))


def unique_names(names: list[str]) -> list[str]:
    """Return unique names that are valid in a scene."""
    taken, out = {"world"}, []
    for name in names:
        plain = name.replace("/", ".").strip() or "body"
        new, k = plain, 1
        while new in taken or new == ".":
            new, k = f"{plain}#{k}", k + 1
        taken.add(new)
        out.append(new)
    return out


def plane_keys(place: np.ndarray) -> dict:
    """Return keys of the half-space below the x-y plane of a frame (4, 4)."""
    normal = place[:3, 2]
    return {"half_space": {"normal": normal.tolist(), "offset": float(normal @ place[:3, 3])}}


def enlarged(table: dict, margin: float) -> dict:
    """Return the keys of a body with a surface that is `margin` [m] further out."""
    if margin <= 0.0:
        return table
    for key, size in (("sphere", "radius"), ("capsule", "radius"), ("half_space", "offset")):
        if key in table:
            return table | {key: table[key] | {size: table[key][size] + margin}}
    if "radius" in table:
        return table | {"radius": table["radius"] + margin}
    return table if "proxy" in table else table | {"rounding": margin}


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
        out.make_frustum(float(scale[0]), float(scale[0]), 2.0 * float(scale[1]))
    elif kind == types.CONE:
        out.make_frustum(float(scale[0]), 0.0, 2.0 * float(scale[1]))
    elif kind == types.ELLIPSOID:
        vertices, triangles = sphere(1.0, 3)
        out.make_solid(vertices * scale, triangles)
    elif kind in (types.MESH, types.CONVEX_MESH):
        vertices = np.asarray(source.vertices, dtype=float).reshape(-1, 3) * scale
        triangles = np.asarray(source.indices, dtype=np.int64).reshape(-1, 3)
        if kind == types.CONVEX_MESH:
            out.make_solid(*hull(vertices))
        else:
            out.make_mesh(vertices, triangles[:, ::-1] if np.prod(scale) < 0.0 else triangles)
    elif kind == types.HFIELD:
        heights = np.asarray(source.data, dtype=float).reshape(int(source.nrow), int(source.ncol))
        out.make_mesh(*height_grid(source.hx, source.hy, source.min_z + heights * (source.max_z - source.min_z)))
    else:
        return None
    return out
