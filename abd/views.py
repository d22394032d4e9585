"""Views of the many bodies, joints or couplings of a simulation, by name and made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from abd.names import Names

View = TypeVar("View")


class ByName(Mapping[str, View]):
    """name -> view, in the order of the names; a view is made when it is first asked for.

    Args:
        names: unique names; make: the view of the k-th one.
    """

    def __init__(self, names: Sequence[str], make: Callable[[int], View]):
        self._names = Names.of(names)
        self._make = make
        self._made: dict[int, View] = {}

    def __getitem__(self, name: str) -> View:
        k = self._names.find(name)
        if k is None:
            raise KeyError(name)
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names
