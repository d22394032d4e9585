"""Views by name, created on first access; checks of values given to views; pandas tables of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abd.names import Names
from abd.optional import required
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.values import LARGEST

if TYPE_CHECKING:
    import pandas

View = TypeVar("View")
Vector = Sequence[float] | np.ndarray
XYZ = ("x", "y", "z")
SHOWN = 8
"""Names that a message lists."""
LONGEST_TEXT = 100
"""Characters of a value that a message shows."""


class UnknownName(KeyError):
    """The name is unknown; `str` returns the message."""

    def __str__(self) -> str:
        return str(self.args[0])


class ByName(Mapping[str, View]):
    """Mapping name -> view in the order of the names; a view is created on first access.

    Args:
        what: noun of one item, for messages; names: unique names; make: function that creates the k-th view.

    Raises:
        UnknownName: a KeyError; the name is unknown or not a string.
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

    def __getattr__(self, name: str) -> View:
        """Say how a view is found, for a name that is used as an attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"use a name in brackets, not the attribute '{name}', to find a {self._what}")

    def _problem(self, name: object) -> str:
        if not isinstance(name, str):
            return f"the key of a {self._what} must be a name of list(...), not {name!r}"
        known = f"there are {len(self)}: {self._first_names()}" if len(self) else "the simulation has none"
        return f"no {self._what} '{name}'; {did_you_mean(name, self._names) or known}"

    def _first_names(self) -> str:
        return ", ".join(f"'{one}'" for one in islice(self._names, SHOWN)) + (", ..." if len(self) > SHOWN else "")

    def __repr__(self) -> str:
        return f"<{len(self)} by name: {self._first_names()}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def finite(values: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Copy numbers of at most `LARGEST` to an array; raise a `ValueError` that names `what` for others or another shape."""
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError):
        found = np.full(shape, np.nan)
    if found.shape != shape or not (np.abs(found) <= LARGEST).all():
        size = f"{' x '.join(str(one) for one in shape)} finite numbers" if shape else "a finite number"
        text = " ".join(repr(values).split())
        given = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... of shape {found.shape}"
        raise ValueError(f"{what} must be {size} of at most {LARGEST:g}, not {given}")
    return found


def table_of(columns: Mapping[str, Any], index: np.ndarray | None = None, name: str | None = None) -> pandas.DataFrame:
    """Return a table of columns of equal length.

    Args:
        columns: name -> (k,), or (k, 3) for three columns ``name.x``, ``name.y``, ``name.z``.
        index: (k,) index of the rows with the name `name`; by default numbers from 0.

    Raises:
        MissingLibrary: pandas is not installed.
    """
    pandas = required("pandas", "pandas", "pandas", "a table")
    flat: dict[str, Any] = {}
    for key, values in columns.items():
        array = np.asarray(values)
        if array.ndim == 2:
            flat |= {f"{key}.{axis}": array[:, k] for k, axis in enumerate(XYZ)}
        else:
            flat[key] = array
    return pandas.DataFrame(flat, index=None if index is None else pandas.Index(index, name=name))
