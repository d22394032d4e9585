"""Tables of a scene from keyword arguments, with problems told by their full keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from abd.errors import Problem, SceneError
from abd.scene.schema.fields import Spec
from abd.scene.schema.findings import Finding, as_problem, schema_findings

Table = TypeVar("Table", bound=Spec)


def table(model: type[Table], key: str, fields: Mapping[str, Any]) -> Table:
    """The table of these fields; `SceneError` with all that is wrong with them. None stands for "not given"."""
    given = {name: plain(value) for name, value in fields.items() if value is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        findings = schema_findings(error, model, given)
        raise SceneError([below(key, finding) for finding in findings]) from error


def below(key: str, finding: Finding) -> Problem:
    """The finding as a problem of the table with this key."""
    problem = as_problem(finding, {})
    return replace(problem, key=f"{key}.{problem.key}" if problem.key else key)


def plain(value: Any) -> Any:
    """NumPy arrays and numbers, paths, tuples and other tables as lists, numbers, texts and dictionaries."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Spec):
        return value.model_dump(exclude_defaults=True)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
