"""Problems of a scene by key path, and messages for the errors of pydantic."""

from __future__ import annotations

import difflib
import pathlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from abd.errors import Problem
from abd.scene.schema.key_lines import Path

OTHER_WORDS = {
    "quaternion": "rotation orientation quat",
    **dict.fromkeys(("matrix", "axis_angle", "euler"), "rotation orientation"),
    "position": "pos translation",
    "linear_velocity": "vel",
    "velocity": "vel linear_velocity",
    "speed": "vel velocity",
    "rates": "velocity qvel",
    "angular_velocity": "omega",
    "mu": "friction coefficient_friction",
    "dt": "timestep time_step",
    "d_hat": "dhat",
    "kappa": "stiffness youngs_modulus",
    "center_of_mass": "com",
    "kind": "type",
    "half_space": "plane ground",
    "box": "size",
    "mesh": "file",
    "parent": "body_a base predecessor",
    "child": "body_b successor",
    "anchor": "pivot",
    "range": "limits lower upper",
    "range_deg": "limits_deg",
    "drive": "motor actuator",
    "effort": "torque torque_limit",
    "break_force": "max_force",
    "break_torque": "max_torque",
    "critical_damping": "zeta",
    "lead": "pitch",
    "stiffness": "spring",
    "factor": "ratio",
    "frames": "steps",
    "max_newton": "max_iterations",
    "fix": "is_dof_fixed",
    "group": "group_id",
    "static": "fixed",
    "hinge": "continuous",
    "value": "position angle",
    "coordinates": "angle qpos",
}
"""Names of other programs for our keys, whose spelling differs too much for a search by similarity."""

MOST = 2000
"""Candidates that a word is compared with."""


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """The question "did you mean 'x'?" for the nearest candidate, or an empty string without a similar one."""
    return _question(word, tuple(islice(candidates, MOST)))


@lru_cache(maxsize=64)  # the same mistake in thousands of tables is looked for once
def _question(word: str, known: tuple[str, ...]) -> str:
    folded = {candidate.lower(): candidate for candidate in reversed(known)}
    others = [other for other in synonyms(word) if other in known]
    if word.lower() not in folded and others:
        return f"did you mean {enumerated(others)}?"
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean '{folded[near[0]]}'?" if near else ""


def synonyms(word: str) -> list[str]:
    """Return our names for a name of other programs."""
    return [own for own, others in OTHER_WORDS.items() if word.lower() in others.split()]


def enumerated(words: Iterable[str], last: str = "or") -> str:
    """'a', 'b' or 'c'."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


LONGEST_VALUE = 60
NAMED_LISTS = ("body", "joint", "coupling", "material", "sensor")
MOST_HINTS = 3


@dataclass(frozen=True)
class Finding:
    """One problem, at a key path."""

    path: Path
    message: str
    value: Any = None
    remedy: str = ""


def within(findings: Iterable[Finding], *path: str | int) -> Iterator[Finding]:
    """The findings of the table or list item at a path, with paths relative to that path."""
    return (replace(finding, path=(*path, *finding.path)) for finding in findings)


def shown(value: Any) -> str:
    """A value as a message shows it: short, strings in quotes, booleans as in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        value = list(value)
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 4]} ..."


def check_file(path: pathlib.Path, suffixes: Iterable[str], what: str) -> Iterator[Finding]:
    """Findings, with an empty path, of a file that is missing or has another suffix than these."""
    if path.suffix.lower() not in suffixes:
        kind = f"'{path.suffix}'" if path.suffix else "none"
        yield Finding((), f"is no {what}: its suffix is {kind}", str(path), f"known are {' '.join(suffixes)}")
        return
    if path.is_file():
        return
    folder = path.parent
    if not folder.is_dir():
        yield Finding((), f"no such folder: {folder}", str(path), "paths are relative to the scene file")
        return
    present = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in suffixes)
    remedy = did_you_mean(path.name, present) or "paths are relative to the scene file"
    yield Finding((), f"{what} '{path.name}' not found in {folder}", str(path), remedy)


def key_name(path: Path, data: Any) -> str:
    """A path as users write it in overrides: items of named lists by name, others by position: body.crank.density."""
    parts = ""
    for depth, part in enumerate(path):
        data = _child(data, part)
        if isinstance(part, int):
            name = _child(data, "name")
            named = depth == 1 and path[0] in NAMED_LISTS and isinstance(name, str) and name
            parts += f".{name}" if named else f"[{part}]"
        else:
            parts += f".{part}" if parts else str(part)
    return parts


def as_problem(finding: Finding, data: Any, file: str = "", line: int | None = None) -> Problem:
    """Return a finding as a problem of a file; `data` contains the names of bodies and joints."""
    key = key_name(finding.path, data)
    return Problem(finding.message, key=key, value=finding.value, file=file, line=line, remedy=finding.remedy)


def located(problem: Problem, key: str) -> Problem:
    """Return the problem of a table or value with its key below `key`."""
    return replace(problem, key=f"{key}.{problem.key}" if problem.key else key)


def schema_findings(error: ValidationError, model: type[BaseModel], data: Any, at: Path = ()) -> list[Finding]:
    """Return pydantic's errors about `data`, the table `at` this path of a `model`, as findings. Errors of the members of a
    union are joined by "or"."""
    by_path: dict[Path, list[Any]] = {}
    for detail in error.errors(include_url=False):
        path = (*at, *_path_in(data, detail["loc"]))
        if detail["type"] == "missing":
            path += (str(detail["loc"][-1]),)
        by_path.setdefault(path, []).append(detail)
    return [_finding(path, details, model) for path, details in by_path.items()]


