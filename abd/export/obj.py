"""OBJ: a folder of one file per frame, `frame_00000.obj` and so on, with the materials in `scene.mtl`.

Vertices are in the world, metres, each body an object of its name. All frames have the same faces. Numbers have as many
decimals as it takes for a ten-millionth of the scene's size. The time of each frame is in its first line.
"""

from __future__ import annotations

import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import warp as wp

from abd.backends.device.cuda_support import start_warp
from abd.backends.device.launcher import threads_available
from abd.export import obj_kernels as kernels
from abd.export.formats import ExportError
from abd.export.scenery import Scenery
from abd.export.whole import WholeMesh

MATERIALS = "scene.mtl"


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the folder; one of an earlier export is replaced, any other is refused."""
    if path.exists() and not _ours(path):
        raise ExportError(f"{path} exists and is not a folder of an earlier export: give another --out")
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    mesh = WholeMesh(scenery, len(scenery.time))
    faces = _faces(mesh)
    (part / MATERIALS).write_text(_materials(mesh), encoding="utf-8")
    places = decimals(scenery.extent)
    width = max(5, len(str(max(len(scenery.time) - 1, 0))))

    def write_frame(frame: int, pose: np.ndarray) -> None:
        heading = f"# {scenery.name}, t = {scenery.time[frame]:.9g} s\nmtllib {MATERIALS}\n"
        with open(part / f"frame_{frame:0{width}d}.obj", "wb") as out:
            out.write(heading.encode())
            out.write(vertex_lines(mesh.mapped(pose), places))
            out.write(faces)

    start_warp()
    with ThreadPoolExecutor(threads_available(), "abd-obj") as pool:
        for frames, poses in scenery.by_frames():
            # one portion at a time: no more of them are in memory
            deque(pool.map(write_frame, frames, poses), maxlen=0)
    shutil.rmtree(path, ignore_errors=True)
    part.replace(path)
    return [f"{len(scenery.time)} files of {len(mesh)} vertices and {len(mesh.triangles)} triangles"]


def decimals(extent: float) -> int:
    """Digits after the point of a scene of this size [m]."""
    return int(np.clip(7 - np.floor(np.log10(extent)), 0, 15))


def vertex_lines(vertices: np.ndarray, places: int) -> bytes:
    """Lines ``v x y z`` of vertices (v, 3), in columns."""
    if len(vertices) == 0:
        return b""
    largest = np.rint(np.abs(vertices).max() * 10.0**places)
    if not largest < 2.0**62:
        raise ExportError("a vertex is not finite, or too far away for the number of digits")
    whole = max(len(str(int(largest))) - places, 1)
    width = 2 + whole + places + (places > 0)  # a space, a sign, digits, the point
    text = np.empty((len(vertices), 2 + 3 * width), dtype=np.uint8)
    inputs = [np.ascontiguousarray(vertices), 10.0**places, places, width, text]
    wp.launch(kernels.write_vertices, dim=len(vertices), inputs=inputs, device="cpu")
    return text.tobytes()


def _faces(mesh: WholeMesh) -> bytes:
    """Objects and their faces, the same in all frames."""
    _, number = np.unique(np.round(255.0 * mesh.colors).astype(int), axis=0, return_inverse=True)
    number = number.reshape(-1)
    blocks, taken = [], set()
    for part, name in enumerate(mesh.names):
        first, last = mesh.triangle_starts[part : part + 2]
        blocks.append(f"o {_unused(name.replace(' ', '_'), taken)}\nusemtl color_{number[part]}\n")
        blocks += [f"f {a} {b} {c}\n" for a, b, c in (mesh.triangles[first:last] + 1).tolist()]
    return "".join(blocks).encode()


def _unused(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken; it is from then on."""
    new, k = name, 1
    while new in taken:
        new, k = f"{name}_{k}", k + 1
    taken.add(new)
    return new


def _materials(mesh: WholeMesh) -> str:
    """The colours."""
    colors = np.unique(np.round(255.0 * mesh.colors).astype(int), axis=0) / 255.0
    return "".join(
        f"newmtl color_{k}\nKd {r:.6g} {g:.6g} {b:.6g}\nd {opacity:.6g}\n"
        for k, (r, g, b, opacity) in enumerate(colors)
    )


def _ours(path: Path) -> bool:
    """Whether a folder contains only an earlier export."""
    if not path.is_dir():
        return False
    return all(item.name == MATERIALS or item.match("frame_*.obj") for item in path.iterdir())
