"""GLB: binary glTF 2.0 in which every body is a node with animated translation, rotation and scale.

A node has no shear. The map A of a body is written as ``R diag(s)``, R the rotation closest to A and s the diagonal of
``R^T A``; what is lost is the rest, ``A - R diag(s)``, which is reported as a strain and as the largest distance by which a
vertex is displaced. Scale is animated for bodies whose s departs from 1 by more than `UNIT`, and values that do
not change are not animated at all. glTF is y up: a node at the root turns scenes whose z is up.

Format: Khronos glTF 2.0 specification. The binary part is written to a file of its own, body by body, and then put behind the
list of contents, so that memory stays bounded.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np

from abd.colors import to_linear
from abd.export.formats import ExportError
from abd.export.palette import distinct_colors
from abd.export.scenery import Scenery
from abd.export.symbols import Figure
from abd.rotations import polar

UNIT = 1e-6
"""Departure of a scale from 1 that is not written: that of single precision."""
LARGEST = 2**32 - 1
FLOAT, UINT = 5126, 5125
VERTICES, CORNERS = 34962, 34963


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the file; the notes have what the format cannot represent."""
    part, binary = path.with_name(path.name + ".part"), path.with_name(path.name + ".bin.part")
    try:
        with open(binary, "wb") as stream:
            writer = _Writer(stream, scenery)
            writer.write()
        _assemble(writer.document, binary, part)
        part.replace(path)
    finally:
        binary.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    return writer.notes()


def _assemble(document: dict, binary: Path, path: Path) -> None:
    """Header, list of contents and binary part in one file."""
    size = binary.stat().st_size
    document["buffers"] = [{"byteLength": size}]
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    total = 12 + 8 + len(text) + 8 + size
    if total > LARGEST:
        raise ExportError(f"{path}: {total / 2**30:.1f} GiB, and GLB files have at most 4 GiB: export to usd or vtk instead")
    with open(path, "wb") as out, open(binary, "rb") as stream:
        out.write(struct.pack("<4sII", b"glTF", 2, total))
        out.write(struct.pack("<I4s", len(text), b"JSON") + text)
        out.write(struct.pack("<I4s", size, b"BIN\0"))
        shutil.copyfileobj(stream, out, 1 << 22)


