"""rerun: a recording of moving meshes and of the run's numbers over time, by `rerun-sdk`.

Bodies of one shape and colour are instances of one mesh (`/world/...`), with their affine maps, shear included, in
single precision. An entity of a single body has its name. Energies, smallest gap, Newton iterations and joint
coordinates are curves. Frames are written in portions.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from abd.export.scenery import Scenery, distinct_colors
from abd.io.directory import replacing
from abd.optional import required

CLOCK, COUNT = "time", "frame"


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write the recording."""
    rr = required("rerun", "rerun", "rerun-sdk", "export to rerun")
    # a fixed identifier makes the recording reproducible
    stream = rr.RecordingStream("abd", recording_id=scenery.name or "run", send_properties=False)
    stream.disable_timeline("log_time")
    with replacing(path) as part:
        stream.save(str(part))
        up = rr.ViewCoordinates.RIGHT_HAND_Y_UP if scenery.up == "Y" else rr.ViewCoordinates.RIGHT_HAND_Z_UP
        stream.log("world", up, static=True)
        groups = _meshes(rr, stream, scenery)
        for frames, poses in scenery.by_frames():
            for entity, members in groups:
                some, maps = frames, poses[:, members]
                # write static instances once
                if len(frames) == len(scenery.time) and (maps == maps[0]).all():
                    some, maps = frames[:1], maps[:1]
                flat = maps.reshape(-1, 4, 4).astype(np.float32)
                columns = rr.InstancePoses3D.columns(translations=flat[:, :3, 3], mat3x3=flat[:, :3, :3])
                columns = columns.partition(np.full(len(maps), len(members)))
                stream.send_columns(entity, indexes=_indexes(rr, scenery, some), columns=columns)
        for entity, values in _curves(scenery).items():
            known = np.flatnonzero(np.isfinite(values))
            if len(known):
                columns = rr.Scalars.columns(scalars=values[known].astype(float))
                stream.send_columns(entity, indexes=_indexes(rr, scenery, known), columns=columns)
        stream.flush()
        stream.disconnect()
    return [f"{len(scenery.time)} frames of {len(scenery)} things"]


def _meshes(rr, stream, scenery: Scenery) -> list[tuple[str, np.ndarray]]:
    """Write a mesh for each figure and colour; returns their entities and the things of their instances."""
    parts = scenery.parts()
    colors, color = distinct_colors(np.array([part.color for part in parts]).reshape(-1, 4))
    members: dict[tuple[int, int], list] = {}
    for part, number in zip(parts, color.tolist()):
        members.setdefault((part.figure, number), []).append(part)
    groups = []
    for (shape, shade), some in sorted(members.items()):
        names = [
            one.title if one.number == one.carrier else f"{scenery.names[one.carrier]}/{one.title}" for one in some
        ]
        entity = f"world/{_entity(names[0]) if len(some) == 1 else f'shape_{shape}/color_{shade}'}"
        figure = scenery.figures[shape]
        mesh = rr.Mesh3D(
            vertex_positions=figure.vertices,
            vertex_normals=figure.normals,
            triangle_indices=figure.triangles,
            albedo_factor=np.round(255.0 * colors[shade]).astype(np.uint8).tolist(),
        )
        stream.log(entity, mesh, static=True)
        if len(some) > 1:
            stream.log(entity, rr.AnyValues(names=names), static=True)
        groups.append((entity, np.array([one.carrier for one in some])))
    return groups


def _curves(scenery: Scenery) -> dict[str, np.ndarray]:
    """Numbers of the run over time, by entity."""
    trajectory = scenery.trajectory
    series = {f"energy/{name}": values for name, values in trajectory.energies().items()}
    series |= {f"solver/{name}": trajectory.series(f"/solver/{name}") for name in ("min_gap", "newton_iterations")}
    for path, group in trajectory.joint_groups():
        if "count" not in group.attrs:  # skip the curves of copies
            values = trajectory.series(f"{path}/coordinates")
            for k, name in enumerate(group.attrs["coordinates"]):
                series[f"joints/{_entity(str(group.attrs['name']))}/{name}"] = values[:, k]
    return series


def _indexes(rr, scenery: Scenery, frames) -> list:
    return [
        rr.TimeColumn(COUNT, sequence=np.array(frames)),
        rr.TimeColumn(CLOCK, duration=scenery.time[np.array(frames)]),
    ]


def _entity(name: str) -> str:
    """Entity path of a name."""
    return re.sub(r"[^\w/.\-]", "_", name)
