"""Values of which a frame has any number: rows of all frames one after the other, and where each frame begins.

In the file they are a group with ``offset`` (T + 1,) and one dataset (c, ...) per column: frame t has the rows
``offset[t] .. offset[t + 1]``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Rows of k frames.

    Attributes:
        counts: (k,) rows of each frame; columns: name -> (sum of counts, ...).
    """

    counts: np.ndarray
    columns: dict[str, np.ndarray]

    @classmethod
    def of(cls, **columns: np.ndarray) -> Ragged:
        """Create the rows of one frame."""
        return cls(np.array([len(next(iter(columns.values())))], dtype=np.int64), columns)

    @property
    def nbytes(self) -> int:
        """Size in memory [bytes]."""
        return self.counts.nbytes + sum(column.nbytes for column in self.columns.values())


def stacked(values: list[np.ndarray] | list[Ragged]) -> np.ndarray | Ragged:
    """The values of one name of several frames as a block, with the frames as first axis."""
    if not isinstance(values[0], Ragged):
        return np.stack(values)
    columns = {name: np.concatenate([one.columns[name] for one in values]) for name in values[0].columns}
    return Ragged(np.concatenate([one.counts for one in values]), columns)
