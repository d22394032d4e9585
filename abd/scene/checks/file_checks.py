"""Files that a scene names: there, and of a known kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from abd.scene.schema.findings import Finding
from abd.scene.schema.suggestions import did_you_mean


def check_file(path: Path, suffixes: tuple[str, ...], what: str) -> Iterator[Finding]:
    """Findings, with an empty path, of a file that is missing or has another suffix than these."""
    if path.suffix.lower() not in suffixes:
        kind = f"'{path.suffix}'" if path.suffix else "none"
        yield Finding((), f"is no {what}: its suffix is {kind}", str(path), f"known are {' '.join(suffixes)}")
        return
    if path.is_file():
        return
    folder = path.parent
    if not folder.is_dir():
        yield Finding((), f"no such folder: {folder}", str(path), "paths are relative to the scene file")
        return
    present = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in suffixes)
    remedy = did_you_mean(path.name, present) or "paths are relative to the scene file"
    yield Finding((), f"{what} '{path.name}' not found in {folder}", str(path), remedy)
