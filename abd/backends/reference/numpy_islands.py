"""Islands with sums and minima over their bodies."""

from __future__ import annotations

import numpy as np

from abd.backends.numbering import Numbering


class Islands(Numbering):
    """Islands with sums and minima over their bodies."""

    def sums(self, values: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Return (count,) sums of values (m,) of bodies owners (m,)."""
        return np.bincount(self.host[owners], weights=values, minlength=self.count)

    def minima(self, values: np.ndarray, owners: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return (count,) smallest values of bodies owners (m,), at most `start` (count,)."""
        smallest = start.copy()
        np.minimum.at(smallest, self.host[owners], values)
        return smallest
