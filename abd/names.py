"""Unique names of many objects; the names of copies are created on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import ClassVar, Self


@dataclass(frozen=True)
class CopyNames(Sequence[str]):
    """Names ``name_i_j_k`` of the copies of an object `name` on a grid of `count` copies along three directions, k fastest."""

    name: str
    count: tuple[int, int, int]

    def __len__(self) -> int:
        nx, ny, nz = self.count
        return nx * ny * nz

    def __getitem__(self, k: int) -> str:
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        i, j, k = self.place(k % len(self))
        return f"{self.name}_{i}_{j}_{k}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.name}_{i}_{j}_{k}" for i, j, k in product(*map(range, self.count)))

    def place(self, number: int) -> tuple[int, int, int]:
        """Return the grid position of the copy with a number."""
        _, ny, nz = self.count
        return int(number // (ny * nz)), int(number // nz % ny), int(number % nz)

    def number(self, place: tuple[int, int, int]) -> int | None:
        """Return the number of the copy at a grid position; None outside of the grid."""
        if not all(0 <= at < count for at, count in zip(place, self.count, strict=True)):
            return None
        (i, j, k), (_, ny, nz) = place, self.count
        return (i * ny + j) * nz + k


def copy_place(name: str) -> tuple[str, tuple[int, int, int]] | None:
    """Original name and grid position of a name such as ``link_0_12_3``; None for other names."""
    original, *numbers = name.rsplit("_", 3)
    if len(numbers) < 3 or not all(text.isdecimal() and str(int(text)) == text for text in numbers):
        return None
    return original, tuple(int(text) for text in numbers)


class Parts(Sequence):
    """Items in order: single ones of the type `SINGLE`, and sequences of copies that are created on demand.

    starts: (p + 1,) number of the first item of every part, then the number of items.
    """

    SINGLE: ClassVar[type]

    def __init__(self, parts: Iterable):
        self.parts = tuple(parts)
        self.starts = list(accumulate((1 if isinstance(part, self.SINGLE) else len(part) for part in self.parts), initial=0))

    @classmethod
    def of(cls, items: Sequence) -> Self:
        """Return the items themselves if they have this type, else convert them."""
        return items if isinstance(items, cls) else cls(items)

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        return self.item(int(k) % len(self))

    def item(self, k: int):
        """Return item number k, which is not negative."""
        place = bisect_right(self.starts, k) - 1
        part = self.parts[place]
        return part if isinstance(part, self.SINGLE) else part[k - self.starts[place]]


class Names(Parts):
    """Unique names in order: single names, and `CopyNames`."""

    SINGLE = str

    def __iter__(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> int | None:
        """Return the number of a name; None for unknown names."""
        if name in self._single:
            return self._single[name]
        place = copy_place(name)
        if place is None or place[0] not in self._copied:
            return None
        part = self._copied[place[0]]
        number = self.parts[part].number(place[1])
        return None if number is None else self.starts[part] + number

    def numbers(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of names; -1 for unknown names."""
        return [-1 if (found := self.find(name)) is None else found for name in names]

    @cached_property
    def _single(self) -> dict[str, int]:
        return {part: self.starts[k] for k, part in enumerate(self.parts) if isinstance(part, str)}

    @cached_property
    def _copied(self) -> dict[str, int]:
        return {part.name: k for k, part in enumerate(self.parts) if not isinstance(part, str)}
