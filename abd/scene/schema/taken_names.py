"""Names that earlier tables of a list have taken, copies included, without a list of all copies."""

from __future__ import annotations

from abd.names import CopyNames, copy_place
from abd.scene.schema.joint_schema import JointRepeatSpec
from abd.scene.schema.schema import RepeatSpec


class TakenNames:
    """Names of one list of a scene, each with the number of the table that took it."""

    def __init__(self) -> None:
        self._single: dict[str, int] = {}
        self._copied: dict[str, tuple[CopyNames, int]] = {}
        self._like_copies: dict[str, list[str]] = {}

    def take(self, name: str, repeat: RepeatSpec | JointRepeatSpec | None, table: int) -> tuple[str, int] | None:
        """Take the names of a table; the first of them that is taken already, and by which table."""
        clash = self._clash(name) if repeat is None else self._clash_of_copies(CopyNames(name, repeat.count))
        if repeat is not None:
            self._copied.setdefault(name, (CopyNames(name, repeat.count), table))
            return clash
        self._single.setdefault(name, table)
        found = copy_place(name)
        if found is not None:
            self._like_copies.setdefault(found[0], []).append(name)
        return clash

    def _clash(self, name: str) -> tuple[str, int] | None:
        if name in self._single:
            return name, self._single[name]
        found = copy_place(name)
        names, table = self._copied.get(found[0], (None, -1)) if found else (None, -1)
        return None if names is None or names.number(found[1]) is None else (name, table)

    def _clash_of_copies(self, names: CopyNames) -> tuple[str, int] | None:
        if names.name in self._copied:
            return names[0], self._copied[names.name][1]
        for name in self._like_copies.get(names.name, ()):
            if names.number(copy_place(name)[1]) is not None:
                return name, self._single[name]
        return None
