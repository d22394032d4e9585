"""Tables of poses: CSV or NPZ files of a prescribed motion.

Columns of the CSV, named in its first line in any order, or arrays of the NPZ, each (k,): ``time`` [s], growing;
``x, y, z`` [m], position of the moved frame; ``qw, qx, qy, qz``, its rotation, all four or none. Empty lines of a CSV
and lines that begin with # are skipped.
"""

from __future__ import annotations

import csv
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.scene.schema.findings import did_you_mean
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
