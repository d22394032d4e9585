"""Formats of `abd export`, and the export."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

from abd.errors import UsageError


class ExportError(UsageError):
    """A run cannot be exported with these options."""


@dataclass(frozen=True)
class Format:
    """One format: module with ``write(scenery, path) -> list of notes``, file suffixes, the default first, and text for the help.

    An empty suffix is a folder of files."""

    module: str
    suffixes: tuple[str, ...]
    meaning: str


FORMATS = {
    "usd": Format("abd.export.usd", (".usdc", ".usd", ".usda", ".usdz"), "stage with time samples, shear kept"),
    "glb": Format("abd.export.glb", (".glb",), "animated binary glTF: rotation and scale of every body"),
    "obj": Format("abd.export.obj", ("",), "folder of one OBJ file per frame"),
    "vtk": Format("abd.export.vtk", (".vtkhdf",), "moving surfaces for ParaView"),
    "rrd": Format("abd.export.rrd", (".rrd",), "recording for the viewer of rerun"),
}


@dataclass(frozen=True)
class Exported:
    """Path of the export, and notes for the user."""

    path: Path
    notes: list[str] = field(default_factory=list)


def export(run: str | Path, to: str, out: str | Path | None = None) -> Exported:
    """Write a run, its directory or trajectory file, in one of `FORMATS`.

    out: file, for obj a folder; default: in the run's directory. An existing one is replaced.

    Raises:
        ExportError: an unknown format, a wrong suffix, or a library that is not installed. TrajectoryError: no such run.
    """
    from abd.export.scenery import Scenery
    from abd.io.trajectory import Trajectory, trajectory_path

    if to not in FORMATS:
        raise ExportError(f"there is no export to '{to}': {', '.join(FORMATS)}")
    form, file = FORMATS[to], trajectory_path(run)
    path = Path(out) if out else file.parent / (file.stem + form.suffixes[0] if form.suffixes[0] else to)
    if form.suffixes[0] and path.suffix.lower() not in form.suffixes:
        raise ExportError(f"{path} is not a file for {to}: its suffix must be {' or '.join(form.suffixes)}")
    with Trajectory(run) as trajectory:
        scenery = Scenery(trajectory)
        write = importlib.import_module(form.module).write
        path.parent.mkdir(parents=True, exist_ok=True)
        return Exported(path, write(scenery, path))
