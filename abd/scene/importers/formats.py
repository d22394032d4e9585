"""Formats of scene files by suffix, options of an import, and the search for scenes.

Shipped scenes are next to the package in a checkout and in it in an installed wheel.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import ValidationError

from abd.errors import Problem, SceneError
from abd.scene.geometry.mesh_files import READERS
from abd.scene.schema.findings import as_problem, did_you_mean, enumerated, schema_findings
from abd.scene.schema.schema import SceneSpec


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import; native scenes need none.

    Attributes:
        missing_meshes: "fail", or "boxes": bodies with missing meshes get boxes of their mass and inertia.
        assets: folders searched for meshes and packages, in addition to that of the scene.
        keyframe: name or number of the initial pose, for formats with keyframes; "" for the default.
        free_base: whether the root of a robot is free instead of fixed to the world.
        allow_code: whether macros may read other files and the environment, and evaluate any expression.
    """

    missing_meshes: str = "fail"
    assets: tuple[Path, ...] = ()
    keyframe: str = ""
    free_base: bool = False
    allow_code: bool = False

    def __post_init__(self):
        if self.missing_meshes not in ("fail", "boxes"):
            message = f"missing_meshes should be 'fail' or 'boxes', not {self.missing_meshes!r}"
            raise SceneError.of(message, value=self.missing_meshes)
        object.__setattr__(self, "assets", tuple(Path(folder) for folder in self.assets))


def unique_names(wanted: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names, with a number behind those that are taken or repeated."""
    reserved, used, numbers, out = {*wanted, *taken}, set(taken), Counter[str](), []
    for name in wanted:
        one = name
        while one in used or (one != name and one in reserved):
            numbers[name] += 1
            one = f"{name}_{numbers[name]}"
        used.add(one)
        out.append(one)
    return out


def free_name(name: str, taken: set[str]) -> str:
    """Return a name with underscores until it is none of `taken`, and add it to them."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def check_size(path: Path, most: int, remedy: str = "") -> None:
    """Raise `SceneError` if a file has more than `most` bytes."""
    size = path.stat().st_size
    if size > most:
        message = f"has {size / 2**20:.0f} MiB; at most {most >> 20} MiB are allowed"
        raise SceneError.of(message, file=str(path), value=size, remedy=remedy)


ROBOTS, USD, RIGID_IPC = (f"abd.scene.importers.{name}" for name in ("robots.scene", "usd", "rigid_ipc"))
FORMATS = {
    **dict.fromkeys((".urdf", ".xacro", ".xml", ".mjcf"), ROBOTS),
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), USD),
}
"""Reader of every suffix: a module whose ``read(path, options)`` returns the tables of a scene with absolute paths, and notes."""
OPTIONS = {ROBOTS: ("missing_meshes", "assets", "keyframe", "free_base"), USD: ("missing_meshes", "assets")}
"""Import options of every reader."""
SCENE_FILES = (".toml", ".json")
SUFFIXES = (*SCENE_FILES, *FORMATS)


def is_imported(path: Path) -> bool:
    """Return whether a file has one of `FORMATS`."""
    return path.suffix.lower() in FORMATS


def check_options(path: Path, options: ImportOptions) -> None:
    """Raise `SceneError` if options of an import are given that the format of a file does not have."""
    given = [one.name for one in fields(options) if one.name != "allow_code" and getattr(options, one.name) != one.default]
    own = OPTIONS.get(FORMATS.get(path.suffix.lower(), ""), ())
    flags = [f"--{name.replace('_', '-')}" for name in given if name not in own]
    if flags:
        listed = [Problem(f"{flag} does not apply to this format", file=str(path), remedy=f"drop {flag}") for flag in flags]
        raise SceneError(listed)


def read_imported(path: Path, options: ImportOptions) -> tuple[SceneSpec, list[str]]:
    """Return the scene of a file of one of `FORMATS`, or of a JSON file of rigid-ipc, and notes.

    Raises:
        SceneError: the file has problems, or values of a wrong type or out of range.
    """
    try:
        tables, notes = importlib.import_module(FORMATS.get(path.suffix.lower(), RIGID_IPC)).read(path, options)
        return SceneSpec.model_validate(tables), notes
    except ValidationError as error:
        found = schema_findings(error, SceneSpec, tables)
        raise SceneError([as_problem(finding, tables, str(path)) for finding in found]) from None
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        message = f"cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        remedy = "check the file for values out of range or of the wrong type; otherwise report it as a bug"
        raise SceneError.of(message, file=str(path), remedy=remedy) from None


PACKAGE = Path(__file__).resolve().parents[2]


def scenes_directory() -> Path:
    """Return the folder of the shipped scenes, in a checkout that of the checkout."""
    checkout = PACKAGE.parent
    return checkout / "scenes" if (checkout / "pyproject.toml").is_file() else PACKAGE / "scenes"


def shipped_scenes() -> dict[str, Path]:
    """Files of the shipped scenes by name, in alphabetical order."""
    folder = scenes_directory()
    if not folder.is_dir():
        return {}
    files = sorted(path for path in folder.iterdir() if path.suffix in SCENE_FILES)
    return {path.stem: path for path in files}


def find_scene(source: str | Path) -> Path:
    """Return the file of a path or of the name of a shipped scene."""
    path = Path(source).expanduser()
    shipped = shipped_scenes()
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            remedy = f"use {enumerated(SUFFIXES, 'or')}"
            if path.suffix.lower() in READERS:
                remedy = "give a scene file with a body whose key `mesh` is this file"
            raise SceneError.of(f"'{path.suffix}' is not the suffix of a scene file", file=str(path), remedy=remedy)
        return path
    if str(source) in shipped:
        return shipped[str(source)]
    if path.is_symlink() and not path.exists():
        raise SceneError.of(f"is a link to {path.readlink()}, which does not exist", file=str(path))
    if path.is_dir():
        files = [item for item in path.iterdir() if item.suffix in SUFFIXES]
        inside = [item.name for item in sorted(files, key=lambda item: (SUFFIXES.index(item.suffix), item.name))]
        remedy = f"give a file in it, such as '{inside[0]}'" if inside else "give a scene file"
        raise SceneError.of("is a folder, not a scene", file=str(path), remedy=remedy)
    neighbours = [str(item) for item in sorted(path.parent.iterdir())] if path.parent.is_dir() else []
    files = [name for name in neighbours if name.endswith(SUFFIXES)]
    listed = f"shipped scenes: {', '.join(shipped)}" if shipped else "give the path of a scene file"
    raise SceneError.of(f"no such scene: '{source}'", remedy=did_you_mean(str(source), [*shipped, *files]) or listed)
