"""Reader of mesh files: vertices, triangles, and polylines and points if the format has them.

OBJ is read here, because general-purpose readers drop its `l` and `p` elements and split vertices at texture seams; STL, PLY,
OFF and GLB are read by trimesh. STL and GLB repeat the vertices of
neighbouring triangles; equal ones are welded, since without it these surfaces would have no shared edges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

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
    edges: np.ndarray
    points: np.ndarray
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, vertices: ArrayLike, triangles: ArrayLike = (), edges: ArrayLike = (), points: ArrayLike = ()) -> RawMesh:
        """Return the mesh of these rows, which may be lists."""
        faces, segments, single = (np.array(rows, dtype=np.int64) for rows in (triangles, edges, points))
        return cls(np.array(vertices, dtype=float).reshape(-1, 3), faces.reshape(-1, 3), segments.reshape(-1, 2), single)


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
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise _unreadable(path, f"is not a valid {path.suffix} file ({reason})") from None
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
            numbers = [int(item.split("/", 1)[0]) for item in items]
        except ValueError:
            raise _unreadable(path, f"cannot read the indices of '{line.strip()}'", line=number) from None
        least = {"f": 3, "l": 2, "p": 1}[keyword]
        if len(numbers) < least or 0 in numbers:
            raise _unreadable(path, f"'{line.strip()}' needs at least {least} indices, counted from 1", line=number)
        # Negative indices count backwards from the vertices read so far.
        indices = [one - 1 if one > 0 else len(vertices) + one for one in numbers]
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
    triangles = fans(np.array([*map(len, polygons)], dtype=np.int64), np.array([*chain(*polygons)], dtype=np.int64))
    hollow = 0
    for polygon in polygons:
        if len(polygon) > 3 and min(polygon) >= 0 and max(polygon) < len(coordinates):
            corner = coordinates[polygon]
            normals = np.cross(corner[1:-1] - corner[0], corner[2:] - corner[0])
            hollow += bool((normals @ normals.sum(axis=0) < 0.0).any())
    notes = [f"{hollow} polygons are not convex; they were cut into triangle fans, which may overlap"] if hollow else []
    return replace(RawMesh.of(coordinates, triangles, edges, points), notes=notes)


def fans(counts: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return triangles (f, 3) of polygons, each a fan about its first corner.

    Args:
        counts: (p,) corners of every polygon; corners: their vertices, polygon by polygon.
    """
    first = np.repeat(np.cumsum(counts) - counts, counts - 2)
    step = np.arange(len(first)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), counts - 2)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1)


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
        stated = {kind: int(count) for kind, count in re.findall(rb"element\s+(vertex|face)\s+(\d+)", header)}
        found = len(vertices), len(triangles)
        if stated.get(b"vertex", 0) > found[0] or stated.get(b"face", 0) > found[1]:
            raise _unreadable(path, f"has {found[0]} vertices and {found[1]} triangles, fewer than in its header")
    if path.suffix.lower() in (".stl", ".glb"):
        vertices, index = weld_equal_vertices(vertices)
        triangles = index[triangles]
    return RawMesh.of(vertices, triangles)


READERS = {
    ".obj": _read_obj,
    ".stl": _read_by_trimesh,
    ".ply": _read_by_trimesh,
    ".off": _read_by_trimesh,
    ".glb": _read_by_trimesh,
}
"""Reader of every mesh format, by suffix."""


def _unreadable(path: Path, message: str, line: int | None = None) -> SceneError:
    return SceneError.of(message, file=str(path), line=line, value=str(path))
