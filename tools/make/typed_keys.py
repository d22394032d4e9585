"""Write the types of the keyword arguments of `Scene.add_body` and its kin, from the schema of scene files.

    python tools/make/typed_keys.py        writes abd/scene/schema/body_keys.py and abd/scene/schema/joint_keys.py

Editors complete every key by them, and type checkers know their values; `tests/scene/test_typed_keys.py` holds them against the
schema. A value may be given in more forms than a file has: arrays for lists, tables as any mapping.
"""

from __future__ import annotations

import textwrap
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from abd.scene import joint_methods
from abd.scene.schema import joint_schema, schema
from abd.scene.schema.fields import AxisAngle, Euler, Spec

FOLDER = Path(__file__).parents[2] / "abd" / "scene" / "schema"
WIDTH = 120
HEAD = '''"""{about}

Written by tools/make/typed_keys.py from the schema: `abd schema` tells the same in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
{imports}
'''
BODY = (
    *(AxisAngle, Euler, schema.Sphere, schema.Capsule, schema.Cylinder, schema.Cone, schema.HalfSpace, schema.Surface),
    *(schema.Keyframe, schema.Formulas, schema.MotionSpec, schema.RepeatSpec, schema.BodySpec, schema.MaterialSpec),
    *(schema.MaterialPairSpec, schema.SolverSpec, schema.OutputSpec),
)
JOINT = (
    *(joint_schema.FrameSpec, joint_schema.DriveSpec, joint_schema.CoordinateSpec, joint_schema.JointRepeatSpec),
    *(joint_schema.JointSpec, joint_schema.CouplingTermSpec, joint_schema.CouplingSpec),
)
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
    **{("CommonKeys", key): "FrameKeys | Table | Rows | None" for key in joint_methods.FRAMES},
}
BEYOND = {"BodyKeys": [("transform", "Rows", "(4, 4) pose of the mesh frame, instead of position and a rotation [m]")]}
"""Keys that Python takes in addition to those of the file (`abd.scene.schema.given_meshes`)."""


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
        return f"{name_of(annotation)} | Table"
    return annotation.__name__


def _sequence(items: list[Any]) -> str:
    item = type_of(items[0])
    if item in ("float", "int"):
        return "Numbers"
    return "Rows" if item == "Numbers" else f"Sequence[{item}]"


def source_of(table: type[Spec]) -> str:
    """The class of a table's keys."""
    name = name_of(table)
    required = [key for key, info in table.model_fields.items() if info.is_required() and key not in POSITIONAL.get(name, ())]
    lines = [f"class {name}(TypedDict, total=False):", f'    """{(table.__doc__ or "").splitlines()[0]}"""', ""]
    for key, info in table.fields_in_order().items():
        if key in POSITIONAL.get(name, ()):
            continue
        extra = info.json_schema_extra
        unit = f" [{extra['unit']}]" if isinstance(extra, dict) and extra.get("unit") else ""
        kind = OTHER.get((name, key)) or type_of(info.annotation)
        lines += _entry(key, f"Required[{kind}]" if key in required else kind, f"{info.description}{unit}")
    for key, kind, description in BEYOND.get(name, []):
        lines += _entry(key, kind, description)
    return "\n".join(lines)


def _entry(key: str, kind: str, description: str) -> list[str]:
    comment = textwrap.wrap(description, WIDTH - 6)
    line = f"    {key}: {kind}"
    if len(line) > WIDTH:
        parts = kind.split(" | ") if not kind.startswith("Literal") else [kind]
        line = f"    {key}: (\n" + "\n".join(f"        {'| ' if k else ''}{one}" for k, one in enumerate(parts)) + "\n    )"
    return [*(f"    # {text}" for text in comment), line]


def texts() -> dict[str, str]:
    """The text of every file, by name."""
    body = HEAD.format(
        about="Types of the keyword arguments of `Scene.add_body`, `add_material` and of the settings of a scene.",
        imports="from pathlib import Path\nfrom typing import Any, Literal, Protocol, Required, TypeAlias, TypedDict\n\n"
        "import numpy as np\nfrom numpy.typing import NDArray\n",
    )
    body += '''Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""A list of numbers."""
Rows: TypeAlias = Sequence[Sequence[float] | NDArray[np.floating[Any]]] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""Rows of numbers."""
Table: TypeAlias = Mapping[str, object]
"""A table of keys that are not known before it runs."""


class HasFaces(Protocol):
    """A mesh in memory, such as a `trimesh.Trimesh`."""

    @property
    def vertices(self) -> Any:
        """(v, 3) [m]."""

    @property
    def faces(self) -> Any:
        """(f, 3) vertex numbers."""
'''
    joint = HEAD.format(
        about="Types of the keyword arguments of `Scene.add_joint`, `add_coupling` and their kin.",
        imports="from typing import Literal, Required, TypedDict\n\n"
        "from abd.scene.schema.body_keys import AxisAngleKeys, EulerKeys, Numbers, Rows, Table\n",
    ).rstrip("\n") + "\n"  # fmt: skip
    parts = {"body_keys.py": [body, *map(source_of, BODY)], "joint_keys.py": [joint, *map(source_of, JOINT)]}
    parts["joint_keys.py"].append(_joint_kin())
    return {name: "\n\n".join(part.rstrip("\n") + "\n" for part in some) for name, some in parts.items()}


def _joint_kin() -> str:
    """Keys of joints whose method has an argument of its own for one of them."""
    out = []
    for name, about, keys in (
        ("JointKeys", "of a joint", ("distance", "stiffness")),
        ("DistanceKeys", "of a joint whose distance is an argument", ("stiffness",)),
        ("SpringKeys", "of a joint whose stiffness is an argument", ("distance",)),
    ):
        lines = [f"class {name}(CommonKeys, total=False):", f'    """Keys {about}."""', ""]
        for key in keys:
            info = joint_schema.JointSpec.model_fields[key]
            extra = info.json_schema_extra
            unit = f" [{extra['unit']}]" if isinstance(extra, dict) and extra.get("unit") else ""
            lines += _entry(key, type_of(info.annotation), f"{info.description}{unit}")
        out.append("\n".join(lines) + "\n")
    return "\n\n".join(out)


def main() -> None:
    """Write the files."""
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"written to {FOLDER / name}")


if __name__ == "__main__":
    main()
