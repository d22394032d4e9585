"""Reader of scene files (TOML or JSON): a `SceneSpec`, or all problems with lines.

Reading has two passes. The schema checks every value and omits invalid ones. Tables without invalid values are then
checked for relations between keys.
"""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from abd.errors import Problem, SceneError
from abd.joints.types import TYPES
from abd.scene.checks.checks import check_scene
from abd.scene.schema.fields import Spec
from abd.scene.schema.findings import Finding, as_problem, models_in, schema_findings
from abd.scene.schema.key_lines import KeyLines, Lines, line_of
from abd.scene.schema.key_lines import Path as KeyPath
from abd.scene.schema.schema import JointTypeSpec, SceneSpec, absolute_in, with_paths
from abd.scene.schema.values import most, remedy


def define_types(data: dict[str, Any], directory: Path, allow_code: bool) -> list[Finding]:
    """Define the joint types of parsed scene tables before their joints are read; return findings.

    The code has the rights of the user, so that it is loaded only with the user's permission (``--allow-code``). The schema
    reports entries without a name, a file or a function.
    """
    found, tables = [], data.get("joint_type")
    for k, table in enumerate(tables if isinstance(tables, list) else []):
        try:
            one = JointTypeSpec.model_validate(table)
        except ValidationError:
            continue
        if wrong := _define(one, directory / one.file, allow_code):
            key, message, remedy = wrong
            found.append(Finding(("joint_type", k, key), message, getattr(one, key), remedy))
    return found


def _define(one: JointTypeSpec, path: Path, allow_code: bool) -> tuple[str, str, str] | None:
    """Call the function of a file with the name of the type; return key, message and remedy of an error, if any."""
    if not allow_code:
        remedy = "if you trust the file, add --allow-code (in Python: allow_code=True)"
        return "file", "Python code runs only with permission", remedy
    if not path.is_file():
        return "file", "there is no such file", "paths are relative to the scene file"
    try:
        defined = runpy.run_path(str(path), run_name=f"abd_joint_type_{path.stem}")
    except Exception as error:  # any error of the user's code becomes a problem of the scene
        return "file", f"raises {type(error).__name__}: {error}", "correct the file"
    if not callable(defined.get(one.function)):
        return "function", f"'{path.name}' has no such function", "give a function that calls abd.joint_type(name, ...)"
    before = TYPES.get(one.name)
    try:
        defined[one.function](one.name)
    except SceneError as error:
        return "function", "; ".join(problem.message for problem in error.problems), "correct the definition"
    except Exception as error:
        return "function", f"raises {type(error).__name__}: {error}", "its argument is the name of the type"
    if TYPES.get(one.name) is before:
        return "name", f"{one.function} defines no joint type of this name", "call abd.joint_type(name, ...) in it"
    return None


LISTS = ("material", "material_pair", "body", "contact_filter", "joint_type", "joint", "coupling", "sensor")
NEEDED = {"name", "kind", "repeat", "split_components", "world", "type", "child", "between", "terms"}
"""Keys of list items on which other items depend; items with errors in these keys are not checked further."""


def read_scene(path: str | Path, allow_code: bool = False) -> SceneSpec:
    """Return the scene of a TOML or JSON file, with absolute paths, and by default the stem of the file as name.

    Raises:
        SceneError: all problems of the scene, with file and line.
    """
    found, problems = examine(Path(path), allow_code)
    if problems:
        raise SceneError(problems)
    return found.spec


@dataclass
class Examined:
    """The valid part of the data of a scene.

    Attributes:
        spec: the scene without values, and without items of lists, that the schema rejects; names are all there.
        findings: all findings, by paths in the data.
        origin: place in the data of every item of the scene's lists, by list.
        unreadable: names of the items that are not in `spec`, by list.
    """

    spec: SceneSpec
    findings: list[Finding]
    origin: dict[str, list[int]]
    unreadable: dict[str, list[str]]


def examine(path: Path, allow_code: bool = False) -> tuple[Examined, list[Problem]]:
    """Return the valid part of a TOML or JSON file, and all findings in the order of its lines.

    Raises:
        SceneError: it cannot be read, or its syntax is invalid.
    """
    text = read_text(path)
    data = parse(text, path)
    types = define_types(data, path.parent, allow_code)
    found = validated(data, path.parent)
    if types:  # joints may be of types that are not there
        found.findings = [*types, *(one for one in found.findings if one.path[0] != "joint")]
    repeated = KeyLines(text, True).repeated if is_json(path) else []
    problems: list[Problem] = []
    if found.findings or repeated:
        lines = key_lines(text, path)
        problems = [as_problem(one, data, str(path), line_of(lines, one.path)) for one in found.findings]
        for key, line in repeated:
            problems.append(as_problem(Finding(key, "is given twice", remedy="keep one"), data, str(path), line))
    if not found.spec.name:
        found.spec.name = path.stem
    return found, sorted(problems, key=lambda problem: problem.line or 0)


