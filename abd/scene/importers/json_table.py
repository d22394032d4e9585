"""Typed reading of the objects of a foreign JSON format: defaults, notes on unknown keys, problems on wrong values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from abd.errors import Problem
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.values import is_number


class JsonTable:
    """One object of a JSON file.

    Keys that begin with ``#`` are comments; other unknown keys are ignored with a note.

    Args:
        data: the object; anything else is a problem and reads as an empty one.
        place: key path for messages, "" for the file itself.
        known: all keys that the format knows here.
        notes, problems: lists that grow while reading.
        file: name of the file, for messages.
    """

    def __init__(
        self, data: Any, place: str, known: Iterable[str], notes: list[str], problems: list[Problem], file: str
    ):
        self._place, self._notes, self._problems, self._file = place, notes, problems, file
        self._data: dict = {}
        if not isinstance(data, dict):
            self.problem("", "should be an object { }", data)
            return
        self._data = {key: value for key, value in data.items() if not key.startswith("#")}
        known = list(known)
        for key in self._data:
            if key not in known:
                question = did_you_mean(key, known)
                note = f"unknown key '{self.path(key)}' is ignored" + (
                    f" ({question})" if question else ""
                )
                notes.append(note)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def path(self, key: str) -> str:
        """Full path of a key."""
        return ".".join(part for part in (self._place, key) if part)

    def problem(self, key: str, message: str, value: Any = None, remedy: str = "") -> None:
        """Add a problem with one of this object's keys."""
        self._problems.append(Problem(message, key=self.path(key), value=value, file=self._file, remedy=remedy))

    def raw(self, key: str, default: Any = None) -> Any:
        """Return the unchecked value."""
        return self._data.get(key, default)

    def table(self, key: str, known: Iterable[str]) -> JsonTable:
        """Return an inner object; empty by default."""
        return JsonTable(self._data.get(key, {}), self.path(key), known, self._notes, self._problems, self._file)

    def tables(self, key: str, known: Iterable[str]) -> list[JsonTable]:
        """Return a list of inner objects."""
        items = self._data.get(key, [])
        if not isinstance(items, list):
            self.problem(key, "should be a list [ ]", items)
            return []
        known = list(known)
        return [
            JsonTable(item, f"{self.path(key)}[{k}]", known, self._notes, self._problems, self._file)
            for k, item in enumerate(items)
        ]

    def _read(self, key: str, default: Any, is_sound: Callable[[Any], bool], wanted: str) -> Any:
        """Return a valid value; the default, with a problem, for an invalid one."""
        value = self._data.get(key, default)
        if is_sound(value):
            return value
        self.problem(key, f"should be {wanted}", value)
        return default

    def number(self, key: str, default: float) -> float:
        """A finite number."""
        return float(self._read(key, default, is_number, "a finite number"))

    def vector(self, key: str, default: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> tuple[float, float, float]:
        """Three finite numbers."""
        wanted = "three numbers [x, y, z] (scenes in the plane are not supported)"
        return tuple(map(float, self._read(key, default, _is_vector, wanted)))

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self._read(key, default, lambda value: isinstance(value, bool), "true or false")

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        return self._read(key, default, lambda value: isinstance(value, str), "a string")


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 3 and all(map(is_number, value))
