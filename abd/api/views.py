"""Views of the many bodies, joints or couplings of a simulation, by name and made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from abd.names import Names
from abd.scene.schema.findings import did_you_mean

View = TypeVar("View")
SHOWN = 8
"""Names that a message lists."""


class UnknownName(KeyError):
    """A name that there is not; its text is the message."""

    def __str__(self) -> str:
        return str(self.args[0])


class ByName(Mapping[str, View]):
    """name -> view, in the order of the names; a view is made when it is first asked for.

    Args:
        what: word for one of them, in messages; names: unique names; make: the view of the k-th one.

    Raises:
        UnknownName: a KeyError, for a name that there is not, and for numbers, which are no names.
    """

    def __init__(self, what: str, names: Sequence[str], make: Callable[[int], View]):
        self._what, self._names = what, Names.of(names)
        self._make = make
        self._made: dict[int, View] = {}

    def __getitem__(self, name: str) -> View:
        k = self._names.find(name) if isinstance(name, str) else None
        if k is None:
            raise UnknownName(self._problem(name))
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]

    def _problem(self, name: object) -> str:
        if not isinstance(name, str):
            return f"{self._what} {name!r}: they are asked for by name, as one of list(...)"
        guess = did_you_mean(name, self._names)
        few = ", ".join(f"'{one}'" for one in islice(self._names, SHOWN))
        there = f"there are {len(self)}: {few}{', ...' if len(self) > SHOWN else ''}" if len(self) else "there is none"
        return f"no {self._what} '{name}'; {guess or there}"

    def __repr__(self) -> str:
        few = ", ".join(f"'{one}'" for one in islice(self._names, SHOWN))
        return f"<{len(self)} by name: {few}{', ...' if len(self) > SHOWN else ''}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names
