"""The formats that `abd` imports, by the suffixes of their files, and what a user may say about an import."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from abd.errors import Problem, SceneError
from abd.scene.schema.findings import as_problem, schema_findings
from abd.scene.schema.schema import SceneSpec


@dataclass(frozen=True)
class ImportOptions:
    """What a user may say about an import; native scenes need none of it.

    Attributes:
        missing_meshes: "fail", or "boxes": bodies whose meshes are not there get boxes of their mass and inertia.
        assets: folders in which meshes and packages are looked for, in addition to the scene's own.
        keyframe: name or number of the pose that the scene starts in, where the format has such; "" for its default.
        free_base: a robot's root, which its format fastens to the world, is free instead.
        allow_code: macros may read other files and the environment, and evaluate any expression.
    """

    missing_meshes: str = "fail"
    assets: tuple[Path, ...] = ()
    keyframe: str = ""
    free_base: bool = False
    allow_code: bool = False

    def __post_init__(self):
        if self.missing_meshes not in ("fail", "boxes"):
            message = f"missing_meshes should be 'fail' or 'boxes', not {self.missing_meshes!r}"
            raise SceneError([Problem(message, value=self.missing_meshes)])
        object.__setattr__(self, "assets", tuple(Path(folder) for folder in self.assets))


@dataclass(frozen=True)
class Format:
    """A family of formats that one module reads.

    Attributes:
        suffixes: of its files, in lower case.
        module: where ``read(path, options)`` gives the tables of a scene, with absolute paths, and notes on what it left out.
    """

    suffixes: tuple[str, ...]
    module: str

    def read(self, path: Path, options: ImportOptions) -> tuple[SceneSpec, list[str]]:
        """The scene in a file, and notes.

        Raises:
            SceneError: what the format's module finds, values that no scene can have, or that have another type than the format
                says.
        """
        try:
            tables, notes = importlib.import_module(self.module).read(path, options)
            return SceneSpec.model_validate(tables), notes
        except ValidationError as error:
            found = schema_findings(error, SceneSpec, tables)
            raise SceneError([as_problem(finding, tables, str(path)) for finding in found]) from error
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            message = f"cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            remedy = "look for a value that is out of range or of another type than its format says; else report the file"
            raise SceneError([Problem(message, file=str(path), remedy=remedy)]) from error


FORMATS = (
    Format((".urdf", ".xacro", ".xml", ".mjcf"), "abd.scene.importers.robots"),
    Format((".usd", ".usda", ".usdc", ".usdz"), "abd.scene.importers.usd"),
)


def format_of(path: Path) -> Format | None:
    """The format of a file by its suffix; None for native scenes."""
    suffix = path.suffix.lower()
    return next((one for one in FORMATS if suffix in one.suffixes), None)


def imported_suffixes() -> tuple[str, ...]:
    """All suffixes of `FORMATS`."""
    return tuple(suffix for one in FORMATS for suffix in one.suffixes)
