"""Single values of a scene, set from the command line: ``solver.dt=0.005``, ``body.crank.density=500``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from abd.errors import SceneError
from abd.scene.checks.checks import check_scene
from abd.scene.schema.findings import NAMED_LISTS, Finding, as_problem, did_you_mean, schema_findings
from abd.scene.schema.schema import DEFAULT_MATERIAL, SceneSpec, absolute_in, with_paths
from abd.scene.schema.tables import plain

EXCLUDES = {
    "solver.tolerance": ("tolerance_relative",),
    "solver.tolerance_relative": ("tolerance",),
    "output.frames": ("duration",),
    "output.duration": ("frames",),
}
"""Keys that replace other keys."""


def apply_overrides(spec: SceneSpec, overrides: Iterable[str], directory: Path) -> SceneSpec:
    """Return a new scene with some values replaced; `spec` is not modified.

    Args:
        overrides: texts ``key=value``: keys are paths of tables, with items of lists by their name; the value is
            TOML, and a text needs no quotes.
        directory: folder to which paths in the overrides are relative; those in `spec` are relative to the current one.

    Raises:
        SceneError: unknown keys, names and values that the scene cannot take, all at once.
    """
    data = plain(with_paths(spec, absolute_in(Path.cwd())))
    problems = []
    for override in overrides:
        try:
            _set(data, override)
        except SceneError as error:
            problems += error.problems
    if not problems:
        try:
            changed = with_paths(SceneSpec.model_validate(data), absolute_in(directory))
        except ValidationError as error:
            findings = schema_findings(error, SceneSpec, data)
        else:
            # An imported scene may say things that a native one may not: only what is new counts.
            known = {(tuple(finding.path), finding.message) for finding in check_scene(spec)}
            findings = [one for one in check_scene(changed) if (tuple(one.path), one.message) not in known]
            if not findings:
                return changed
        problems = [as_problem(finding, data, "-o") for finding in findings]
    raise SceneError(problems)


def _set(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        message = f"cannot be read: '{override}'"
        raise SceneError.of(message, value=override, file="-o", remedy="write key=value, such as solver.dt=0.005")
    *tables, last = _path(data, key)
    table: Any = data
    for part in tables:
        table = table[part] if isinstance(part, int) else table.setdefault(part, {})
        if not isinstance(table, dict) and part not in NAMED_LISTS:
            message = f"'{part}' in '{key}' is not a table"
            raise SceneError.of(message, key=key, value=override, file="-o", remedy="see `abd schema`")
    table[last] = value_of(text.strip())
    for other in EXCLUDES.get(key, ()):
        table.pop(other, None)


def _path(data: dict[str, Any], key: str) -> list[str | int]:
    """Return the path of a key in the data, with indices for names of list items; names may contain dots."""
    head, *rest = key.split(".")
    if head not in NAMED_LISTS:
        return [head, *rest]
    if head == "material" and rest[:1] == [DEFAULT_MATERIAL]:
        materials = data.setdefault("material", [])
        if all(item["name"] != DEFAULT_MATERIAL for item in materials):
            materials.append({"name": DEFAULT_MATERIAL})
    names = [item["name"] for item in data.get(head, [])]
    for length in range(len(rest) - 1, 0, -1):
        name = ".".join(rest[:length])
        if name in names:
            return [head, names.index(name), *rest[length:]]
    wanted = rest[0] if rest else ""
    finding = Finding((head,), f"there is no {head} '{wanted}'", wanted, did_you_mean(wanted, names))
    if not rest or wanted in names:
        finding = Finding((head,), f"'{key}' is not the key of a value", key, f"write {head}.NAME.KEY=value")
    raise SceneError([as_problem(finding, data, "-o")])


def value_of(text: str) -> Any:
    """Return a TOML value, a number such as .5 that TOML does not have, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return float(text) if re.fullmatch(r"[+-]?(\d+\.|\.\d+)(e[+-]?\d+)?", text) else text
