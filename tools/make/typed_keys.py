"""Write `abd/scene/schema/keys.py` from the schema of scene files: `python tools/make/typed_keys.py`.

The file contains the types of keyword arguments of `Scene.add_body` and similar methods, for editors and type checkers.
`tests/scene/test_scene_schema.py` compares it with the schema. Arguments accept more types than scene files contain: arrays for
lists, mappings for tables.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from abd.scene import joint_methods
from abd.scene.schema import joint_schema, schema
from abd.scene.schema.fields import Spec

FILE = Path(__file__).parents[2] / "abd" / "scene" / "schema" / "keys.py"
WIDTH = 120
HEAD = '''"""Types of the keyword arguments of `Scene.add_body`, `add_joint` and similar methods, and of the settings of a scene.

Written by tools/make/typed_keys.py from the schema; `abd schema` prints meanings and units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""A list of numbers."""
Rows: TypeAlias = (
    Sequence[Sequence[float] | NDArray[np.floating[Any]]] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
)
"""Rows of numbers."""
Table: TypeAlias = Mapping[str, object]
"""A table inside another table; the schema checks its keys."""


class HasFaces(Protocol):
    """A mesh in memory, such as a `trimesh.Trimesh`."""

    @property
    def vertices(self) -> Any:
        """(v, 3) [m]."""

    @property
    def faces(self) -> Any:
        """(f, 3) vertex numbers."""
'''
TABLES = (
    *(schema.BodySpec, schema.MaterialSpec, schema.MaterialPairSpec, schema.SolverSpec, schema.OutputSpec),
    *(joint_schema.JointSpec, joint_schema.CouplingSpec),
)
"""Tables whose keys are arguments of a method. Tables inside them have the type `Table`."""
POSITIONAL = {
    "BodyKeys": ("name",),
    "MaterialKeys": ("name",),
    "MaterialPairKeys": ("between",),
    "CommonKeys": ("name", "type", "parent", "child", "distance", "stiffness"),
    "CouplingKeys": ("name", "coordinate", "terms"),
}
"""Keys that are positional arguments of the methods."""
TYPES = {
    ("BodyKeys", "mesh"): "str | Path | HasFaces | tuple[Rows, Rows] | None",
    **{("CommonKeys", key): "Table | Rows | None" for key in joint_methods.FRAMES},
}
"""Types that differ from those of the schema."""
ADDITIONAL = {"BodyKeys": [("transform", "Rows")]}
"""Arguments that are not keys of scene files (`abd.scene.schema.tables`)."""


def name_of(table: type[Spec]) -> str:
    """Return the name of the type of a table's keys."""
    return "CommonKeys" if table is joint_schema.JointSpec else table.__name__.removesuffix("Spec") + "Keys"


def type_of(annotation: Any) -> str:
    """Return the source of the type of the argument for a field."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(inner[0])
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(type_of(option) for option in inner))
    if origin is Literal:
        return f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in inner)}]"
    if origin is dict:
        return f"Mapping[str, {type_of(inner[1])}]"
    if origin in (tuple, list):
        return _sequence([one for one in inner if one is not Ellipsis])
    if annotation is type(None):
        return "None"
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return "Table"
    return annotation.__name__


def _sequence(items: list[Any]) -> str:
    item = type_of(items[0])
    if item in ("float", "int"):
        return "Numbers"
    return "Rows" if item == "Numbers" else f"Sequence[{item}]"


def source_of(table: type[Spec]) -> str:
    """Return the source of the class of a table's keys."""
    name = name_of(table)
    lines = [f"class {name}(TypedDict, total=False):"]
    lines += [f'    """{(table.__doc__ or "").splitlines()[0]}"""', ""]
    for key, info in table.fields_in_order().items():
        if key not in POSITIONAL.get(name, ()):
            kind = TYPES.get((name, key)) or type_of(info.annotation)
            lines.append(_entry(key, kind))
    lines += [_entry(key, kind) for key, kind in ADDITIONAL.get(name, [])]
    return "\n".join(lines)


def _entry(key: str, kind: str) -> str:
    line = f"    {key}: {kind}"
    if len(line) <= WIDTH:
        return line
    parts = kind.split(" | ") if not kind.startswith("Literal") else [kind]
    return f"    {key}: (\n" + "\n".join(f"        {'| ' if k else ''}{one}" for k, one in enumerate(parts)) + "\n    )"


def text() -> str:
    """Return the text of the file."""
    return "\n\n".join(part.rstrip("\n") + "\n" for part in [HEAD, *map(source_of, TABLES), *_joint_sources()])


def _joint_sources() -> list[str]:
    """Return the sources of the classes for methods of joints, which differ in their positional arguments."""
    fields = joint_schema.JointSpec.model_fields
    sources = []
    for name, about, keys in (
        ("JointKeys", "of a joint", ("distance", "stiffness")),
        ("DistanceKeys", "of a joint whose distance is an argument", ("stiffness",)),
        ("SpringKeys", "of a joint whose stiffness is an argument", ("distance",)),
    ):
        lines = [f"class {name}(CommonKeys, total=False):", f'    """Keys {about}."""', ""]
        sources.append("\n".join([*lines, *(_entry(key, type_of(fields[key].annotation)) for key in keys)]))
    return sources


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
