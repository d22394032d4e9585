"""The directory of a run: which one to take, what may be in it, and that only one process writes to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from abd.errors import AbdError


class DirectoryError(AbdError):
    """A run's directory that cannot be used, with what to do."""

    exit_status = 2


def new_directory(scene: str, parent: str | Path = "runs") -> Path:
    """`runs/<scene>-<k>` with the smallest k above all that are there."""
    taken = _numbered(Path(parent), scene)
    return Path(parent) / f"{_plain(scene)}-{max(taken, default=0) + 1}"


def latest_directory(scene: str, parent: str | Path = "runs") -> Path:
    """`runs/<scene>-<k>` with the largest k.

    Raises:
        DirectoryError: there is none.
    """
    taken = _numbered(Path(parent), scene)
    if not taken:
        raise DirectoryError(f"there is no run of '{scene}' under {parent} to resume; name its directory with --out")
    return Path(parent) / f"{_plain(scene)}-{max(taken)}"


def free_directory(path: str | Path) -> Path:
    """The path itself where it holds no run, else `<path>-<k>` with k as `new_directory` counts."""
    path = Path(path)
    return new_directory(path.name, path.parent) if (path / "trajectory.h5").exists() else path


class RunDirectory:
    """Holds a run's directory for one process.

    The lock is the operating system's and ends with the process, however it ends. Systems without `fcntl` have none.

    Args:
        path: made where it is missing.
        resume: whether a trajectory must be there, or must not.
        overwrite: a trajectory may be there; the writer replaces it.

    Raises:
        DirectoryError: the directory does not fit, or another process writes to it.
    """

    def __init__(self, path: str | Path, resume: bool, overwrite: bool = False):
        self.path = Path(path)
        self.trajectory = self.path / "trajectory.h5"
        if resume and not self.trajectory.is_file():
            raise DirectoryError(f"{self.path} holds no trajectory.h5 to resume")
        if not (resume or overwrite) and self.trajectory.exists():
            raise DirectoryError(f"{self.path} holds a run already; continue it with --resume, or give another --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DirectoryError(f"cannot make the directory {self.path}: {error.strerror}") from error
        self._handle = _locked(self.path)

    def release(self) -> None:
        """Let others write; a directory into which nothing was written is removed again."""
        if not any(self.path.iterdir()):
            self.path.rmdir()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_) -> None:
        self.release()


def _locked(path: Path) -> int | None:
    """Open handle that carries the lock; None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise DirectoryError(f"another process is writing to {path}") from error
    except OSError:
        # A file system without locks, as some network mounts are: go on unguarded.
        os.close(handle)
        return None
    return handle


def _plain(scene: str) -> str:
    """A scene's name as part of a file name."""
    return re.sub(r"[^\w.+=-]+", "_", scene).strip(".") or "scene"


def _numbered(parent: Path, scene: str) -> list[int]:
    """The k of all directories `<scene>-<k>`."""
    pattern = re.compile(re.escape(_plain(scene)) + r"-(\d+)")
    found = parent.iterdir() if parent.is_dir() else ()
    return [int(match[1]) for match in (pattern.fullmatch(entry.name) for entry in found) if match]