def read_text(path: Path) -> str:
    """Return the text of a scene file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = Problem("is not a text in UTF-8", file=str(path), line=line, remedy="save it as UTF-8")
        raise SceneError([problem]) from None
    except OSError as error:
        raise SceneError.of(f"cannot be read: {error.strerror or error}", file=str(path)) from None


def _check_keys(text: str, path: Path) -> None:
    """Raise `SceneError` for a dotted key of many parts, for which the memory of the parser is unbounded."""
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, _ = line.partition("=")
        dotted = key if equals else line.strip() if line.lstrip().startswith("[") and "," not in line else ""
        if dotted.count(".") > most("KEY_PARTS"):
            message = f"a key has {dotted.count('.') + 1} parts; at most {most('KEY_PARTS')} are read"
            raise SceneError.of(message, file=str(path), line=number, remedy=remedy("KEY_PARTS"))


def parse(text: str, path: Path) -> dict[str, Any]:
    """Return the tables of a text, TOML or JSON by the suffix of its path."""
    if not is_json(path):
        _check_keys(text, path)
    try:
        data = json.loads(text) if is_json(path) else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise SceneError.of(f"JSON: {error.msg}", file=str(path), line=error.lineno) from None
    except tomllib.TOMLDecodeError as error:
        raise SceneError([_toml_problem(error, text, path)]) from None
    except RecursionError:
        raise SceneError.of("has too many nested tables", file=str(path)) from None
    if not isinstance(data, dict):
        raise SceneError.of("must contain a table { } at the top", file=str(path), line=1)
    return data


def is_json(path: Path) -> bool:
    """Return whether a scene file is JSON; all others are TOML."""
    return path.suffix.lower() == ".json"


def key_lines(text: str, path: Path) -> Lines:
    """Return the line of every key of a valid text."""
    return KeyLines(text, is_json(path)).lines


def validated(data: dict[str, Any], directory: Path) -> Examined:
    """Return the scene of the valid part of the data, and all findings; paths are relative to the directory."""
    findings: list[Finding] = []
    tables, origin, unreadable = dict(data), dict[str, list[int]](), dict[str, list[str]]()
    for key in data.keys() & SceneSpec.model_fields.keys():
        model = next(iter(models_in(SceneSpec.model_fields[key].annotation)), None)
        if key in LISTS and isinstance(data[key], list):
            items = [_sound(model, item, (key, k), findings) for k, item in enumerate(data[key])]
            tables[key] = [item for item in items if item is not None]
            origin[key] = [k for k, item in enumerate(items) if item is not None]
            lost = [one for one, item in zip(data[key], items, strict=True) if item is None and isinstance(one, dict)]
            unreadable[key] = [one["name"] for one in lost if isinstance(one.get("name"), str)]
        elif model is not None and key not in LISTS and isinstance(data[key], dict):
            tables[key] = _sound(model, data[key], (key,), findings) or {}
    spec = with_paths(_sound(SceneSpec, tables, (), findings), absolute_in(directory))
    rejected = {finding.path[:depth] for finding in findings for depth in (1, 2)}
    for finding in check_scene(spec, unreadable):
        key, *rest = finding.path
        if key in origin and rest:
            finding = replace(finding, path=(key, origin[key][rest[0]], *rest[1:]))
        if finding.path[:2] not in rejected:
            findings.append(finding)
    return Examined(spec, findings, origin, unreadable)


def _sound(model: type[Spec], table: Any, at: KeyPath, findings: list[Finding]) -> Spec | None:
    """Return the table `at` this path without invalid fields; None if it is invalid without them.

    Errors are added to `findings`.
    """
    while True:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            new = schema_findings(error, SceneSpec, table, at)
        findings += new
        rejected = {finding.path[len(at)] for finding in new if len(finding.path) > len(at)}
        if not rejected or not rejected <= table.keys() or (at and rejected & NEEDED):
            return None
        table = {key: value for key, value in table.items() if key not in rejected}


TOML_REMEDIES = {
    "Cannot overwrite a value": "give each key of a table once",
    "Invalid value": "texts are in quotes, numbers have digits around the point (0.5), truth values are true and false",
}
"""Remedies by a part of the messages of `tomllib`."""


def _toml_problem(error: tomllib.TOMLDecodeError, text: str, path: Path) -> Problem:
    message = str(error)
    place = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = int(place[1]) if place else text.count("\n") + 1
    message = re.sub(r" \(at .*\)$", "", message)
    remedy = next((text for part, text in TOML_REMEDIES.items() if part in message), "")
    return Problem(f"TOML: {message[:1].lower()}{message[1:]}", file=str(path), line=line, remedy=remedy)
