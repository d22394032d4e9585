"""OBJ: a folder of one file per frame, `frame_00000.obj` and so on, with the materials in `scene.mtl`.

Vertices are in world coordinates in metres; each body is an object with its name. All frames have the same faces. The
precision is a ten-millionth of the scene's size. The first line of a file has the time of its frame.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from abd.export.formats import ExportError
from abd.export.scenery import Scenery, distinct_colors
from abd.export.whole import WholeMesh
from abd.io.directory import replacing
from abd.scene.importers.formats import unique_names

MATERIALS = "scene.mtl"


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the folder; replaces an earlier export, but no other folder."""
    if path.exists() and not _is_earlier_export(path):
        raise ExportError(f"{path} exists and is not a folder of an earlier export: give another --out")
    mesh = WholeMesh(scenery, len(scenery.time))
    colors, color = distinct_colors(mesh.colors, len(mesh.colors))
    faces = _faces(mesh, color)
    places = int(np.clip(7 - np.floor(np.log10(scenery.extent)), 0, 15))
    width = max(5, len(str(max(len(scenery.time) - 1, 0))))
    with replacing(path) as part:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        lines = "newmtl color_{}\nKd {:.6g} {:.6g} {:.6g}\nd {:.6g}\n"
        materials = "".join(lines.format(k, *one) for k, one in enumerate(colors))
        (part / MATERIALS).write_text(materials, encoding="utf-8")
        for frames, poses in scenery.by_frames():
            for frame, pose in zip(frames, poses):
                heading = f"# {scenery.name}, t = {scenery.time[frame]:.9g} s\nmtllib {MATERIALS}\n"
                with open(part / f"frame_{frame:0{width}d}.obj", "wb") as out:
                    out.write(heading.encode())
                    out.write(vertex_lines(mesh.mapped(pose), places))
                    out.write(faces)
        shutil.rmtree(path, ignore_errors=True)
    return [f"{len(scenery.time)} files of {len(mesh)} vertices and {len(mesh.triangles)} triangles"]


def vertex_lines(vertices: np.ndarray, places: int) -> bytes:
    """Lines ``v x y z`` of vertices (v, 3)."""
    if not np.isfinite(vertices).all():
        raise ExportError("a vertex is not finite")
    line = f"v %.{places}f %.{places}f %.{places}f\n"
    return (line * len(vertices) % tuple(vertices.ravel().tolist())).encode()


def _faces(mesh: WholeMesh, color: np.ndarray) -> bytes:
    """Objects with indices of their colours (p,), and their faces, equal in all frames."""
    blocks, names = [], unique_names([part.title.replace(" ", "_") for part in mesh.parts])
    for k, name in enumerate(names):
        first, last = mesh.triangle_starts[k : k + 2]
        blocks.append(f"o {name}\nusemtl color_{color[k]}\n")
        blocks += [f"f {a} {b} {c}\n" for a, b, c in (mesh.triangles[first:last] + 1).tolist()]
    return "".join(blocks).encode()


def _is_earlier_export(path: Path) -> bool:
    """Whether a folder contains only an earlier export."""
    if not path.is_dir():
        return False
    return all(item.name == MATERIALS or item.match("frame_*.obj") for item in path.iterdir())
