"""rerun: a recording of moving meshes and of the run's numbers over time, by `rerun-sdk`.

Bodies of one shape and colour are instances of one mesh (`/world/...`), with their affine maps, shear included, in single
precision; an entity of a single body has its name. There are also the energies, the smallest gap, the Newton iterations
and the coordinates of joints as curves. Frames go to the file in portions.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from abd.export.palette import distinct_colors
from abd.export.scenery import Scenery
from abd.optional import required

CLOCK, COUNT = "time", "frame"


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the recording."""
    rr = required("rerun", "rerun", "rerun-sdk", "export to rerun")
    part = path.with_name(path.name + ".part")
    # a fixed identity: the same run gives the same recording
    stream = rr.RecordingStream("abd", recording_id=scenery.name or "run", send_properties=False)
    stream.disable_timeline("log_time")
    stream.save(str(part))
    try:
        up = rr.ViewCoordinates.RIGHT_HAND_Y_UP if scenery.up == "Y" else rr.ViewCoordinates.RIGHT_HAND_Z_UP
        stream.log("world", up, static=True)
        _Writer(rr, stream, scenery).write()
        stream.flush()
        stream.disconnect()
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return [f"{len(scenery.time)} frames of {len(scenery)} things"]


class _Matrices:
    """A column of (n, 3, 3) matrices as rerun takes it: rerun's own conversion makes an object of each."""

    def __init__(self, matrices: np.ndarray):
        self._columns = np.ascontiguousarray(np.swapaxes(matrices, 1, 2), dtype=np.float32)

    def as_arrow_array(self):
        """The numbers, column after column of each matrix."""
        import pyarrow as pa

        flat = pa.array(self._columns.ravel())
        return pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(pa.field("item", pa.float32(), nullable=False), 9))


class _Writer:
    def __init__(self, rr, stream, scenery: Scenery):
        self.rr, self.stream, self.scenery = rr, stream, scenery
        columns = {column.component_descriptor().component.split(":")[-1]: column.component_descriptor()
                   for column in rr.InstancePoses3D.columns(mat3x3=[np.eye(3)])}  # fmt: skip
        self.descriptor = columns["mat3x3"]

    def write(self) -> None:
        """Meshes, their instances in all frames, and curves."""
        scenery = self.scenery
        count, markers = len(scenery), scenery.markers
        figure = np.array([*scenery.figure, *(marker.figure for marker in markers)], dtype=int)
        carrier = np.array([*range(count), *(marker.body for marker in markers)], dtype=int)
        names = [*scenery.names, *(f"{scenery.names[marker.body]}/joint {marker.name}" for marker in markers)]
        given = np.array([*scenery.colors, *(marker.color for marker in markers)]).reshape(-1, 4)
        colors, color = distinct_colors(given)
        drawn = np.flatnonzero(figure >= 0)
        kinds, kind = np.unique(np.stack([figure[drawn], color[drawn]], axis=1), axis=0, return_inverse=True)
        groups = []
        for number, (shape, shade) in enumerate(kinds):
            members = drawn[kind.reshape(-1) == number]
            path = f"world/{_part(names[members[0]]) if len(members) == 1 else f'shape_{shape}/color_{shade}'}"
            self._mesh(path, scenery.figures[shape], colors[shade])
            if len(members) > 1:
                self.stream.log(path, self.rr.AnyValues(names=[names[k] for k in members]), static=True)
            groups.append((path, carrier[members]))
        for frames, poses in scenery.by_frames():
            for path, members in groups:
                self._instances(path, frames, poses[:, members])
        self._curves()

    def _mesh(self, path: str, figure, color: np.ndarray) -> None:
        mesh = self.rr.Mesh3D(
            vertex_positions=figure.vertices,
            vertex_normals=figure.normals,
            triangle_indices=figure.triangles,
            albedo_factor=np.round(255.0 * color).astype(np.uint8).tolist(),
        )
        self.stream.log(path, mesh, static=True)

    def _instances(self, path: str, frames: range, poses: np.ndarray) -> None:
        """Poses (k, g, 4, 4) of the instances of a mesh; those that stay where they are, once."""
        rr = self.rr
        if frames.start == 0 and (poses == poses[0]).all() and len(frames) == len(self.scenery.time):
            frames, poses = frames[:1], poses[:1]
        lengths = np.full(len(poses), poses.shape[1])
        flat = poses.reshape(-1, 4, 4)
        moved = rr.InstancePoses3D.columns(translations=flat[:, :3, 3].astype(np.float32)).partition(lengths)
        turned = rr.ComponentColumn(self.descriptor, _Matrices(flat[:, :3, :3]), lengths=lengths)
        self.stream.send_columns(path, indexes=self._indexes(frames), columns=[*moved, turned])

    def _indexes(self, frames: range) -> list:
        rr = self.rr
        return [
            rr.TimeColumn(COUNT, sequence=np.array(frames)),
            rr.TimeColumn(CLOCK, duration=self.scenery.time[frames]),
        ]

    def _curves(self) -> None:
        """Numbers of the run over time."""
        trajectory = self.scenery.trajectory
        series = {f"energy/{name}": values for name, values in trajectory.energies().items()}
        series |= {f"solver/{name}": trajectory.series(f"/solver/{name}") for name in ("min_gap", "newton_iterations")}
        for path, group in trajectory.joint_groups():
            if "count" in group.attrs:
                continue  # curves of a thousand copies are not readable
            values = trajectory.series(f"{path}/coordinates")
            for k, name in enumerate(group.attrs["coordinates"]):
                series[f"joints/{_part(str(group.attrs['name']))}/{name}"] = values[:, k]
        frames = range(len(self.scenery.time))
        for path, values in series.items():
            known = np.isfinite(values)
            if known.any():
                columns = self.rr.Scalars.columns(scalars=values[known].astype(float))
                self.stream.send_columns(path, indexes=self._indexes(np.array(frames)[known]), columns=columns)


def _part(name: str) -> str:
    """A name as parts of an entity's path."""
    return re.sub(r"[^\w/.\-]", "_", name)
