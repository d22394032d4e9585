"""A scene as TOML text: deterministic, and read back to an equal `SceneSpec`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from abd.scene.files.reader import LISTS
from abd.scene.schema.fields import Spec, fields_set
from abd.scene.schema.schema import SceneSpec, with_paths

OWN_TABLES = ("motion", "surface", "coordinate")
"""Tables of a body or a joint with their own header; all others are written {inline}."""

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

LONGEST_LINE = 120


def scene_toml(spec: SceneSpec, directory: str | Path | None = None, explicit: bool = False) -> str:
    """Return the text of a scene file.

    Args:
        directory: folder of the file, to which paths are relative; None: paths do not change.
        explicit: write values that equal their defaults too.
    """
    if directory is not None:
        folder = Path(directory).absolute()
        spec = with_paths(spec, lambda path: Path(os.path.relpath(path, folder)).as_posix())
    lines = [
        f"{key} = {_value(value, explicit)}" for key, value in _fields(spec, explicit) if key in ("name", "gravity")
    ]
    for key in ("solver", "output", "camera"):
        fields = _fields(getattr(spec, key), explicit)
        if fields:
            lines += ["", f"[{key}]", *_lines(fields, explicit)]
    for key in LISTS:
        for item in getattr(spec, key):
            lines += ["", f"[[{key}]]", *_item_lines(key, item, explicit)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _item_lines(key: str, item: Spec, explicit: bool) -> Iterator[str]:
    fields = _fields(item, explicit)
    tables = [(name, value) for name, value in fields if name in OWN_TABLES and isinstance(value, (Spec, dict))]
    yield from _lines([field for field in fields if field not in tables], explicit)
    for name, value in tables:
        named = {f".{_key(inner)}": one for inner, one in value.items()} if isinstance(value, dict) else {"": value}
        for inner, table in named.items():
            yield f"[{key}.{name}{inner}]"
            yield from _lines(_fields(table, explicit), explicit)


def _key(name: str) -> str:
    """Return a TOML key, without quotes if possible."""
    return name if BARE_KEY.fullmatch(name) else _value(name, False)


def _fields(table: Spec, explicit: bool) -> list[tuple[str, Any]]:
    """Return the keys and values to write: the given ones and, if `explicit`, the defaults."""
    fields, given = [], table.__dict__ if explicit else fields_set(table)
    for key, info in type(table).fields_in_order().items():
        value = given.get(key)
        if value is None or value == {} or (key == "proxy" and not value):
            continue
        if not explicit and value in ([], ()) and value == info.default:
            continue
        if key == "tolerance" and table.tolerance_relative is not None:
            continue
        fields.append((key, value))
    return fields


def _lines(fields: list[tuple[str, Any]], explicit: bool) -> Iterator[str]:
    for key, value in fields:
        line = f"{key} = {_value(value, explicit)}"
        if len(line) > LONGEST_LINE and isinstance(value, list):
            line = "\n".join([f"{key} = [", *(f"  {_value(item, explicit)}," for item in value), "]"])
        yield line


def _value(value: Any, explicit: bool) -> str:
    if isinstance(value, Spec):
        inner = ", ".join(f"{key} = {_value(item, explicit)}" for key, item in _fields(value, explicit))
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(item, explicit)}' for key, item in value.items())} }}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item, explicit) for item in value)}]"
    return repr(value)
