"""Names of the bodies of a scene before it is compiled: of their tables, copies and components."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from abd.names import CopyNames, Names, copy_place
from abd.scene.compile.copies import repeated_bodies
from abd.scene.schema.findings import Finding, did_you_mean
from abd.scene.schema.schema import BodySpec

NUMBER = re.compile(r"_\d+$")
NUMBERS = re.compile(r"(_\d+)+$")
"""Numbers of copies and components at the end of a name."""


class BodyNames(Names):
    """Names of the bodies of a scene, for joints, filters and sensors.

    Attributes:
        repeated: bodies with copies, by the name of their table.
        unreadable: names of bodies whose own tables are wrong; they may stand for copies or components.
    """

    def __init__(self, bodies: list[BodySpec], unreadable: list[str]):
        copied = (body.name if body.repeat is None else CopyNames(body.name, body.repeat.count) for body in bodies)
        super().__init__([*unreadable, *copied])
        self.repeated, self.unreadable = repeated_bodies(bodies), unreadable
        self._bodies = {body.name: body for body in bodies if body.repeat is None}

    def body(self, name: str) -> BodySpec | None:
        """Return the body of a name, copies and components of split bodies included; None if unknown or unreadable."""
        if name in self._bodies or name not in self:
            return self._bodies.get(name) or self._whole(name)
        place = copy_place(name)
        return None if place is None else self.repeated.get(place[0])

    def knows(self, name: str) -> bool:
        """Return whether the name is that of a body."""
        return name in self or self._whole(name) is not None or NUMBERS.sub("", name) in self.unreadable

    def check(self, key: str | int, name: str, others: tuple[str, ...] = ()) -> Iterator[Finding]:
        """Yield a finding at a key unless the name is that of a single enabled body; `others`: further names for the remedy."""
        if name in self.repeated and name not in self:
            remedy = f"give one of its copies, such as '{name}_0_0_0'"
            yield Finding((key,), f"'{name}' is a repeated body, not a single one", name, remedy)
        elif self._is_split(name):
            message = f"'{name}' is split into components and not a single body"
            yield Finding((key,), message, name, f"give one of them, such as '{name}_0'")
        elif not self.knows(name):
            listed = " or ".join(["give a body of this scene", *(f"'{other}'" for other in others)])
            yield Finding((key,), f"there is no body '{name}'", name, did_you_mean(name, chain(others, self)) or listed)
        elif (body := self.body(name)) is not None and not body.enabled:
            yield Finding((key,), f"body '{name}' is disabled", name, "enable it, or remove this reference")

    def _is_split(self, name: str) -> bool:
        """Return whether the name is that of a body with components, whose number is unknown here."""
        body = self.body(name) if name in self else None
        return body is not None and body.split_components

    def _whole(self, name: str) -> BodySpec | None:
        """Return the body with a component of this name."""
        whole = NUMBER.sub("", name)
        return self.body(whole) if whole != name and self._is_split(whole) else None
