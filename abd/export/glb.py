"""GLB: binary glTF 2.0 (Khronos) in which every body is a node with animated translation, rotation and scale.

A node has no shear. The map A of a body becomes ``R diag(s)`` (`abd.pictures.shapes.scaled_rotations`). The remainder
``A - R diag(s)`` is lost; notes report it as a strain and as the largest displacement of a vertex. Constant values, and scales
within `SCALE_TOLERANCE` of 1, are not animated. glTF is y up: a root node rotates scenes whose z is up.

The binary part is written to a file of its own, body by body, so that memory is bounded, and appended to the JSON document.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from abd.colors import to_linear
from abd.export.formats import ExportError
from abd.export.scenery import Scenery, distinct_colors
from abd.io.directory import replacing
from abd.pictures.shapes import scaled_rotations
from abd.rotations import quaternions

SCALE_TOLERANCE = 1e-6
"""Largest deviation of a scale from 1 that is ignored, at single precision."""
LARGEST = 2**32 - 1
FLOAT, UINT = 5126, 5125
VERTICES, CORNERS = 34962, 34963


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the file; notes describe what the format cannot represent."""
    with replacing(path) as part, TemporaryFile(dir=path.parent) as binary:
        writer = _Writer(binary, scenery)
        document, size = writer.write(), binary.tell()
        text = json.dumps(document | {"buffers": [{"byteLength": size}]}, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        total = 12 + 8 + len(text) + 8 + size
        if total > LARGEST:
            amount = f"{total / 2**30:.1f} GiB"
            raise ExportError(f"{path}: {amount}, and GLB files have at most 4 GiB: export to usd or vtk instead")
        with open(part, "wb") as out:
            out.write(struct.pack("<4sII", b"glTF", 2, total))
            out.write(struct.pack("<I4s", len(text), b"JSON") + text)
            out.write(struct.pack("<I4s", size, b"BIN\0"))
            binary.seek(0)
            shutil.copyfileobj(binary, out, 1 << 22)
    lost = len(scenery.time) - len(writer.frames)
    notes = []
    if writer.strain:
        notes = [
            f"shear is not part of the format: a strain of at most {writer.strain:.2g} is lost, "
            f"which moves no vertex by more than {writer.distance:.2g} m"
        ]
    if lost:
        notes.append(f"{lost} frames are skipped: in single precision their times equal those of other frames")
    return notes


class _Writer:
    """Writes the binary part, and collects its JSON document.

    frames: written frames; strain, distance: largest lost strain, and the largest displacement of a vertex by it [m]."""

    def __init__(self, stream, scenery: Scenery):
        self.stream, self.scenery = stream, scenery
        self.strain, self.distance = 0.0, 0.0
        self.nodes, self.meshes, self.accessors, self.views = [], [], [], []
        colors = [*scenery.colors, *(marker.color for marker in scenery.markers)]
        self.colors, self.color_of = distinct_colors(np.array(colors).reshape(-1, 4))
        self._parts: dict[int, dict] = {}
        self._meshes: dict[tuple[int, int], int] = {}
        time = (scenery.time - scenery.time[0]).astype(np.float32)
        self.frames = np.flatnonzero(np.diff(time, prepend=np.float32(-1.0)) > 0.0)
        self.time = time[self.frames]
        self.reach = np.array([np.linalg.norm(one.vertices, axis=1).max(initial=0.0) for one in scenery.figures])

    def write(self) -> dict:
        """Write all nodes, meshes and animations; returns the JSON document without its buffer."""
        scenery = self.scenery
        root = {"name": scenery.name, "children": []}
        if scenery.up == "Z":
            half = float(np.sqrt(0.5))
            root["rotation"] = [-half, 0.0, 0.0, half]
        self.nodes.append(root)
        clock = self._accessor(self.time, "SCALAR", bounds=True) if len(self.time) > 1 else None
        self.samplers, self.channels = [], []
        for things, poses in scenery.by_things():
            for thing, values in zip(things, self._decomposed(things, poses[self.frames])):
                root["children"].append(len(self.nodes))
                self._node(thing, values, clock)
        for marker in scenery.markers:
            self.nodes[1 + marker.carrier].setdefault("children", []).append(len(self.nodes))
            self.nodes.append({"name": marker.title, "mesh": self._mesh(marker.figure, marker.number)})
        if not root["children"]:
            del root["children"]
        animation = {"name": "run", "samplers": self.samplers, "channels": self.channels}
        lists = {
            "nodes": self.nodes,
            "meshes": self.meshes,
            "materials": [_material(color, scenery) for color in self.colors] if self.meshes else [],
            "accessors": self.accessors,
            "bufferViews": self.views,
            "animations": [animation] if self.channels else [],
        }
        return {
            "asset": {"version": "2.0", "generator": "abd"},
            "scene": 0,
            "scenes": [{"name": scenery.name, "nodes": [0]}],
            **{key: values for key, values in lists.items() if values},
        }

    def _decomposed(self, things: range, poses: np.ndarray):
        """Translation (T, 3), rotation (T, 4) as x, y, z, w, and scale (T, 3) of every thing."""
        count, number = poses.shape[:2]
        maps = np.ascontiguousarray(np.swapaxes(poses[..., :3, :3], 0, 1)).reshape(-1, 3, 3)
        rotation, scale, shear = scaled_rotations(maps)
        if things.start < self.scenery.bodies:
            lost = np.abs(shear).reshape(number, -1)
            figure = self.scenery.figure[things.start : things.stop]
            reach = np.where(figure >= 0, self.reach[figure], 0.0) if len(self.reach) else 0.0
            self.strain = max(self.strain, float(lost.max(initial=0.0)))
            self.distance = max(self.distance, float((3.0 * lost.max(axis=1, initial=0.0) * reach).max(initial=0.0)))
        turned = np.roll(quaternions(rotation), -1, axis=1).reshape(number, count, 4)
        scale = scale.reshape(number, count, 3)
        for k in range(number):
            yield poses[:, k, :3, 3], _continuous(turned[k]), scale[k]

    def _node(self, thing: int, values: tuple, clock: int | None) -> None:
        scenery = self.scenery
        translation, rotation, scale = (np.ascontiguousarray(value, dtype=np.float32) for value in values)
        node = {"name": scenery.names[thing]}
        figure = int(scenery.figure[thing])
        if figure >= 0 and len(scenery.figures[figure].triangles):
            node["mesh"] = self._mesh(figure, thing)
        written = {"translation": translation, "rotation": rotation}
        if np.abs(scale - 1.0).max(initial=0.0) > SCALE_TOLERANCE:
            written["scale"] = scale
        for name, value in written.items():
            node[name] = value[0].tolist()
            if clock is not None and (value != value[0]).any():
                output = self._accessor(value, f"VEC{value.shape[1]}")
                self.channels.append({"sampler": len(self.samplers), "target": {"node": len(self.nodes), "path": name}})
                self.samplers.append({"input": clock, "output": output})
        self.nodes.append(node)

    def _mesh(self, number: int, colored: int) -> int:
        """Index of the mesh of a figure in the colour of a thing or a marker."""
        material = int(self.color_of[colored])
        if number not in self._parts:
            figure = self.scenery.figures[number]
            self._parts[number] = {
                "attributes": {
                    "POSITION": self._accessor(figure.vertices.astype(np.float32), "VEC3", VERTICES, bounds=True),
                    "NORMAL": self._accessor(figure.normals.astype(np.float32), "VEC3", VERTICES),
                },
                "indices": self._accessor(figure.triangles.astype(np.uint32).ravel(), "SCALAR", CORNERS),
            }
        if (number, material) not in self._meshes:
            self._meshes[number, material] = len(self.meshes)
            self.meshes.append({"primitives": [{**self._parts[number], "material": material}]})
        return self._meshes[number, material]

    def _accessor(self, values: np.ndarray, kind: str, target: int | None = None, bounds: bool = False) -> int:
        """Append an array of four-byte components to the binary part; returns the index of its accessor."""
        view = {"buffer": 0, "byteOffset": self.stream.tell(), "byteLength": values.nbytes}
        if target is not None:
            view["target"] = target
        component = FLOAT if values.dtype == np.float32 else UINT
        entry = {"bufferView": len(self.views), "componentType": component, "count": len(values), "type": kind}
        if bounds:
            limits = {"min": values.min(axis=0), "max": values.max(axis=0)}
            entry |= {name: np.atleast_1d(limit).tolist() for name, limit in limits.items()}
        self.views.append(view)
        self.accessors.append(entry)
        self.stream.write(values.tobytes())
        return len(self.accessors) - 1


def _continuous(q: np.ndarray) -> np.ndarray:
    """Quaternions (T, 4) with signs such that successive ones differ by at most half a turn."""
    turned = np.einsum("ij,ij->i", q[1:], q[:-1]) < 0.0
    sign = np.cumprod(np.concatenate([[1.0], np.where(turned, -1.0, 1.0)]))
    return q * sign[:, None]


def _material(color: np.ndarray, scenery: Scenery) -> dict:
    """Material of one colour (sRGB and opacity)."""
    base = [*to_linear(color[:3]).tolist(), float(color[3])]
    surface = {"baseColorFactor": base, "metallicFactor": 0.0, "roughnessFactor": 0.7}
    out = {"pbrMetallicRoughness": surface, "doubleSided": any(one.open for one in scenery.figures)}
    return out | ({"alphaMode": "BLEND"} if color[3] < 1.0 else {})
