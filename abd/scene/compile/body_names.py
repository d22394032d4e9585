"""The names of a scene's bodies, copies and components included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from abd.names import copy_place
from abd.scene.compile.expand import copy_names
from abd.scene.compile.joint_copies import repeated_bodies
from abd.scene.schema.schema import BodySpec

NUMBER = re.compile(r"_\d+$")
NUMBERS = re.compile(r"(_\d+)+$")


@dataclass
class BodyNames:
    """The names that joints may use.

    Attributes:
        single: bodies without copies by name; None for one whose table could not be read.
        repeated: bodies with copies, by the name of their table.
        unreadable: names of bodies whose own tables are wrong; they may stand for copies or components.
    """

    single: dict[str, BodySpec | None]
    repeated: dict[str, BodySpec]
    unreadable: list[str]

    @classmethod
    def of(cls, bodies: list[BodySpec], unreadable: list[str]) -> BodyNames:
        """Names of the bodies of a scene and of those that could not be read."""
        names = cls(dict.fromkeys(unreadable), repeated_bodies(bodies), unreadable)
        names.single.update({body.name: body for body in bodies if body.repeat is None})
        return names

    def __iter__(self) -> Iterator[str]:
        yield from self.single
        for name, body in self.repeated.items():
            yield from copy_names(name, body.repeat)

    def __contains__(self, name: str) -> bool:
        return name in self.single or self._original(name) is not None

    def find(self, name: str) -> BodySpec | None:
        """The body of a name, components of split bodies included; None if unknown or unreadable."""
        if name in self:
            return self.single.get(name) or self._original(name)
        return self._whole(name)

    def is_split(self, name: str) -> bool:
        """Whether the name stands for the components of a body, whose number is not known here."""
        body = self.find(name) if name in self else None
        return body is not None and body.split_components

    def knows(self, name: str) -> bool:
        """Whether a joint may name this body."""
        return name in self or self._whole(name) is not None or NUMBERS.sub("", name) in self.unreadable

    def _original(self, name: str) -> BodySpec | None:
        """The body that this name is a copy of."""
        found = copy_place(name)
        body = None if found is None else self.repeated.get(found[0])
        return None if body is None or copy_names(body.name, body.repeat).number(found[1]) is None else body

    def _whole(self, name: str) -> BodySpec | None:
        """The body that this name is a component of."""
        whole = NUMBER.sub("", name)
        return self.find(whole) if whole != name and self.is_split(whole) else None
