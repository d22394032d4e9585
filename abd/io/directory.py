"""Directory of a run: its name, its allowed contents and the lock that admits one writing process; replacement of files."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from abd.errors import UsageError

TRAJECTORY, RUNS = "trajectory.h5", Path("runs")


class DirectoryError(UsageError):
    """The directory of a run cannot be used; the message has a remedy."""


def new_directory(scene: str, parent: Path = RUNS) -> Path:
    """Return `runs/<scene>-<k>` with k one above the largest existing number."""
    return parent / f"{_plain(scene)}-{max(_numbered(parent, scene), default=0) + 1}"


def latest_directory(scene: str) -> Path:
    """Return `runs/<scene>-<k>` with the largest existing k; `DirectoryError` without any."""
    taken = _numbered(RUNS, scene)
    if not taken:
        raise DirectoryError(f"there is no run of '{scene}' under {RUNS} to resume; give its directory with --out")
    return RUNS / f"{_plain(scene)}-{max(taken)}"


def free_directory(path: str | Path) -> Path:
    """Return the path if it contains no run, else `<path>-<k>` numbered as by `new_directory`."""
    path = Path(path)
    return new_directory(path.name, path.parent) if (path / TRAJECTORY).exists() else path


@contextmanager
def run_directory(path: str | Path, resume: bool, overwrite: bool = False) -> Iterator[Path]:
    """Create the directory of a run if it is missing, and lock it for this process; at the end remove it if it is empty.

    The operating system releases the lock when the process ends.

    Args:
        resume: True if a trajectory must exist, False if it must not.
        overwrite: allow an existing trajectory; the writer replaces it.

    Raises:
        DirectoryError: the contents of the directory do not match, or another process writes to it.
    """
    path = Path(path)
    if resume and not (path / TRAJECTORY).is_file():
        raise DirectoryError(f"{path} contains no {TRAJECTORY} to resume")
    if not (resume or overwrite) and (path / TRAJECTORY).exists():
        raise DirectoryError(f"{path} already contains a run; continue it with --resume, or choose another --out")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryError(f"cannot make the directory {path}: {error.strerror}") from None
    lock = _locked(path)
    try:
        yield path
    finally:
        if not any(path.iterdir()):
            path.rmdir()
        if lock is not None:
            os.close(lock)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Temporary file or folder of the same suffix that replaces `path` on success and is removed on failure."""
    part = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        yield part
        part.replace(path)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        part.unlink(missing_ok=True)


def _locked(path: Path) -> int | None:
    """Return the open handle that carries the lock, or None on a file system without locks."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise DirectoryError(f"another process is writing to {path}") from None
    except OSError:
        os.close(handle)
        return None
    return handle


def _plain(scene: str) -> str:
    """Return the name of a scene in a form that file names allow."""
    return re.sub(r"[^\w.+=-]+", "_", scene).strip(".") or "scene"


def _numbered(parent: Path, scene: str) -> list[int]:
    """Return k of all directories `<scene>-<k>`."""
    pattern = re.compile(re.escape(_plain(scene)) + r"-(\d+)")
    found = parent.iterdir() if parent.is_dir() else ()
    return [int(match[1]) for match in (pattern.fullmatch(entry.name) for entry in found) if match]