def _finding(path: Path, details: list[Any], model: type[BaseModel]) -> Finding:
    """Return the finding of one path: a single error, or one for each member of a union."""
    first = details[0]
    value = first["input"]
    if first["type"] == "missing":
        table, key = _model_at(model, path[:-1]), path[-1]
        meaning = table.model_fields[key].description if table and key in table.model_fields else "a value"
        return Finding(path, "is missing", remedy=f"give {key}: {meaning}")
    if first["type"] == "extra_forbidden":
        return unknown_key(path, model, value)
    wanted = dict.fromkeys(map(_wanted, details))
    remedy = next((text for text in map(_remedy, details) if text), "")
    if first["type"] == "list_type" and isinstance(value, dict) and len(path) == 1:
        remedy = f"begin each of its tables with [[{path[0]}]]"
    if not remedy and first["type"] in TABLE_ERRORS and (table := _model_at(model, path)):
        remedy = f"keys of this table: {_main_keys(table)}"
    return Finding(path, f"should be {' or '.join(wanted)}, not {shown(value)}", value, remedy)


TABLE_ERRORS = "model_type", "model_attributes_type"
WANTED = {
    "int_type": "an integer",
    "bool_type": "true or false",
    "string_type": "a text in quotes",
    "list_type": "a list",
    "tuple_type": "a list",
    **dict.fromkeys((*TABLE_ERRORS, "dict_type"), "a table"),
    "string_too_short": "a text that is not empty",
    "too_short": "a list of at least {min_length} entries",
    "string_pattern_mismatch": "one to three of the letters x, y, z, or of X, Y, Z",
}
"""Descriptions of valid values by pydantic's types of errors, whose messages use terms of Python."""


def _wanted(detail: Any) -> str:
    """Return the description of a valid value, for messages with "should be"."""
    found = WANTED.get(detail["type"], "").format(**detail.get("ctx", {}))
    return found or re.sub("^(Input |Value )?should be ", "", detail["msg"])


def _remedy(detail: Any) -> str:
    if detail["type"] in ("literal_error", "joint_type") and isinstance(detail["input"], str):
        return did_you_mean(detail["input"], re.findall("'(.*?)'", detail["ctx"]["expected"]))
    return detail.get("ctx", {}).get("remedy", "")


def _main_keys(table: type[BaseModel]) -> str:
    """Return the required keys of a table, or its first ones."""
    required = [name for name, field in table.model_fields.items() if field.is_required()]
    some = (required or list(table.model_fields))[:MOST_HINTS]
    return ", ".join(some) + (", ..." if len(table.model_fields) > len(some) else "")


def unknown_key(path: Path, root: type[BaseModel], value: Any = None) -> Finding:
    """Return the finding that a path of tables of `root` ends in an unknown key, with a suggestion."""
    return Finding(path, "unknown key", value, _remedy_for_unknown(path, root))


def _remedy_for_unknown(path: Path, root: type[BaseModel]) -> str:
    """Return a suggestion: a similar key, or the tables with this key."""
    key = str(path[-1])
    table = _model_at(root, path[:-1])
    known = list(table.model_fields) if table else []
    near = did_you_mean(key, known)
    if near:
        return near
    homes = _homes(key, root, "the top of the file")
    if homes:
        return f"it belongs to {' or '.join(homes[:MOST_HINTS])}"
    return f"known keys here: {', '.join(known)}" if 0 < len(known) <= 12 else "see `abd schema`"


def _homes(key: str, table: type[BaseModel], name: str, depth: int = 0) -> list[str]:
    """Return the names of the tables, from this one on, with a key."""
    homes = [name] if key in table.model_fields else []
    for inner, info in table.model_fields.items():
        model = next(iter(models_in(info.annotation)), None)
        if model is not None and depth < 2:
            heading = f"[[{inner}]]" if get_origin(info.annotation) is list else f"[{inner}]"
            homes += _homes(key, model, heading if depth == 0 else f"{inner} of a {name}", depth + 1)
    return homes


def _path_in(data: Any, location: Iterable[str | int]) -> Path:
    """The part of pydantic's location that exists in the data: it appends the members of unions."""
    path: Path = ()
    for part in location:
        if _child(data, part) is _ABSENT:
            break
        data = _child(data, part)
        path += (part,)
    return path


_ABSENT = object()


def _child(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(part, _ABSENT)
    if isinstance(data, BaseModel):
        return getattr(data, str(part), _ABSENT)
    if isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data):
        return data[part]
    return _ABSENT


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model of the table at a path."""
    current: Any = model
    is_name = False
    for part in path:
        if isinstance(part, int) or is_name:
            is_name = False
            continue
        if not (isinstance(current, type) and issubclass(current, BaseModel)) or part not in current.model_fields:
            return None
        annotation = current.model_fields[part].annotation
        is_name = get_origin(annotation) is dict  # the next part names one of its tables
        current = next(iter(models_in(annotation)), None)
    return None if is_name else current


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models inside a type such as ``Model | None``, ``list[Model]`` or ``dict[str, Model]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]
