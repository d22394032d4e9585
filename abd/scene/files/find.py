"""Finding scene files: by path, or by the name of a scene that comes with the package.

Shipped scenes are next to the package in a checkout and in it in an installed wheel.
"""

from __future__ import annotations

from pathlib import Path

from abd.errors import Problem, SceneError
from abd.scene.importers.formats import imported_suffixes
from abd.scene.schema.suggestions import did_you_mean, enumerated

PACKAGE = Path(__file__).resolve().parents[2]
SCENE_FILES = (".toml", ".json")


def scenes_directory() -> Path:
    """Folder of the shipped scenes: the checkout's own, which is the newer one, where there is a checkout."""
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
    """The file that a path or the name of a shipped scene stands for."""
    path = Path(source).expanduser()
    shipped = shipped_scenes()
    if path.is_file():
        known = (*SCENE_FILES, *imported_suffixes())
        if path.suffix.lower() not in known:
            remedy = f"scenes are {enumerated(known, 'or')} files"
            raise SceneError(
                [Problem(f"no scene format has the suffix '{path.suffix}'", file=str(path), remedy=remedy)]
            )
        return path
    if str(source) in shipped:
        return shipped[str(source)]
    if path.is_symlink() and not path.exists():
        raise SceneError([Problem(f"is a link to {path.readlink()}, which is not there", file=str(path))])
    if path.is_dir():
        inside = sorted(item.name for item in path.iterdir() if item.suffix in (*SCENE_FILES, *imported_suffixes()))
        remedy = f"name a file in it, such as '{inside[0]}'" if inside else "name a scene file"
        raise SceneError([Problem("is a folder, not a scene", file=str(path), remedy=remedy)])
    neighbours = [str(item) for item in sorted(path.parent.iterdir())] if path.parent.is_dir() else []
    files = [name for name in neighbours if name.endswith((*SCENE_FILES, *imported_suffixes()))]
    listed = f"shipped scenes: {', '.join(shipped)}" if shipped else "give the path of a scene file"
    raise SceneError(
        [Problem(f"no such scene: '{source}'", remedy=did_you_mean(str(source), [*shipped, *files]) or listed)]
    )
