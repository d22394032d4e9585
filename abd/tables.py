"""Tables: dataclasses of arrays, with one row per entry along the first axis."""

from __future__ import annotations

from dataclasses import fields
from typing import Self, TypeVar

import numpy as np

T = TypeVar("T")


def arrays_of(values) -> dict[str, np.ndarray]:
    """Return the arrays, or other values, of a dataclass by field."""
    return {one.name: getattr(values, one.name) for one in fields(values)}


def copied(values: T) -> T:
    """Return an independent copy of a dataclass of arrays."""
    return type(values)(**{name: value.copy() for name, value in arrays_of(values).items()})


class Table:
    """Base class of dataclasses of arrays."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))  # the first field

    def __getitem__(self, rows: np.ndarray) -> Self:
        """Rows of an index array or a mask."""
        return type(self)(*(getattr(self, one.name)[rows] for one in fields(self)))

    @classmethod
    def joined(cls, *tables: Self) -> Self:
        """Return one table with the rows of all tables, in order."""
        return cls(*(np.concatenate([getattr(table, one.name) for table in tables]) for one in fields(cls)))
