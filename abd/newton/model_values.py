"""Values of a Newton model in a scene: names, transforms and shapes.

Sizes of shapes are half extents, radii and half heights; axes are z.
"""

from __future__ import annotations

import numpy as np

from abd.errors import UsageError
from abd.rotations import pose, quaternion_matrix
from abd.scene.geometry.shapes import sphere
from abd.scene.importers import formats
from abd.scene.importers.compound import Collider, height_grid, hull


class ModelError(UsageError):
    """A Newton model with unsupported content."""


def transform_matrix(values: np.ndarray) -> np.ndarray:
    """Return the matrix (4, 4) of Newton's transform: position, then quaternion x, y, z, w."""
    x, y, z, w = np.asarray(values[3:7], dtype=float)
    return pose(quaternion_matrix(np.array([w, x, y, z])), np.asarray(values[:3], dtype=float))


def unique_names(names: list[str]) -> list[str]:
    """Return unique names that are valid in a scene."""
    return formats.unique_names([name.replace("/", ".").strip() or "body" for name in names], ("world", "."))


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


def shape_collider(kind: str, label: str, scale: np.ndarray, source, place: np.ndarray) -> Collider:
    """Return the collider of a shape at a pose (4, 4), with its sizes (3,) [m] or its source; `ModelError` if not supported.

    kind: name of the type in Newton's `GeoType`; label: name of the shape for messages."""
    out, (a, b, _) = Collider("", place), scale.tolist()
    match kind:
        case "SPHERE":
            out.make_sphere(a)
        case "BOX":
            out.make_box(2.0 * scale)
        case "CAPSULE":
            out.make_capsule(a, 2.0 * b)
        case "CYLINDER":
            out.make_frustum(a, a, 2.0 * b)
        case "CONE":
            out.make_frustum(a, 0.0, 2.0 * b)
        case "ELLIPSOID":
            vertices, triangles = sphere(1.0, 3)
            out.make_solid(vertices * scale, triangles)
        case "CONVEX_MESH":
            out.make_solid(*hull(np.asarray(source.vertices, dtype=float).reshape(-1, 3) * scale))
        case "MESH":
            triangles = np.asarray(source.indices, dtype=np.int64).reshape(-1, 3)
            vertices = np.asarray(source.vertices, dtype=float).reshape(-1, 3) * scale
            out.make_mesh(vertices, triangles[:, ::-1] if np.prod(scale) < 0.0 else triangles)
        case "HFIELD":
            heights = np.asarray(source.data, dtype=float).reshape(int(source.nrow), int(source.ncol))
            out.make_mesh(*height_grid(source.hx, source.hy, source.min_z + heights * (source.max_z - source.min_z)))
        case _:
            raise ModelError(f"shape '{label}' is of type {kind}, which SolverABD does not support")
    return out
