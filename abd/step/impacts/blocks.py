"""Impacts of several worlds, solved independently by the same array operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Blocks:
    """k pairs of bodies, sorted by world; a *block* is the pairs or the bodies of one of w worlds.

    Attributes:
        starts: (w + 1,) first pair of every block, none of them empty, and k.
        bodies: (n,) block of every body, w without a block.
    """

    starts: np.ndarray
    bodies: np.ndarray

    @classmethod
    def of(cls, worlds: np.ndarray, first: np.ndarray) -> Blocks:
        """Return the blocks of pairs with first bodies (k,), sorted by world; worlds: (n,) of all bodies."""
        of_pairs = worlds[first]
        starts = np.flatnonzero(np.concatenate([[True], of_pairs[1:] != of_pairs[:-1], [True]]))
        number = np.full(worlds.max() + 1, len(starts) - 1)
        number[of_pairs[starts[:-1]]] = np.arange(len(starts) - 1)
        return cls(starts, number[worlds])

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def number(self) -> np.ndarray:
        """(k,) block of every pair."""
        return self.each(np.arange(self.count))

    def each(self, values: np.ndarray) -> np.ndarray:
        """Return (k,) values of the blocks (w,) by pairs."""
        return np.repeat(values, np.diff(self.starts))

    def entries(self, values: np.ndarray) -> np.ndarray:
        """Return (6 n,) values of the blocks (w,) by twists of bodies, 0 without a block."""
        return np.repeat(np.append(values, np.zeros(1, dtype=values.dtype))[self.bodies], 6)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return (w,) largest values (k,) of the blocks."""
        return np.maximum.reduceat(values, self.starts[:-1])

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """Return (w,) bool, blocks with chosen pairs (k,)."""
        return np.logical_or.reduceat(chosen, self.starts[:-1])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return (w,) sums of values (k,) in the order of the pairs."""
        return np.bincount(self.number, weights=values, minlength=self.count)

    def sums_of_bodies(self, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return (w,) sums of values (m,) of the chosen bodies (n,) bool in their order."""
        return np.bincount(self.bodies[chosen], weights=values, minlength=self.count)[: self.count]
