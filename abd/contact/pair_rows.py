"""Rows grouped by pairs of bodies, and sums over the rows of every pair in their order."""

from __future__ import annotations

import numpy as np


class PairRows:
    """Rows (c,) of pairs of n bodies.

    Attributes:
        key: (k,) ascending key of every pair with rows; order: (c,) rows by pair, in their own order within a pair, or
            None if they are sorted; starts: (k,) index of the first row of every pair.
    """

    def __init__(self, pair: np.ndarray, n: int):
        key = keys(pair, n)
        self.n, self.count = n, len(key)
        self.order = None if self.count == 0 or (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
        key = self.taken(key)
        self.starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if self.count else np.zeros(0, dtype=int)
        self.key = key[self.starts]

    @property
    def counts(self) -> np.ndarray:
        """(k,) number of rows of every pair."""
        return np.diff(np.append(self.starts, self.count))

    @property
    def pairs(self) -> np.ndarray:
        """(k, 2) bodies of every pair."""
        return bodies_of(self.key, self.n)

    def taken(self, values: np.ndarray) -> np.ndarray:
        """Values (c, ...) sorted by pair."""
        return values if self.order is None else values[self.order]

    def reduced(self, ufunc: np.ufunc, values: np.ndarray) -> np.ndarray:
        """(k, ...) values (c, ...) reduced per pair."""
        if self.count == 0:
            return np.zeros((0, *values.shape[1:]), dtype=values.dtype)
        return ufunc.reduceat(self.taken(values), self.starts, axis=0)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(k, d) sums of values (c, d)."""
        return self.reduced(np.add, values)


def distinct(*parts: np.ndarray) -> np.ndarray:
    """(k,) ascending distinct keys of arrays of keys; sorting takes less time than the hash table of `numpy.unique`."""
    key = np.sort(np.concatenate(parts))
    return key[np.append(True, key[1:] != key[:-1])] if len(key) else key


def places(known: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(c,) places of keys (c,) in ascending keys `known` (k,), and (c,) bool, whether they are among them."""
    if not len(known):
        return np.zeros(len(key), dtype=int), np.zeros(len(key), dtype=bool)
    at = np.searchsorted(known, key).clip(max=len(known) - 1)
    return at, known[at] == key


def are_among(key: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(c,) bool, whether keys (c,) are among the ascending keys `known` (k,)."""
    return places(known, key)[1]


def keys(pair: np.ndarray, n: int) -> np.ndarray:
    """(c,) key of every pair (c, 2) of n bodies."""
    return pair[:, 0].astype(np.int64) * n + pair[:, 1]


def bodies_of(key: np.ndarray, n: int) -> np.ndarray:
    """(k, 2) pairs of keys (k,)."""
    return np.stack([key // n, key % n], axis=1)
