"""Islands: bodies that are connected through joints or may touch on the current path.

Islands are independent: each has its own step length, line search and convergence test. Bodies that do not move (static, or
held at their target) do not connect islands, although rows and contacts of several islands may act on them. Those without
energies of joints form an island of their own.
"""

from __future__ import annotations

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
        """Return the division by the islands of bodies (n,)."""
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
        """Current islands."""
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
        """Set the permanent pairs of bodies: the energy owner with the other bodies, per joint row; and `further` (k, 2)."""
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
        """Set the pairs of bodies (k, 2) that are always in one island; the first one is the owner of their energy."""
        self.ties, self._known = ties, None
        self.formed += 1

    def renumber(self, mobile: np.ndarray, pairs: np.ndarray) -> bool:
        """Recompute the islands.

        Args:
            mobile: (n,) bool, bodies that may move; pairs: (k, 2) bodies that may touch.

        Returns:
            whether any island changed.
        """
        if self._known is not None and all(
            np.array_equal(a, b) for a, b in zip(self._known, (mobile, pairs), strict=True)
        ):
            return False
        self._known = mobile.copy(), pairs.copy()
        self.formed += 1
        host = np.unique(self._labels(mobile, pairs), return_inverse=True)[1].astype(np.int32)
        if np.array_equal(host, self.host):
            return False
        self._assign(Division.of(host))
        return True

    def _labels(self, mobile: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Return (n,) labels of the islands by ties and `pairs` (`renumber`), in the order of their first bodies."""
        edges = np.concatenate([self.ties[mobile[self.ties[:, 1]]], pairs[mobile[pairs].all(axis=1)]])
        labels = connected_labels(self.n, edges)
        # immobile bodies without energies of joints form one island
        inactive = ~mobile
        inactive[self.ties[:, 0]] = False
        labels[inactive] = labels[inactive][:1]
        return labels

    def _assign(self, division: Division) -> None:
        self._division = division

    def whole(self, flags: np.ndarray) -> np.ndarray:
        """Return (count,) bool, whether all bodies of an island are flagged (n,)."""
        out = np.ones(self.count, dtype=bool)
        out[self.host[~flags]] = False
        return out

    def sleepers(self, may_sleep: np.ndarray, mobile: np.ndarray) -> np.ndarray:
        """Return (n,) bool, bodies that `may_sleep` (n,) in islands whose mobile bodies all may."""
        if not may_sleep.any():
            return np.zeros(self.n, dtype=bool)
        return may_sleep & self.whole(may_sleep | ~mobile)[self.host]

    def asleep(self, sleeping: np.ndarray, mobile: np.ndarray) -> np.ndarray:
        """Return (count,) bool, whether all mobile bodies of an island are asleep (n,)."""
        if not sleeping.any():
            return np.zeros(self.count, dtype=bool)
        return self.whole(sleeping | ~mobile)


class Sleep:
    """Bodies that sleep in a step.

    Attributes:
        mobile, excluded, sleeping: (n,) bool, bodies that may move in this step, that are excluded, that are asleep or excluded.
    """

    def __init__(self, islands: Numbering, mobile: np.ndarray):
        self.islands, self.mobile = islands, mobile
        self.excluded, self.sleeping = (np.zeros(len(mobile), dtype=bool) for _ in range(2))

    def sleep(self, may_sleep: np.ndarray) -> None:
        """See `abd.backends.protocol.Inactive`."""
        self.sleeping = self.islands.sleepers(may_sleep, self.mobile) | self.excluded

    def asleep(self, moving: np.ndarray | None = None) -> np.ndarray:
        """Return (islands,) bool, whether all mobile bodies of an island are asleep or not `moving` (n,), by default all moving.

        No island wakes up while the candidate list lasts."""
        resting = self.sleeping if moving is None else self.sleeping | ~moving
        return self.islands.asleep(resting, self.mobile)
