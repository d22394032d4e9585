"""Reader of mesh files: vertices, triangles, and polylines and points if the format has them.

OBJ is read here, because general-purpose readers drop its `l` and `p` elements and split vertices at texture seams; STL, PLY,
OFF and GLB are read by trimesh. STL and GLB repeat the vertices of
neighbouring triangles; equal ones are welded, since without it these surfaces would have no shared edges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.scene.schema.findings import as_problem, check_file
from abd.scene.schema.values import LARGEST

MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""Exceptions of readers for invalid files."""


@dataclass
class RawMesh:
    """Content of a file: vertices (v, 3), triangles (f, 3), polyline segments (e, 2), points (p,), notes."""

    vertices: np.ndarray
    triangles: np.ndarray
    edges: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    points: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: list[str] = field(default_factory=list)


def read_mesh_file(path: Path) -> RawMesh:
    """Read an .obj, .stl, .ply, .off or .glb file, chosen by its suffix.

    Raises:
        SceneError: the file is missing or invalid; with its name and line.
    """
    problems = [as_problem(finding, None, str(path)) for finding in check_file(path, READERS, "mesh file")]
    if problems:
        raise SceneError(problems)
    try:
        mesh = READERS[path.suffix.lower()](path)
    except MALFORMED as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise _unreadable(path, f"is not a valid {path.suffix} file ({told})") from None
    if (np.abs(mesh.vertices) > LARGEST).any():
        raise _unreadable(path, f"has vertices beyond {LARGEST:g}")
    return mesh


def weld_equal_vertices(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices (w, 3), in the order of their first occurrence, and the new index (v,) of every old one."""
    # Adding zero turns -0.0 into 0.0, which should count as equal to it.
    _, first, inverse = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return vertices[first[order]], rank[inverse.reshape(-1)]


def _read_obj(path: Path) -> RawMesh:
    """Wavefront OBJ: `v`, `f` (polygons as fans), `l` (polylines), `p` (points); everything else is ignored."""
    vertices: list[list[str]] = []
    polygons: list[list[int]] = []
    edges: list[tuple[int, int]] = []
    points: list[int] = []
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    for number, line in enumerate(text.replace("\\\n", "  ").splitlines(), start=1):
        words = line.split()
        if not words or words[0] not in ("v", "f", "l", "p"):
            continue
        keyword, items = words[0], words[1:]
        if keyword == "v":
            if len(items) < 3:
                raise _unreadable(path, f"a vertex must have three numbers: '{line.strip()}'", line=number)
            vertices.append(items[:3])
            continue
        try:
            indices = [int(item.split("/", 1)[0]) for item in items]
        except ValueError:
            raise _unreadable(path, f"cannot read the indices of '{line.strip()}'", line=number) from None
        # Negative indices count backwards from the vertices read so far.
        indices = [index - 1 if index > 0 else len(vertices) + index for index in indices]
        least = {"f": 3, "l": 2, "p": 1}[keyword]
        if len(indices) < least or 0 in [int(item.split("/", 1)[0]) for item in items]:
            raise _unreadable(path, f"'{line.strip()}' needs at least {least} indices, counted from 1", line=number)
        if keyword == "f":
            polygons.append(indices)
        elif keyword == "l":
            edges.extend(pairwise(indices))
        else:
            points.extend(indices)
    try:
        coordinates = np.array(vertices, dtype=float).reshape(-1, 3)
    except ValueError as error:
        raise _unreadable(path, f"a vertex must have three numbers: {error}") from None
    triangles, notes = _fans(coordinates, polygons)
    return RawMesh(coordinates, triangles, _indices(edges, 2), np.array(points, dtype=np.int64), notes)


def _fans(vertices: np.ndarray, polygons: list[list[int]]) -> tuple[np.ndarray, list[str]]:
    """Triangles (f, 3) of convex polygons, each a fan about its first corner; a note if one is not convex."""
    triangles = [(p[0], p[k], p[k + 1]) for p in polygons for k in range(1, len(p) - 1)]
    hollow = 0
    for polygon in polygons:
        if len(polygon) > 3 and min(polygon) >= 0 and max(polygon) < len(vertices):
            corner = vertices[polygon]
            normals = np.cross(corner[1:-1] - corner[0], corner[2:] - corner[0])
            hollow += bool((normals @ normals.sum(axis=0) < 0.0).any())
    notes = [f"{hollow} polygons are not convex; they were cut into triangle fans, which may overlap"] if hollow else []
    return _indices(triangles, 3), notes


def _read_by_trimesh(path: Path) -> RawMesh:
    """STL, PLY, OFF and GLB; all objects of a GLB scene are placed and joined. A PLY without faces is a set of points."""
    import trimesh

    try:
        loaded = trimesh.load(path, process=False)
        if isinstance(loaded, trimesh.Scene):
            loaded = loaded.to_mesh()
    except Exception as error:  # trimesh raises whatever its parsers meet
        raise _unreadable(path, f"is not a valid {path.suffix} file ({type(error).__name__}: {error})") from None
    vertices = np.array(loaded.vertices, dtype=float)
    triangles = np.array(getattr(loaded, "faces", np.zeros((0, 3))), dtype=np.int64).reshape(-1, 3)
    if path.suffix.lower() == ".ply":
        header = path.read_bytes().partition(b"end_header")[0]
        told = {kind: int(count) for kind, count in re.findall(rb"element\s+(vertex|face)\s+(\d+)", header)}
        found = len(vertices), len(triangles)
        if told.get(b"vertex", 0) > found[0] or told.get(b"face", 0) > found[1]:
            raise _unreadable(path, f"has {found[0]} vertices and {found[1]} triangles, fewer than in its header")
    if path.suffix.lower() in (".stl", ".glb"):
        vertices, index = weld_equal_vertices(vertices)
        triangles = index[triangles]
    return RawMesh(vertices, triangles)


READERS = {
    ".obj": _read_obj,
    ".stl": _read_by_trimesh,
    ".ply": _read_by_trimesh,
    ".off": _read_by_trimesh,
    ".glb": _read_by_trimesh,
}
"""Reader of every mesh format, by suffix."""


def _indices(rows: list, width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _unreadable(path: Path, message: str, line: int | None = None, remedy: str = "") -> SceneError:
    return SceneError.of(message, file=str(path), line=line, value=str(path), remedy=remedy)
