"""The bodies of a scene as they are compiled: records of single bodies, and of one body with its copies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from abd.names import CopyNames, Names
from abd.scene.compile.bodies import BodyRecord


@dataclass(frozen=True)
class RecordCopies:
    """Copies of a body, which differ in their names and places alone.

    Attributes:
        record: the first one; names: of all; position: (k, 3) of their mesh frames [m].
    """

    record: BodyRecord
    names: CopyNames
    position: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def copy(self, k: int) -> BodyRecord:
        """One of the copies."""
        q = self.record.q.copy()
        q[:3] = self.record.center + self.position[k]
        return replace(self.record, name=self.names[k], q=q)


class Records(Sequence):
    """All bodies in order; copies are made when asked for."""

    def __init__(self, parts: Sequence[BodyRecord | RecordCopies] = ()):
        self.parts = tuple(parts)
        self.counts = np.array([1 if isinstance(part, BodyRecord) else len(part) for part in self.parts], dtype=int)
        self.starts = list(accumulate(self.counts.tolist(), initial=0))
        self.names = Names([part.name if isinstance(part, BodyRecord) else part.names for part in self.parts])

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, k: int) -> BodyRecord:
        place = self.part_of(k)
        part = self.parts[place]
        return part if isinstance(part, BodyRecord) else part.copy(k - self.starts[place])

    def part_of(self, k: int) -> int:
        """Index of the part that a body is in."""
        if not 0 <= k < len(self):
            raise IndexError(k)
        return bisect_right(self.starts, k) - 1

    @property
    def firsts(self) -> list[BodyRecord]:
        """The single bodies, and the first one of all copies."""
        return [part if isinstance(part, BodyRecord) else part.record for part in self.parts]

    def spread(self, values: np.ndarray) -> np.ndarray:
        """(n, ...) of all bodies from values (parts, ...) that copies share."""
        return np.repeat(values, self.counts, axis=0)

    @property
    def q(self) -> np.ndarray:
        """(n, 12) initial states."""
        q = self.spread(np.array([record.q for record in self.firsts]).reshape(-1, 12))
        for start, part in zip(self.starts, self.parts, strict=False):
            if isinstance(part, RecordCopies):
                q[start : start + len(part), :3] = part.record.center + part.position
        return q
