"""Which bodies form an island: those that hang together through joints or may touch on the current path.

What happens in one island concerns no other: each has its own step length, line search and convergence. Bodies that do
not move (static, or held on their goal) tie nothing together; the rows and contacts of an island may lean on them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.joints.link_graph import connected_labels
from abd.joints.system import JointSystem


class Numbering:
    """Islands of n bodies, numbered from 0 in the order of their first bodies.

    Attributes:
        count: number of islands; host: (n,) island of every body, a new array whenever the islands change.
        paired: (count,) bool, whether a body of it may touch anything.
    """

    def __init__(self, bodies: int):
        self.n = bodies
        self.ties = np.zeros((0, 2), dtype=int)
        self._known: tuple | None = None
        self._assign(np.zeros(bodies, dtype=np.int32), np.zeros(0, dtype=int))

    def tie(self, system: JointSystem) -> None:
        """Bodies that joints tie together: of every row the one that counts its energy, its child, and all others."""
        linear, rows, table = system.linear, system.rows, system.table
        child, parent = table.child[rows.term_measure], table.parent[rows.term_measure]
        owner = child[rows.starts[:-1]][rows.term_row] if len(rows) else child
        pairs = [
            np.stack([linear.child, linear.parent], axis=1),
            np.stack([owner, child], axis=1),
            np.stack([owner, parent], axis=1),
        ]
        ties = np.concatenate(pairs).astype(np.int64)
        ties = ties[(ties[:, 1] >= 0) & (ties[:, 0] != ties[:, 1])]
        keys = np.unique(ties[:, 0] * self.n + ties[:, 1])
        self.ties = np.stack([keys // self.n, keys % self.n], axis=1)
        self._known = None

    def renumber(self, mobile: np.ndarray, pairs: np.ndarray) -> bool:
        """Form the islands anew.

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
        edges = np.concatenate([self.ties, pairs])
        labels = connected_labels(self.n, edges[mobile[edges[:, 1]]])
        # what neither moves nor counts for others joins the first island, where it adds nothing
        idle = ~mobile
        idle[self.ties[:, 0]] = False
        labels[idle] = labels[np.argmin(idle)] if not idle.all() else 0
        host = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        if np.array_equal(host, self.host) and np.array_equal(
            np.unique(host[pairs[:, 0]]), np.flatnonzero(self.paired)
        ):
            return False
        self._assign(host, pairs[:, 0])
        return True

    def _assign(self, host: np.ndarray, touching: np.ndarray) -> None:
        self.host = host
        self.count = int(host.max(initial=0)) + 1
        self.paired = np.zeros(self.count, dtype=bool)
        self.paired[host[touching]] = True

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
