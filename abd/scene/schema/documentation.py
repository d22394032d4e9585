"""The scene schema as JSON Schema and as Markdown, generated from the models that parse scene files."""

from __future__ import annotations

import json
from typing import Any, get_origin

import numpy as np

from abd.joint_model import Joint
from abd.joints.types import ALIASES, TYPES
from abd.model import WORLD
from abd.scene.schema.fields import DEGREES, LARGEST_INTEGER, Spec
from abd.scene.schema.findings import models_in
from abd.scene.schema.joint_schema import JointParameters
from abd.scene.schema.joint_types import type_named, type_of
from abd.scene.schema.schema import SceneSpec

BOUNDS = {
    ("exclusiveMinimum", "gt"): ">",
    ("minimum", "ge"): ">=",
    ("exclusiveMaximum", "lt"): "<",
    ("maximum", "le"): "<=",
}
"""Keys of JSON Schema and of pydantic, and their signs."""
WORDS = {"number": "number", "integer": "integer", "boolean": "true or false", "string": "text", "object": "table"}
MOST_CHOICES = 20
"""Choices of a text that are listed."""

INTRODUCTION = """\
# Scene files

A scene is a TOML file, or a JSON file of the same shape. SI units; quaternions are (w, x, y, z); angles are in radians,
except for keys with `degrees` or `_deg` in their name. Keys marked **needed** must be given; the others are optional, with
the default in that column.
"""

EXAMPLE = """\
```toml
gravity = [0, 0, -9.81]

[solver]
dt = 0.01

[[material]]
name = "rubber"
mu = 0.8

[[body]]
name = "ground"
half_space = { normal = [0, 0, 1] }
material = "rubber"

[[body]]
name = "box"
box = [1, 1, 1]
position = [0, 0, 2]
material = "rubber"
```
"""


def schema_json() -> str:
    """The schema as JSON Schema (draft 2020-12), units included, as text."""
    return json.dumps(SceneSpec.model_json_schema(), indent=2)


def sections_with(word: str) -> str:
    """Return the sections of `schema_markdown` with a word in their heading, or else their rows with it; "" without any.

    For a joint type, these are its row and the keys of its joints and coordinates."""
    word, sections = word.lower(), _sections()
    named = [lines for lines in sections if word in lines[0].lower()]
    if word in (*TYPES, *ALIASES):
        named = _of_joint_type(word, {lines[0].strip("#` []"): lines for lines in sections})
    elif not named:
        rows = [(lines[0], [line for line in lines[1:] if line.startswith("|") and word in line.lower()]) for lines in sections]
        named = [[heading, "", *found] for heading, found in rows if found]
    return "\n".join(map("\n".join, named))


def _of_joint_type(name: str, sections: dict[str, list[str]]) -> list[list[str]]:
    """Return the row of a joint type among the given sections, and the keys of its joints, coordinates and drives."""
    own = type_named(name).keys

    def belongs(line: str) -> bool:
        key = line.split("`")[1] if line.startswith("| `") else ""
        return key not in JointParameters.model_fields or key.removesuffix(DEGREES) in own

    types = [line for line in sections["Joint types"] if not line.startswith("| `") or line.startswith(f"| `{type_of(name)}`")]
    return [types, list(filter(belongs, sections["joint"])), *(sections[key] for key in ("joint.coordinate.NAME", "joint.drive"))]


def schema_markdown() -> str:
    """The schema as Markdown: one section per table, one row per key with type, default, range, unit and meaning."""
    return "\n".join([INTRODUCTION, EXAMPLE, "\n\n".join(map("\n".join, _sections())) + "\n"])


def _sections() -> list[list[str]]:
    """Return the lines of every section, its heading first."""
    sections = []
    for title, model in tables():
        properties = model.model_json_schema()["properties"]
        rows = [f"| `{key}` | {_row(properties[key])} |" for key in model.fields_in_order()]
        head = ["| key | type | default | unit | meaning |", "|---|---|---|---|---|"]
        sections.append([f"## {title}", "", " ".join((model.__doc__ or "").split()), "", *head, *rows])
    return [*sections, _joint_types()]


