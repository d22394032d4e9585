"""Prescribed motions: from a `MotionSpec` to the pose of a kinematic body as a function of time.

The motion is that of the *moved frame*: the mesh frame, or the frame with the same axes at the centre of mass
(`frame = "center_of_mass"`). The returned pose is that of the mesh frame.

Velocities and formulas are relative to the initial pose; keyframes and files define absolute poses, so that the pose at t = 0
is ``motion(0)`` for any `position`. A first keyframe later than t = 0 is approached from the initial pose. Between
keyframes positions are linear in time and rotations have a constant speed along the shortest arc (slerp). After the last
one the body rests, or (`after = "continue"`) keeps the velocities of the keyframes, or those of the last segment. After
`until` it rests.

A file of poses is CSV or NPZ. Columns of the CSV, named in its first line in any order, or arrays of the NPZ, each (k,): ``time``
[s], growing; ``x, y, z`` [m], position of the moved frame; ``qw, qx, qy, qz``, its rotation, all four or none. Empty lines of a
CSV and lines that begin with # are skipped."""

from __future__ import annotations

import csv
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.rotations import pose, rotation_vectors
from abd.scene.geometry.frames import rotation_matrix
from abd.scene.schema.fields import TimeFunction, in_radians
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.schema import Formulas, MotionSpec
from abd.scene.schema.values import most, remedy

POSITION_COLUMNS = ("x", "y", "z")
ROTATION_COLUMNS = ("qw", "qx", "qy", "qz")
COLUMNS = ("time", *POSITION_COLUMNS, *ROTATION_COLUMNS)
POSE_FILES = (".csv", ".npz")
DAMAGE = (ValueError, TypeError, EOFError, KeyError, RuntimeError, ArithmeticError, zipfile.BadZipFile, zlib.error, struct.error)
"""Exceptions that reading a damaged NPZ file can raise."""


