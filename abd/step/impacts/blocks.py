"""Impacts of several worlds at once: each is solved as if it were alone, all by the same operations on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Blocks:
    """k pairs, those of a world side by side, and the worlds one behind the other; a *block* is what one of them has.

    Attributes:
        starts: (w + 1,) first pair of every block, which has at least one, and k.
        bodies: (n,) block of every body, w of those that are of none.
    """

    starts: np.ndarray
    bodies: np.ndarray

    @classmethod
    def of(cls, worlds: np.ndarray, first: np.ndarray) -> Blocks:
        """Of bodies (n,) in worlds, and pairs with these first bodies (k,), whose worlds are in order."""
        of_pairs = worlds[first]
        starts = np.flatnonzero(np.concatenate([[True], of_pairs[1:] != of_pairs[:-1], [True]]))
        number = np.full(worlds.max() + 1, len(starts) - 1)
        number[of_pairs[starts[:-1]]] = np.arange(len(starts) - 1)
        return cls(starts, number[worlds])

    @property
    def count(self) -> int:
        """w."""
        return len(self.starts) - 1

    @property
    def number(self) -> np.ndarray:
        """(k,) block of every pair."""
        return self.each(np.arange(self.count))

    def each(self, values: np.ndarray) -> np.ndarray:
        """(k,) values (w,) of the blocks for their pairs."""
        return np.repeat(values, np.diff(self.starts))

    def entries(self, values: np.ndarray) -> np.ndarray:
        """(6 n,) values (w,) of the blocks for the twists of their bodies, 0 for those of none."""
        return np.repeat(np.append(values, np.zeros(1, dtype=values.dtype))[self.bodies], 6)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """(w,) largest of the values (k,) in every block."""
        return np.maximum.reduceat(values, self.starts[:-1])

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """(w,) bool, blocks of which pairs (k,) are chosen."""
        return np.logical_or.reduceat(chosen, self.starts[:-1])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(w,) sums of values (k,) of their pairs, in the order of these."""
        return np.bincount(self.number, weights=values, minlength=self.count)

    def sums_of_bodies(self, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(w,) sums of values (m,) of the bodies (n,) bool that are chosen, in their order."""
        return np.bincount(self.bodies[chosen], weights=values, minlength=self.count)[: self.count]
