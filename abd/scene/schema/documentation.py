"""The scene schema for readers: as JSON Schema and as Markdown, both made from the models that parse scene files."""

from __future__ import annotations

import json
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from abd.joints.types import ALIASES, TYPES
from abd.model import WORLD, Joint
from abd.scene.schema.fields import Spec
from abd.scene.schema.findings import models_in
from abd.scene.schema.joint_types import EXAMPLES, traits
from abd.scene.schema.schema import SceneSpec

BOUNDS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
LARGEST_BOUND = 2**31 - 1
"""Bounds from here on belong to the representation and are not worth a word."""

INTRODUCTION = """\
# Scene files

A scene is a TOML file, or a JSON file of the same shape. SI units; quaternions are (w, x, y, z); angles are in radians,
except where a key says `degrees` or `_deg`. Keys without a default must be given; those without a value in that column
are left out by default.
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


def schema_markdown() -> str:
    """The schema as Markdown: one section per table, one row per key with type, default, range, unit and meaning."""
    sections = [INTRODUCTION, EXAMPLE]
    sections += [_section(title, model) for title, model in tables()]
    sections.append(_joint_types())
    return "\n".join(sections)


def _joint_types() -> str:
    """One row per type of joint; rows are those of compliant enforcement, whose order is that of its lists."""
    head = "| type | other names | axis | parameters | rows | coordinates | meaning |"
    lines = ["## Joint types\n", "Rows are in the order of lists of compliance and damping.\n", head, "|---" * 7 + "|"]
    for name, module in TYPES.items():
        its = traits(name)
        joint = Joint(name, name, 0, WORLD, 0, np.eye(4), np.eye(4), parameters={k: EXAMPLES[k] for k in its.needs})
        cells = (
            f"`{name}`",
            ", ".join(f"`{alias}`" for alias, own in ALIASES.items() if own == name),
            its.axis,
            ", ".join([f"`{key}` (needed)" for key in its.needs] + [f"`{key}`" for key in its.takes]),
            " ".join(measure.name for measure in module.constraints(joint)),
            " ".join(measure.name for measure in module.coordinates(joint)),
            " ".join((module.__doc__ or "").strip().split("\n\n")[0].split()),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


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


def _section(title: str, model: type[Spec]) -> str:
    meaning = " ".join((model.__doc__ or "").split())
    rows = [f"| `{key}` | {_row(info)} |" for key, info in model.fields_in_order().items()]
    head = ["| key | type | default | unit | meaning |", "|---|---|---|---|---|"]
    return "\n".join([f"## {title}\n", f"{meaning}\n", *head, *rows, ""])


def _row(info: FieldInfo) -> str:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    kind = " ".join(part for part in (_type(info.annotation), _range(info)) if part)
    cells = (kind, _default(info), str(extra.get("unit", "")), info.description or "")
    return " | ".join(cell.replace("|", "\\|") for cell in cells)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "**needed**"
    value = info.default
    if value is None or value is PydanticUndefined or isinstance(value, Spec) or value in ([], {}):
        return ""
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    """A default value as in TOML, with short numbers."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def _range(info: FieldInfo) -> str:
    bounds = []
    for name, sign in BOUNDS:
        for rule in info.metadata:
            bound = getattr(rule, name, None)
            if bound is not None and abs(bound) < LARGEST_BOUND:
                bounds.append(f"{sign} {bound:g}")
    return ", ".join(bounds)


def _type(annotation: Any) -> str:
    """A type in words."""
    if get_origin(annotation) is Annotated:
        inner, *rules = get_args(annotation)
        bounds = [_range(rule) for rule in rules if isinstance(rule, FieldInfo)]
        return " ".join([_type(inner), *filter(None, bounds)])
    if get_origin(annotation) is Literal:
        return " or ".join(f'`"{choice}"`' for choice in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        parts = (_type(part) for part in get_args(annotation) if part is not type(None))
        return " or ".join(dict.fromkeys(parts))
    if get_origin(annotation) is tuple:
        items = get_args(annotation)
        inner = _type(items[0])
        if items[-1] is Ellipsis:
            return f"list of {_plural(inner)}"
        return f"{len(items)} rows of {inner}" if inner[0].isdigit() else f"{len(items)} {inner}s"
    if get_origin(annotation) is dict:
        return "tables by name"
    if get_origin(annotation) is list:
        return f"list of {_plural(_type(get_args(annotation)[0]))}"
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return "table"
    return {float: "number", int: "integer", bool: "true or false", str: "text"}[annotation]


def _plural(words: str) -> str:
    """Several of a type; what begins with a number or a choice stays."""
    if words[0].isdigit() or words[0] == "`":
        return words
    return words.replace("list of", "lists of", 1) if words.startswith("list of") else f"{words}s"