def read_poses(path: str | Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (k,) [s], positions (k, 3) [m] and unit quaternions (k, 4) as (w, x, y, z) of a pose file.

    Raises `SceneError` with the line of the file where that is known.
    """
    path = Path(path)
    try:
        columns, lines = _read_npz(path) if path.suffix.lower() == ".npz" else _read_csv(path)
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror or error}") from None
    for name in columns:
        if name not in COLUMNS:
            remedy = did_you_mean(name, COLUMNS) or f"columns are {', '.join(COLUMNS)}"
            raise _error(path, f"unknown column '{name}'", lines[0], remedy)
    wanted = COLUMNS if any(name in columns for name in ROTATION_COLUMNS) else COLUMNS[:4]
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise _error(path, f"has no column {', '.join(missing)}", lines[0], f"columns are {', '.join(COLUMNS)}")

    time = columns["time"]
    if len(time) == 0:
        raise _error(path, "has no poses")
    position = np.stack([columns[name] for name in POSITION_COLUMNS], axis=1)
    rotation = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
    if len(wanted) == len(COLUMNS):
        rotation = np.stack([columns[name] for name in ROTATION_COLUMNS], axis=1)
    for row in np.flatnonzero(~np.isfinite(np.column_stack([time, position, rotation])).all(axis=1)):
        raise _error(path, f"pose {row + 1} is not finite", lines[row + 1])
    for row in np.flatnonzero(np.diff(time) <= 0):
        message = f"times must increase, but {time[row + 1]:g} s follows {time[row]:g} s"
        raise _error(path, message, lines[row + 2])
    norm = np.linalg.norm(rotation, axis=1)
    for row in np.flatnonzero(norm < 1e-6):
        raise _error(path, f"the quaternion of pose {row + 1} is zero", lines[row + 1], "the identity is 1, 0, 0, 0")
    return time, position, rotation / norm[:, None]


def _read_csv(path: Path) -> tuple[dict[str, np.ndarray], list[int | None]]:
    """Columns by name, and the line numbers of the header and of every row; None for arrays of an NPZ file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _error(path, "is not a text file in UTF-8") from None
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    numbered = [(number, line) for number, line in numbered if not line.lstrip().startswith("#")]
    if not numbered:
        raise _error(path, "is empty", remedy=f"the first line must be {','.join(COLUMNS)}")
    header = [name.strip() for name in next(csv.reader([numbered[0][1]]))]
    if len(set(header)) < len(header):
        raise _error(path, "has a column twice", numbered[0][0])
    rows = []
    for number, line in numbered[1:]:
        cells = next(csv.reader([line]))
        if len(cells) != len(header):
            raise _error(path, f"has {len(cells)} values, but {len(header)} columns", number)
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError as error:
            raise _error(path, f"is not a number: {str(error).rpartition(': ')[2]}", number) from None
    table = np.array(rows, dtype=float).reshape(len(rows), len(header))
    return dict(zip(header, table.T)), [number for number, _ in numbered]


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], list[int | None]]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > most("NPZ_BYTES"):
            raise _error(
                path, f"its arrays take {size} bytes; at most {most('NPZ_BYTES')} are allowed: {remedy('NPZ_BYTES')}"
            )
        with np.load(path, allow_pickle=False) as archive:
            columns = {name: np.asarray(archive[name], dtype=float) for name in archive.files}
    except DAMAGE as error:
        raise _error(path, f"is not an NPZ file of numbers: {error}") from None
    shapes = {array.shape for array in columns.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise _error(path, f"must have arrays (k,) of one length, not {sorted(shapes)}")
    return columns, [None] * (1 + max(map(len, columns.values()), default=0))


def _error(path: Path, message: str, line: int | None = None, remedy: str = "") -> SceneError:
    return SceneError.of(message, value=str(path), file=str(path), line=line, remedy=remedy)


Motion = Callable[[float], np.ndarray]
"""Function of t [s] that returns a (4, 4) pose."""


def prescribed_motion(spec: MotionSpec, initial: np.ndarray, center: np.ndarray | None = None, key: str = "motion") -> Motion:
    """Return the pose (4, 4) of the mesh frame as a function of t [s].

    Args:
        spec: table of the motion.
        initial: (4, 4) initial pose of the mesh frame (`abd.scene.geometry.frames.frame_pose`).
        center: (3,) centre of mass in the mesh frame [m]; needed for ``frame = "center_of_mass"``.
        key: location in the scene for the error of a formula without a value.

    Raises:
        SceneError: a pose file or a formula cannot be read, or the centre of mass is unknown.
    """
    offset = np.eye(4)
    if spec.frame == "center_of_mass":
        if center is None:
            message = "a motion of the centre of mass needs the centre of mass, and the body has no mass"
            remedy = 'give center_of_mass, a thickness or a radius, or use frame = "mesh"'
            raise SceneError.of(message, key="motion.frame", value=spec.frame, remedy=remedy)
        offset[:3, 3] = center
    moved = _moved_frame(spec, initial @ offset, key)
    back = np.linalg.inv(offset)
    return partial(_motion, moved, np.inf if spec.until is None else spec.until, back)


def _motion(moved: Motion, until: float, back: np.ndarray, t: float) -> np.ndarray:
    """Return the pose of the mesh frame at t [s] from that of the moved frame; `back`: (4, 4) from the one to the other."""
    return moved(min(float(t), until)) @ back


def _moved_frame(spec: MotionSpec, start: np.ndarray, key: str) -> Motion:
    if spec.formulas is not None:
        return _by_formulas(spec.formulas, start, key)
    if spec.keyframes is not None:
        times = np.array([frame.time for frame in spec.keyframes])
        # missing values of keyframes are the initial ones
        positions = np.array([start[:3, 3] if frame.position is None else frame.position for frame in spec.keyframes])
        turned = np.array([rotation_matrix(frame) if frame.is_turned else start[:3, :3] for frame in spec.keyframes])
        return _by_poses(spec, times, positions, turned, start)
    if spec.file is not None:
        times, positions, quaternions = read_poses(spec.file)
        return _by_poses(spec, times, positions, Rotation.from_quat(quaternions[:, [1, 2, 3, 0]]).as_matrix(), start)
    constant = spec.model_copy(update={"after": "continue"})
    return _by_poses(constant, np.zeros(1), start[None, :3, 3], start[None, :3, :3], start)


def _by_poses(
    spec: MotionSpec, times: np.ndarray, positions: np.ndarray, rotations: np.ndarray, start: np.ndarray
) -> Motion:
    if times[0] > 0.0:
        times = np.concatenate([[0.0], times])
        positions = np.concatenate([start[None, :3, 3], positions])
        rotations = np.concatenate([start[None, :3, :3], rotations])
    # world rotation vector of every segment: R_{k+1} = exp(turn_k) R_k
    turns = rotation_vectors(rotations[1:] @ rotations[:-1].transpose(0, 2, 1))
    spin = in_radians(spec, "angular_velocity")
    end_velocity, end_spin = np.array(spec.velocity or (0.0, 0.0, 0.0)), np.array(spin or (0.0, 0.0, 0.0))
    if spec.velocity is None and spin is None and len(turns):
        duration = times[-1] - times[-2]
        end_velocity, end_spin = (positions[-1] - positions[-2]) / duration, turns[-1] / duration
    if spec.after != "continue":
        end_velocity = end_spin = np.zeros(3)
    return PoseSequence(times, positions, rotations, turns, end_velocity, end_spin)


@dataclass(frozen=True)
class PoseSequence:
    """Motion through poses at times (k,) [s]; `turns` (k - 1, 3): rotation vectors between them [rad]; velocities at the end."""

    times: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray
    turns: np.ndarray
    end_velocity: np.ndarray
    end_spin: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        """Return the pose (4, 4) at t [s]."""
        times = self.times
        if t >= times[-1] or len(times) == 1:
            beyond = t - times[-1]
            rotation = Rotation.from_rotvec(beyond * self.end_spin).as_matrix() @ self.rotations[-1]
            return pose(rotation, self.positions[-1] + beyond * self.end_velocity)
        k = max(int(np.searchsorted(times, t, side="right")) - 1, 0)
        s = max((t - times[k]) / (times[k + 1] - times[k]), 0.0)
        rotation = Rotation.from_rotvec(s * self.turns[k]).as_matrix() @ self.rotations[k]
        return pose(rotation, (1.0 - s) * self.positions[k] + s * self.positions[k + 1])


def _by_formulas(spec: Formulas, start: np.ndarray, key: str) -> Motion:
    """``p = p0 + (x, y, z)(t)``, ``R = exp([(rx, ry, rz)(t)]) R0``."""
    formulas = [TimeFunction(getattr(spec, axis), key=f"{key}.formulas.{axis}") for axis in Formulas.model_fields]
    return partial(_at_formulas, formulas, start)


def _at_formulas(formulas: list[TimeFunction], start: np.ndarray, t: float) -> np.ndarray:
    values = np.array([formula(t) for formula in formulas])
    rotation = Rotation.from_rotvec(values[3:]).as_matrix() @ start[:3, :3]
    return pose(rotation, start[:3, 3] + values[:3])
