"""Islands: bodies that are connected through joints or may touch on the current path.

What happens in one island concerns no other: each has its own step length, line search and convergence. Bodies that do
not move (static, or held on their goal) tie nothing together; the rows and contacts of an island may lean on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abd.backends.answers import NO_PAIRS
from abd.contact.pair_rows import distinct
from abd.joints.closure.link_graph import connected_labels
from abd.joints.rows.system import JointSystem


@dataclass(frozen=True)
class Division:
    """Islands of the n bodies of a `Numbering`: `host` (n,) and `count`."""

    host: np.ndarray
    count: int

    @classmethod
    def of(cls, host: np.ndarray) -> Division:
        """Islands of bodies (n,)."""
        return cls(host, int(host.max(initial=0)) + 1)


class Numbering:
    """Islands of n bodies, numbered from 0 in the order of their first bodies."""

    def __init__(self, bodies: int):
        self.n = bodies
        self.ties = np.zeros((0, 2), dtype=int)
        self._known: tuple | None = None
        self.formed = 0
        self._assign(Division.of(np.zeros(bodies, dtype=np.int32)))

    @property
    def division(self) -> Division:
        """The present islands."""
        return self._division

    @property
    def count(self) -> int:
        """Number of islands."""
        return self.division.count

    @property
    def host(self) -> np.ndarray:
        """(n,) island of every body, a new array whenever the islands change."""
        return self.division.host

    def tie(self, system: JointSystem, further: np.ndarray = NO_PAIRS) -> None:
        """Bodies that joints tie together: of every row the one that counts its energy, its child, and all others; and
        further pairs (k, 2)."""
        linear, rows, table = system.linear, system.rows, system.table
        child, parent = table.child[rows.term_measure], table.parent[rows.term_measure]
        owner = child[rows.starts[:-1]][rows.term_row] if len(rows) else child
        pairs = [
            np.stack([linear.child, linear.parent], axis=1),
            np.stack([owner, child], axis=1),
            np.stack([owner, parent], axis=1),
            further,
        ]
        ties = np.concatenate(pairs).astype(np.int64)
        ties = ties[(ties[:, 1] >= 0) & (ties[:, 0] != ties[:, 1])]
        keys = distinct(ties[:, 0] * self.n + ties[:, 1])
        self.join(np.stack([keys // self.n, keys % self.n], axis=1))

    def join(self, ties: np.ndarray) -> None:
        """Pairs of bodies (k, 2) that are always in one island, first the one that counts the energy between them."""
        self.ties, self._known = ties, None
        self.formed += 1

    def renumber(self, mobile: np.ndarray, pairs: np.ndarray) -> bool:
        """Recompute the islands.

        Args:
            mobile: (n,) bool, bodies that may move; pairs: (k, 2) bodies that may touch, a mobile one first.

        Returns:
            whether any island changed.
        """
        if self._known is not None and all(
            np.array_equal(a, b) for a, b in zip(self._known, (mobile, pairs), strict=True)
        ):
            return False
        self._known = mobile.copy(), pairs.copy()
        self.formed += 1
        edges = np.concatenate([self.ties, pairs])
        labels = connected_labels(self.n, edges[mobile[edges[:, 1]]])
        # what neither moves nor counts for others joins the first island, where it adds nothing
        inactive = ~mobile
        inactive[self.ties[:, 0]] = False
        labels[inactive] = labels[np.argmin(inactive)] if not inactive.all() else 0
        host = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        if np.array_equal(host, self.host):
            return False
        self._assign(Division.of(host))
        return True

    def _assign(self, division: Division) -> None:
        self._division = division

    def carry(self, before: np.ndarray, values: np.ndarray, fold: Callable) -> np.ndarray:
        """Values of the islands `before` (n,), folded (`np.minimum`, `np.logical_and` ...) over the bodies that each of
        the present ones unites."""
        order = np.argsort(self.host, kind="stable")
        starts = np.searchsorted(self.host[order], np.arange(self.count))
        return fold.reduceat(values[before][order], starts) if self.n else values[: self.count]

    def whole(self, flags: np.ndarray) -> np.ndarray:
        """(count,) bool, whether all bodies of an island are flagged (n,)."""
        out = np.ones(self.count, dtype=bool)
        out[self.host[~flags]] = False
        return out

    def sleepers(self, may_sleep: np.ndarray, mobile: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies that `may_sleep` (n,) of islands in which all mobile bodies may."""
        if not may_sleep.any():
            return np.zeros(self.n, dtype=bool)
        return may_sleep & self.whole(may_sleep | ~mobile)[self.host]

    def asleep(self, sleeping: np.ndarray, mobile: np.ndarray) -> np.ndarray:
        """(count,) bool, whether all bodies of an island that may move are asleep (n,)."""
        if not sleeping.any():
            return np.zeros(self.count, dtype=bool)
        return self.whole(sleeping | ~mobile)
