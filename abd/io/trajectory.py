"""Reader of trajectory.h5. `abd.io.trajectory_writer` writes it; `abd.io.layout` and `abd.io.frame` define its layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from abd.errors import UsageError
from abd.io.chain import GROUPS, hashes
from abd.io.checkpoint import read_slots
from abd.io.datasets import CONTACTS, COUNTS, OFFSET, RAGGED
from abd.io.frame import ENERGIES
from abd.io.layout import FORMAT, plain_name

DAMAGE = (
    *(KeyError, ValueError, RuntimeError, OSError, IndexError, TypeError, ArithmeticError, np.linalg.LinAlgError),
    AttributeError,  # h5py returns None for broken links
)
"""Exceptions that reading a damaged file can raise."""


class TrajectoryError(UsageError):
    """The trajectory file is missing, unreadable or damaged."""


@dataclass(frozen=True)
class StoredMesh:
    """Surface in the user's mesh frame: vertices (v, 3) [m], triangles (f, 3), edges (e, 2), points (p,)."""

    name: str
    vertices: np.ndarray
    triangles: np.ndarray
    edges: np.ndarray
    points: np.ndarray
    closed: bool


class Trajectory:
    """Reads a trajectory file that is complete, still growing, or left by a killed run.

    Attributes:
        names, kind: (n,) text; kind is "dynamic", "kinematic" or "static".
        mesh: (n,) index into `meshes`, -1 for none; plane: (n, 4) of half-spaces, NaN otherwise.
        mass, radius: (n,) [kg], [m]; group, world, material: (n,); color: (n, 4), NaN where none is given.
        meshes: list of `StoredMesh`.
        camera: settings of the camera, with the keys of its table in the scene.
        attributes: of the file; solver_settings: dt, integrator, tolerance, minimum_separation, gravity, and d_hat, the
            largest activation of any pair of bodies.

    Raises:
        TrajectoryError: the file does not exist or is not a trajectory.
    """

    def __init__(self, path: str | Path):
        self.path = trajectory_path(path)
        if not self.path.is_file():
            raise TrajectoryError(f"there is no run '{path}': give the directory of a run, or its trajectory.h5")
        try:
            self._file = h5py.File(self.path, "r", locking=False)
        except OSError as error:
            raise TrajectoryError(f"cannot read {self.path}, which should be a run: {error}") from None
        try:
            if self._file.attrs.get("format") != FORMAT:
                is_ours = str(self._file.attrs.get("format")).startswith("abd")
                found = "of another release: run the scene again" if is_ours else "an HDF5 file, but not a trajectory"
                raise TrajectoryError(f"{self.path} is {found}")
            self._read_constants()
        except DAMAGE as error:
            self.close()
            raise self._damaged(error) from None
        except TrajectoryError:
            self.close()
            raise

    def _read_constants(self) -> None:
        self.attributes = dict(self._file.attrs)
        self._frames = int(self.attributes["frames"])
        if not 0 < self._frames <= len(self._file["time"]):
            raise ValueError(f"the number of frames is {self._frames}, but /time has {len(self._file['time'])}")
        self.camera: dict = json.loads(self.attributes["camera"])
        self.solver_settings = dict(self._file["solver"].attrs)
        bodies = self._file["bodies"]
        self.names, self.kind = ([text.decode() for text in bodies[name][...]] for name in ("name", "kind"))
        for name in ("mesh", "plane", "mass", "radius", "group", "world", "material", "color"):
            setattr(self, name, bodies[name][...])
        stored = self._file["meshes"]
        self.meshes = [_mesh(stored[str(k)]) for k in range(len(stored))]

    def __len__(self) -> int:
        """Number of frames, including the initial state."""
        return self._frames

    @property
    def time(self) -> np.ndarray:
        """(T,) times of the frames [s]."""
        return self.series("/time")

    @property
    def world_time(self) -> np.ndarray:
        """(T, w) times of the worlds [s], in the order of their numbers."""
        return self.series("/worlds/time") if "worlds" in self._file else self.time[:, None]

    def series(self, name: str) -> np.ndarray:
        """Return all frames of one value, for instance "/energy/kinetic" (T,)."""
        return self._file[name][: self._frames]

    def energies(self) -> dict[str, np.ndarray]:
        """Name -> all frames (T,) of the energies and works of `abd.io.frame.ENERGIES` that the file has [J]."""
        return {name: self.series(f"/energy/{name}") for name in ENERGIES if name in self._file["energy"]}

    def transform(self, frame: int) -> np.ndarray:
        """Return (n, 4, 4) poses of the user's mesh frames [m] in one frame; -1 is the last."""
        return self._file["bodies/transform"][range(self._frames)[frame]]

    def transforms(self, frames: slice, bodies: slice = slice(None)) -> np.ndarray:
        """Return (k, b, 4, 4) poses of the mesh frames [m] of selected bodies and frames; reads only these."""
        dataset = self._file["bodies/transform"]
        if bodies != slice(None):
            # by default HDF5 caches whole chunks with all bodies of a frame
            access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
            access.set_chunk_cache(1, 0, 1.0)
            dataset = h5py.Dataset(h5py.h5d.open(self._file.id, b"bodies/transform", access))
        return dataset[slice(*frames.indices(self._frames)), bodies]

    def vertices(self, frame: int, body: int) -> np.ndarray:
        """Return (v, 3) world positions [m] of one body's vertices; none for a half-space or a body without a surface."""
        if self.mesh[body] < 0:
            return np.zeros((0, 3))
        matrix = self.transform(frame)[body]
        return self.meshes[self.mesh[body]].vertices @ matrix[:3, :3].T + matrix[:3, 3]

    def joint_names(self) -> list[str]:
        """Names of the joints."""
        return [group.attrs["name"] for group in self._file["joints"].values()]

    def joint_groups(self) -> Iterator[tuple[str, h5py.Group]]:
        """Yield path and group of every joint; all copies of a joint share a group."""
        for name, group in self._file["joints"].items():
            yield f"joints/{name}", group

    def sensors(self) -> dict[str, np.ndarray]:
        """Name -> values (T, k) of every sensor that existed from the start of the run."""
        group = self._file.get("sensors", {})
        return {plain_name(member): values[: self._frames].reshape(self._frames, -1) for member, values in group.items()}

    def row(self, name: str, frame: int) -> np.ndarray:
        """Return one row of a dataset, for instance of one frame."""
        return self._file[name][frame]

    def rows(self, name: str, first: int, last: int) -> np.ndarray:
        """Return rows first to last - 1 of a dataset."""
        return self._file[name][first:last]

    def checkpoint(self) -> dict:
        """Return the newest complete checkpoint."""
        try:
            return read_slots(self._file["checkpoint"])
        except DAMAGE as error:
            raise self._damaged(error) from error

    def blocks(self, frames: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield all values of the first frames, also uncounted ones that a checkpoint confirms, in blocks of about 16 MiB."""
        names = self._series_names
        row_bytes = sum(self._file[name][0].nbytes for name in names)
        portion = max(1, (1 << 24) // row_bytes)
        for start in range(0, frames, portion):
            yield self._block(start, min(start + portion, frames))

    def _block(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Return all values of the frames start to stop - 1."""
        block = {name: self._file[name][start:stop] for name in self._series_names}
        for group in RAGGED:
            if group in self._file:
                block |= {group + name: rows for name, rows in self._ragged(group, start, stop).items()}
                block[group + COUNTS] = np.diff(self._file[group + OFFSET][start : stop + 1])
        return block

    def _ragged(self, name: str, start: int, stop: int) -> dict[str, np.ndarray]:
        """Rows of a ragged group in the frames start to stop - 1."""
        group = self._file[name]
        first, last = group[OFFSET][start], group[OFFSET][stop]
        return {name: column[first:last] for name, column in group.items() if name != OFFSET}

    @property
    def has_contacts(self) -> bool:
        """Whether the file contains contact points."""
        return "contacts" in self._file

    def contacts(self, frame: int) -> dict[str, np.ndarray]:
        """Points of contact of one frame, -1 being the last: pair (c, 2), point (c, 3), normal (c, 3), gap (c,) and force (c, 3)
        on the first body, as in `abd.api.contact_view.Contacts`; `TrajectoryError` without contacts (`output.contacts`)."""
        if not self.has_contacts:
            raise TrajectoryError(f"{self.path} contains no contacts: run the scene with -o output.contacts=true")
        at = range(self._frames)[frame]
        return self._ragged(CONTACTS, at, at + 1)

    @cached_property
    def _series_names(self) -> list[str]:
        """Names of the datasets with one entry per frame."""
        return list(_series(self._file, "/"))

    def verify(self, frames: int | None = None) -> None:
        """Compare the constants and the first `frames` frames (default: all) with their hashes, or raise `TrajectoryError`."""
        count = self._frames if frames is None else frames
        try:
            for name in self._series_names:
                if len(self._file[name]) < count:
                    raise ValueError(f"{name} has {len(self._file[name])} of {count} frames")
            head, is_known = bytes.fromhex(bytes(self.attributes["chain"]).decode()), False
            for start, end, found, stored in hashes(self._file, count, self._block):
                if found != stored:
                    raise ValueError(f"frames {start} to {end - 1} or the constants differ from their hash")
                is_known |= end == self._frames and found == head
            if not is_known:
                raise ValueError(f"the hash of the file does not belong to {self._frames} frames")
        except DAMAGE as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> TrajectoryError:
        return TrajectoryError(f"{self.path} is damaged: {type(error).__name__}: {' '.join(str(error).split())}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Trajectory:
        return self

    def __exit__(self, kind, error, trace) -> None:
        """Close the file; if reading failed, verify the file and report damage as `TrajectoryError`."""
        try:
            if isinstance(error, DAMAGE):
                try:
                    self.verify()
                except TrajectoryError as damage:
                    raise TrajectoryError(f"{damage} ({type(error).__name__}: {' '.join(str(error).split())})") from None
        finally:
            self.close()


def trajectory_path(run: str | Path) -> Path:
    """Return the trajectory in the directory of a run; a path of a file is returned unchanged."""
    path = Path(run)
    return path / "trajectory.h5" if path.is_dir() else path


def _series(group: h5py.Group, path: str) -> Iterator[str]:
    """Yield the paths of the datasets with one entry per frame."""
    for name, item in group.items():
        if isinstance(item, h5py.Dataset):
            if item.maxshape[:1] == (None,):
                yield path + name
        elif f"{path}{name}/" not in (*RAGGED, *(f"/{other}/" for other in GROUPS)):
            yield from _series(item, f"{path}{name}/")


def _mesh(group) -> StoredMesh:
    parts = {name: group[name][...] for name in ("vertices", "triangles", "edges", "points")}
    return StoredMesh(str(group.attrs["name"]), **parts, closed=bool(group.attrs["closed"]))
