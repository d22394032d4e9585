"""Write the types of the keyword arguments of `Scene.add_body` and its kin, from the schema of scene files.

    python tools/make/typed_keys.py        writes abd/scene/schema/keys.py

Editors complete the keys by them, and type checkers know their values; `tests/scene/test_typed_keys.py` holds them against the
schema. A value may be given in more forms than a file has: arrays for lists, tables as any mapping.
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
HEAD = '''"""Types of the keyword arguments of `Scene.add_body`, `add_joint` and their kin, and of the settings of a scene.

Written by tools/make/typed_keys.py from the schema, which has the meanings and units: `abd schema` prints them.
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
"""A table inside another one, which is checked when it is given."""


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
"""Tables whose keys are arguments of a method; those inside them are mappings, which the schema checks when they are given."""
POSITIONAL = {
    "BodyKeys": ("name",),
    "MaterialKeys": ("name",),
    "MaterialPairKeys": ("between",),
    "CommonKeys": ("name", "type", "parent", "child", "distance", "stiffness"),
    "CouplingKeys": ("name", "coordinate", "terms"),
}
"""Keys that are arguments of their own."""
OTHER = {
    ("BodyKeys", "mesh"): "str | Path | HasFaces | tuple[Rows, Rows] | None",
    **{("CommonKeys", key): "Table | Rows | None" for key in joint_methods.FRAMES},
}
BEYOND = {"BodyKeys": [("transform", "Rows")]}
"""Keys that Python takes in addition to those of the file (`abd.scene.schema.tables`)."""


def name_of(table: type[Spec]) -> str:
    """Name of the type of a table's keys."""
    return "CommonKeys" if table is joint_schema.JointSpec else table.__name__.removesuffix("Spec") + "Keys"


def type_of(annotation: Any) -> str:
    """What may be given for a field, as source."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(inner[0])
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(type_of(one) for one in inner))
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
    """The class of a table's keys."""
    name = name_of(table)
    lines = [f"class {name}(TypedDict, total=False):"]
    lines += [f'    """{(table.__doc__ or "").splitlines()[0]}"""', ""]
    for key, info in table.fields_in_order().items():
        if key not in POSITIONAL.get(name, ()):
            kind = OTHER.get((name, key)) or type_of(info.annotation)
            lines.append(_entry(key, kind))
    lines += [_entry(key, kind) for key, kind in BEYOND.get(name, [])]
    return "\n".join(lines)


def _entry(key: str, kind: str) -> str:
    line = f"    {key}: {kind}"
    if len(line) <= WIDTH:
        return line
    parts = kind.split(" | ") if not kind.startswith("Literal") else [kind]
    return f"    {key}: (\n" + "\n".join(f"        {'| ' if k else ''}{one}" for k, one in enumerate(parts)) + "\n    )"


def text() -> str:
    """The text of the file."""
    return "\n\n".join(part.rstrip("\n") + "\n" for part in [HEAD, *map(source_of, TABLES), *_joint_kin()])


def _joint_kin() -> list[str]:
    """Keys of joints whose method has an argument of its own for one of them."""
    fields = joint_schema.JointSpec.model_fields
    out = []
    for name, about, keys in (
        ("JointKeys", "of a joint", ("distance", "stiffness")),
        ("DistanceKeys", "of a joint whose distance is an argument", ("stiffness",)),
        ("SpringKeys", "of a joint whose stiffness is an argument", ("distance",)),
    ):
        lines = [f"class {name}(CommonKeys, total=False):", f'    """Keys {about}."""', ""]
        out.append("\n".join([*lines, *(_entry(key, type_of(fields[key].annotation)) for key in keys)]))
    return out


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")
    print(f"written to {FILE}")


if __name__ == "__main__":
    main()
