"""Common checks of tables: alternative keys, keys without effect, angles in one unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from abd.errors import SceneError
from abd.scene.schema.fields import DEGREES, Spec, keys_with_degrees
from abd.scene.schema.findings import Finding, enumerated


@cache
def _defaults(model: type[Spec]) -> dict[str, Any]:
    return {key: info.default for key, info in model.model_fields.items()}


def given(table: Spec, keys: Iterable[str]) -> list[str]:
    """Return the keys whose value is not the default."""
    values, defaults = table.__dict__, _defaults(type(table))
    return [key for key in keys if values[key] != defaults[key]]


def at_most_one(table: Spec, keys: Iterable[str], reason: str = "", remedy: str = "keep one of them") -> Iterator[Finding]:
    """Yield a finding if more than one of the keys is given.

    Args:
        reason: the rule, such as "a body has one surface".
    """
    found = given(table, keys)
    if len(found) > 1:
        message = f"{enumerated(found, 'and')} are given, but {reason}" if reason else f"{found[0]} is given as well"
        yield Finding((found[1],), message, getattr(table, found[1]), remedy)


def without_effect(table: Spec, keys: Iterable[str], where: str, remedy: str = "remove it") -> Iterator[Finding]:
    """Yield a finding for every given key without effect; `where` names the case, such as "on a half-space"."""
    for key in given(table, keys):
        yield Finding((key,), f"has no effect {where}", getattr(table, key), remedy)


def one_unit(table: Spec, keys: Iterable[str] | None = None) -> Iterator[Finding]:
    """Yield findings about angles that are given in radians and in degrees; keys: checked keys, by default all."""
    for key in keys_with_degrees(type(table)) if keys is None else keys:
        yield from at_most_one(table, (key, f"{key}{DEGREES}"))


def findings_of(error: SceneError, *path: str) -> Iterator[Finding]:
    """Yield the problems of an error as findings about the value at a path."""
    for problem in error.problems:
        yield Finding(path, problem.message, problem.value, problem.remedy)
