"""Tables of a scene from keyword arguments, with full keys in problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from abd.errors import SceneError
from abd.scene.schema.fields import ATOMS, ROTATION_KEYS, Spec, fields_set
from abd.scene.schema.findings import as_problem, located, schema_findings
from abd.scene.schema.values import numbers_value

Table = TypeVar("Table", bound=Spec)


def table(model: type[Table], key: str, fields: Mapping[str, Any]) -> Table:
    """Return the table of these fields; `SceneError` with all problems. None means "not given"."""
    given = plain(fields)
    if isinstance(given, dict):
        given = {name: value for name, value in given.items() if value is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        findings = schema_findings(error, model, given)
        raise SceneError([located(as_problem(finding, {}), key) for finding in findings]) from None


def plain(value: Any) -> Any:
    """NumPy arrays and numbers, paths, tuples and other tables as lists, numbers, texts and dictionaries."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Spec):
        return {key: item if type(item) in ATOMS else plain(item) for key, item in fields_set(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def scene_keys(key: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a scene file for these keyword arguments.

    Python has two more: `mesh` may be a `trimesh.Trimesh`, any object with vertices (v, 3) and faces (f, 3), or the two as a
    tuple; `transform` is a (4, 4) pose of the mesh frame [m]. They become `surface`, `position` and `matrix`, so that a scene
    stays plain data, which is saved and loaded.

    Args:
        key: of the table, for messages.

    Raises:
        SceneError: an invalid mesh or pose.
    """
    found = dict(keys)
    mesh = found.get("mesh")
    if mesh is not None and not isinstance(mesh, str | Path):
        del found["mesh"]
        if found.get("surface") is not None:
            message = "mesh and surface are given, but a body has one surface"
            raise SceneError.of(message, f"{key}.mesh", remedy="keep one of them")
        found["surface"] = _surface(f"{key}.mesh", mesh)
    pose = found.pop("transform", None)
    if pose is not None:
        given = [name for name in ("position", *ROTATION_KEYS) if found.get(name) is not None]
        if given:
            message = f"{given[0]} is given as well, but a body has one pose"
            raise SceneError.of(message, f"{key}.transform", remedy="keep one of them")
        found |= pose_keys(f"{key}.transform", pose)
    return found


def _surface(key: str, mesh: Any) -> dict[str, Any]:
    """The table `surface` of a mesh in memory."""
    if hasattr(mesh, "geometry") and hasattr(mesh, "graph"):
        remedy = "join its objects by scene.to_mesh(), or add a body for each"
        raise SceneError.of("is a scene of several objects", key, remedy=remedy)
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        vertices, faces = mesh.vertices, mesh.faces
    elif isinstance(mesh, tuple | list) and len(mesh) == 2:
        vertices, faces = mesh
    else:
        remedy = "give a path, a trimesh.Trimesh, or a tuple of vertices (v, 3) and faces (f, 3)"
        raise SceneError.of(f"is {type(mesh).__name__}, which is no mesh", key, remedy=remedy)
    return {
        "vertices": _rows(f"{key}.vertices", vertices, "numbers", float),
        "triangles": _rows(f"{key}.faces", faces, "integers", int),
    }


def _rows(key: str, values: Any, wanted: str, kind: type) -> Any:
    """Rows of three numbers of a kind, all of which are judged at once."""
    try:
        return numbers_value(f"rows of three {wanted}", (None, 3), kind=kind)(values)
    except PydanticCustomError as error:
        message = f"{error.message()}, not an array of shape {np.asarray(values, dtype=object).shape}"
        raise SceneError.of(message, key, remedy="give an array of finite numbers") from None


def pose_keys(key: str, pose: Any) -> dict[str, Any]:
    """Return position and rotation of a (4, 4) matrix; that it is a rotation is checked with the body or joint."""
    try:
        matrix = np.asarray(pose, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all() or (matrix[3] != (0.0, 0.0, 0.0, 1.0)).any():
        remedy = "give a (4, 4) matrix of finite numbers with last row 0 0 0 1"
        raise SceneError.of("is no pose", key, remedy=remedy)
    return {"position": matrix[:3, 3], "matrix": matrix[:3, :3]}