class _Writer:
    """Fills the binary part, and lists what is in it."""

    def __init__(self, stream, scenery: Scenery):
        self.stream, self.scenery = stream, scenery
        self.position = 0
        self.strain, self.distance = 0.0, 0.0
        self.document: dict = {
            "asset": {"version": "2.0", "generator": "abd"},
            "scene": 0,
            "scenes": [{"name": scenery.name, "nodes": [0]}],
            "nodes": [],
            "meshes": [],
            "materials": [],
            "accessors": [],
            "bufferViews": [],
        }
        self.colors, self.color_of = distinct_colors(
            np.array([*scenery.colors, *(marker.color for marker in scenery.markers)]).reshape(-1, 4)
        )
        self.parts: dict[int, dict] = {}
        self.meshes: dict[tuple[int, int], int] = {}
        single = scenery.time - scenery.time[0]
        self.frames = np.flatnonzero(np.diff(single.astype(np.float32), prepend=-1.0) > 0.0)
        self.reach = np.array([np.linalg.norm(one.vertices, axis=1).max(initial=0.0) for one in scenery.figures])

    def write(self) -> None:
        """All nodes, meshes and animations."""
        scenery, nodes = self.scenery, self.document["nodes"]
        root = {"name": scenery.name, "children": []}
        if scenery.up == "Z":
            half = float(np.sqrt(0.5))
            root["rotation"] = [-half, 0.0, 0.0, half]
        nodes.append(root)
        time = (scenery.time - scenery.time[0]).astype(np.float32)[self.frames]
        moving = len(time) > 1
        clock = self._accessor(time, "SCALAR", bounds=True) if moving else None
        self.samplers, self.channels = [], []
        for things, poses in scenery.by_things():
            poses = poses[self.frames]
            for k, values in enumerate(self._decomposed(things, poses)):
                root["children"].append(len(nodes))
                self._node(things[k], values, clock)
        offset = len(scenery)
        for k, marker in enumerate(scenery.markers):
            parent = nodes[1 + marker.body]
            parent.setdefault("children", []).append(len(nodes))
            nodes.append({"name": f"joint {marker.name}", "mesh": self._mesh(marker.figure, offset + k)})
        if not root["children"]:
            del root["children"]
        if self.channels:
            self.document["animations"] = [{"name": "run", "samplers": self.samplers, "channels": self.channels}]
        for key in ("meshes", "materials", "accessors", "bufferViews"):
            if not self.document[key]:
                del self.document[key]

    def notes(self) -> list[str]:
        """Notes on the contents of the file and on losses."""
        lost = len(self.scenery.time) - len(self.frames)
        notes = [
            f"shear is not part of the format: a strain of at most {self.strain:.2g} is lost, "
            f"which moves no vertex by more than {self.distance:.2g} m"
        ]
        if lost:
            notes.append(f"{lost} frames are skipped: in single precision their times equal those of other frames")
        return notes

    def _decomposed(self, things: range, poses: np.ndarray):
        """Translation (T, 3), rotation (T, 4) as x, y, z, w, and scale (T, 3) of every thing."""
        count, number = poses.shape[:2]
        maps = np.ascontiguousarray(np.swapaxes(poses[..., :3, :3], 0, 1)).reshape(-1, 3, 3)
        is_strut = things.start >= self.scenery.bodies
        if is_strut:
            # columns at right angles, of very different lengths: their directions are the rotation
            scale = np.linalg.norm(maps, axis=1)
            rotation = maps / scale[:, None, :]
        else:
            rotation = polar(maps)
            scale = np.einsum("kji,kji->ki", rotation, maps)
            lost = np.abs(maps - rotation * scale[:, None, :]).reshape(number, -1)
            worst = 3.0 * lost.max(axis=1, initial=0.0)
            figure = self.scenery.figure[things.start : things.stop]
            reach = np.where(figure >= 0, self.reach[figure], 0.0) if len(self.reach) else 0.0
            self.strain = max(self.strain, float(lost.max(initial=0.0)))
            self.distance = max(self.distance, float((worst * reach).max(initial=0.0)))
        turned = quaternions(rotation).reshape(number, count, 4)
        scale = scale.reshape(number, count, 3)
        for k in range(number):
            yield poses[:, k, :3, 3], _continuous(turned[k]), scale[k]

    def _node(self, thing: int, values: tuple, clock: int | None) -> None:
        scenery, nodes = self.scenery, self.document["nodes"]
        translation, rotation, scale = (np.ascontiguousarray(value, dtype=np.float32) for value in values)
        node = {"name": scenery.names[thing]}
        figure = int(scenery.figure[thing])
        if figure >= 0 and len(scenery.figures[figure].triangles):
            node["mesh"] = self._mesh(figure, thing)
        written = {"translation": translation, "rotation": rotation}
        if np.abs(scale - 1.0).max(initial=0.0) > UNIT:
            written["scale"] = scale
        for name, value in written.items():
            if len(value):
                node[name] = value[0].tolist()
            if clock is not None and (value != value[0]).any():
                output = self._accessor(value, f"VEC{value.shape[1]}")
                self.channels.append({"sampler": len(self.samplers), "target": {"node": len(nodes), "path": name}})
                self.samplers.append({"input": clock, "output": output})
        nodes.append(node)

    def _mesh(self, figure: int, colored: int) -> int:
        """Number of the mesh of a figure in the colour of a thing or a marker."""
        material = int(self.color_of[colored])
        if (figure, material) not in self.meshes:
            if not self.document["materials"]:
                self.document["materials"] = [_material(color, self.scenery) for color in self.colors]
            primitive = {**self._part(figure), "material": material}
            self.meshes[figure, material] = len(self.document["meshes"])
            self.document["meshes"].append({"primitives": [primitive]})
        return self.meshes[figure, material]

    def _part(self, number: int) -> dict:
        """Accessors of a figure's vertices, normals and triangles."""
        if number not in self.parts:
            figure: Figure = self.scenery.figures[number]
            normals = figure.normals / np.linalg.norm(figure.normals, axis=1, keepdims=True)
            self.parts[number] = {
                "attributes": {
                    "POSITION": self._accessor(figure.vertices.astype(np.float32), "VEC3", VERTICES, bounds=True),
                    "NORMAL": self._accessor(normals.astype(np.float32), "VEC3", VERTICES),
                },
                "indices": self._accessor(figure.triangles.astype(np.uint32).ravel(), "SCALAR", CORNERS),
            }
        return self.parts[number]

    def _accessor(self, values: np.ndarray, kind: str, target: int | None = None, bounds: bool = False) -> int:
        """Append an array to the binary part; number of its accessor. All components have four bytes."""
        views, accessors = self.document["bufferViews"], self.document["accessors"]
        view = {"buffer": 0, "byteOffset": self.position, "byteLength": values.nbytes}
        if target is not None:
            view["target"] = target
        component = FLOAT if values.dtype == np.float32 else UINT
        entry = {"bufferView": len(views), "componentType": component, "count": len(values), "type": kind}
        if bounds:
            entry |= {
                "min": np.atleast_1d(values.min(axis=0)).tolist(),
                "max": np.atleast_1d(values.max(axis=0)).tolist(),
            }
        views.append(view)
        accessors.append(entry)
        self.stream.write(values.tobytes())
        self.position += values.nbytes
        return len(accessors) - 1


def quaternions(R: np.ndarray) -> np.ndarray:
    """(n, 4) unit quaternions x, y, z, w of rotations (n, 3, 3), from the largest of their squares."""
    xx, yy, zz = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    squares = np.stack([1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz, 1.0 + xx + yy + zz])
    a, b, c = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    d, e, f = R[:, 1, 0] + R[:, 0, 1], R[:, 0, 2] + R[:, 2, 0], R[:, 2, 1] + R[:, 1, 2]
    x, y, z, w = squares
    largest = squares.argmax(axis=0)
    rows = ((x, d, e, a), (d, y, f, b), (e, f, z, c), (a, b, c, w))
    out = np.stack([np.choose(largest, row) for row in rows], axis=1)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _continuous(q: np.ndarray) -> np.ndarray:
    """Quaternions (T, 4) of which none is more than half a turn from the one before, by their signs."""
    turned = np.einsum("ij,ij->i", q[1:], q[:-1]) < 0.0
    sign = np.cumprod(np.concatenate([[1.0], np.where(turned, -1.0, 1.0)]))
    return q * sign[:, None]


def _material(color: np.ndarray, scenery: Scenery) -> dict:
    """Material of one colour (sRGB and opacity)."""
    base = [*to_linear(color[:3]).tolist(), float(color[3])]
    surface = {"baseColorFactor": base, "metallicFactor": 0.0, "roughnessFactor": 0.7}
    out = {"pbrMetallicRoughness": surface, "doubleSided": any(one.open for one in scenery.figures)}
    return out | ({"alphaMode": "BLEND"} if color[3] < 1.0 else {})
