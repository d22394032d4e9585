"""VTKHDF 2.0 for ParaView: moving surfaces as temporal PolyData, written by h5py.

Triangles are stored once, the points of every frame in single precision. Data: `velocity` [m/s] of the points; `body`
(index of the body; ropes, springs and joints are numbered after the bodies) and `color` (red, green, blue, 0 to 255) of
the triangles. Readers use `/VTKHDF`; `/names` has the names by this index.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from abd.export.scenery import Scenery
from abd.export.whole import WholeMesh
from abd.io.datasets import reserve, write_whole
from abd.io.directory import replacing

TOPOLOGIES = ("Vertices", "Lines", "Polygons", "Strips")


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the file."""
    mesh = WholeMesh(scenery, len(scenery.time))
    count, steps = len(mesh), len(scenery.time)
    with replacing(path) as part:
        with h5py.File(part, "w", libver="latest", driver="core", backing_store=False) as file:
            root = file.create_group("VTKHDF")
            root.attrs["Version"] = np.array([2, 0], dtype=np.int64)
            root.attrs.create("Type", b"PolyData", dtype=h5py.string_dtype("ascii", len("PolyData")))
            _constants(root, mesh)
            _steps(root, scenery.time, count)
            for name in ("Points", "PointData/velocity"):
                root.create_dataset(name, (count * steps, 3), np.float32)
            file.flush()
            image = file.id.get_file_image()
        write_whole(part, image)
        with h5py.File(part, "r+", libver="latest") as file:
            points, velocity = file["VTKHDF/Points"], file["VTKHDF/PointData/velocity"]
            reserve(file, points.nbytes + velocity.nbytes)
            for frames, poses in scenery.by_frames():
                for frame, pose, rate in zip(frames, poses, scenery.velocities(frames)):
                    rows = slice(count * frame, count * (frame + 1))
                    points[rows] = mesh.mapped(pose).astype(np.float32)
                    velocity[rows] = mesh.mapped(rate).astype(np.float32)
    return [f"{steps} steps of {count} points and {len(mesh.triangles)} triangles"]


def _constants(root: h5py.Group, mesh: WholeMesh) -> None:
    """Write triangles, their data, and names: equal in all steps."""
    count, faces = len(mesh), len(mesh.triangles)
    root["NumberOfPoints"] = np.array([count], dtype=np.int64)
    for name in TOPOLOGIES:
        cells = faces if name == "Polygons" else 0
        group = root.create_group(name)
        group["NumberOfCells"] = np.array([cells], dtype=np.int64)
        group["NumberOfConnectivityIds"] = np.array([3 * cells], dtype=np.int64)
        group["Offsets"] = 3 * np.arange(cells + 1, dtype=np.int64)
        group["Connectivity"] = mesh.triangles.astype(np.int64).ravel() if cells else np.empty(0, dtype=np.int64)
    sizes, numbers = np.diff(mesh.triangle_starts), np.array([part.number for part in mesh.parts], dtype=np.int32)
    cell = root.create_group("CellData")
    cell["body"] = np.repeat(numbers, sizes)
    cell["color"] = np.repeat(np.round(255.0 * mesh.colors[:, :3]).astype(np.uint8), sizes, axis=0)
    root.create_group("PointData")
    names = np.array([""] * (int(numbers.max(initial=-1)) + 1), dtype=object)
    names[numbers] = [part.title for part in mesh.parts]
    root.file["names"] = names if len(names) else np.empty(0, dtype="S1")


def _steps(root: h5py.Group, time: np.ndarray, count: int) -> None:
    """Write the offsets of each step: points have new rows, all else is shared."""
    steps = len(time)
    group = root.create_group("Steps")
    group.attrs["NSteps"] = np.int64(steps)
    group["Values"] = time.astype(float)
    zero, moved = np.zeros(steps, dtype=np.int64), count * np.arange(steps, dtype=np.int64)
    group["PointOffsets"], group["PartOffsets"], group["NumberOfParts"] = moved, zero, zero + 1
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        group[name] = np.zeros((steps, len(TOPOLOGIES)), dtype=np.int64)
    group.create_group("PointDataOffsets")["velocity"] = moved
    cells = group.create_group("CellDataOffsets")
    cells["body"], cells["color"] = zero, zero