def _joint_types() -> list[str]:
    """Return the lines of the section with one row per joint type; the column `rows` is that of compliant enforcement."""
    lines = ["## Joint types", "", "Lists of compliance and damping have the order of the column `rows`.", ""]
    lines += ["| type | other names | axis | parameters | rows | coordinates | meaning |", "|---" * 7 + "|"]
    for name, kind in TYPES.items():
        joint = Joint(name, name, 0, WORLD, 0, np.eye(4), np.eye(4), parameters=dict(kind.NEEDED))
        cells = (
            f"`{name}`",
            ", ".join(f"`{alias}`" for alias, own in ALIASES.items() if own == name),
            kind.AXIS,
            ", ".join([f"`{key}` (needed)" for key in kind.NEEDED] + [f"`{key}`" for key in kind.OPTIONAL]),
            " ".join(measure.name for measure in kind.constraints(joint)),
            " ".join(measure.name for measure in kind.coordinates(joint)),
            " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split()),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return lines


def tables() -> list[tuple[str, type[Spec]]]:
    """Every table of a scene file with its title, outer tables before those inside them."""
    found: list[tuple[str, type[Spec]]] = [("Top of the file", SceneSpec)]
    waiting = list(_inner_tables("", SceneSpec))
    while waiting:
        path, title, model = waiting.pop(0)
        if any(model is known for _, known in found):
            continue
        found.append((title, model))
        waiting += _inner_tables(path, model)
    return found


def _inner_tables(path: str, model: type[Spec]) -> list[tuple[str, str, type[Spec]]]:
    """Path, title and model of the tables directly inside a table."""
    inner = []
    for key, info in model.model_fields.items():
        for table in models_in(info.annotation):
            below = f"{path}.{key}" if path else key
            below += ".NAME" if get_origin(info.annotation) is dict else ""
            is_list = not path and get_origin(info.annotation) is list
            title = f"`[[{key}]]`" if is_list else f"`[{key}]`" if not path else f"`{below}`"
            inner.append((below, title, table))
    return inner


def _row(field: dict[str, Any]) -> str:
    default = field.get("default")
    shown = "" if default in (None, [], {}) or isinstance(default, dict) else f"`{_short(default)}`"
    cells = (_type(field), shown if "default" in field else "**needed**", field.get("unit", ""), field["description"])
    return " | ".join(cell.replace("|", "\\|") for cell in cells)


def _short(value: Any) -> str:
    """A default value as in TOML, with short numbers."""
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def _type(field: dict[str, Any]) -> str:
    """A type of JSON Schema in words, with its bounds."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"] if one.get("type") != "null"))
    choices = field.get("enum", [field["const"]] if "const" in field else [])
    if 0 < len(choices) <= MOST_CHOICES:
        return " or ".join(f'`"{choice}"`' for choice in choices)
    if "prefixItems" in field:
        inner, count = _type(field["prefixItems"][0]), field["minItems"]
        return f"{count} rows of {inner}" if inner[0].isdigit() else f"{count} {_plural(inner)}"
    if "items" in field:
        return f"list of {_plural(_type(field['items']))}"
    if "additionalProperties" in field:
        return "tables by name"
    known = {key: value for key, value in field.items() if isinstance(value, float | int) and abs(value) < LARGEST_INTEGER}
    bounds = [f"{sign} {known[key]:g}" for keys, sign in BOUNDS.items() for key in keys if key in known]
    return " ".join([WORDS[field.get("type", "object")], ", ".join(bounds)]).strip()


def _plural(words: str) -> str:
    """Return the plural of a type; texts that begin with a number or a choice do not change."""
    noun, space, rest = words.partition(" ")
    return words if words[0] in "`0123456789" else f"{noun}s{space}{rest}"
