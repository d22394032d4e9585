"""Islands with sums and minima over what belongs to their bodies."""

from __future__ import annotations

import numpy as np

from abd.backends.numbering import Numbering


class Islands(Numbering):
    """Islands with sums and minima over them."""

    def sums(self, values: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """(count,) sums of values (m,) that belong to the bodies owners (m,)."""
        return np.bincount(self.host[owners], weights=values, minlength=self.count)

    def minima(self, values: np.ndarray, owners: np.ndarray, start: np.ndarray) -> np.ndarray:
        """(count,) smallest values, at most `start` (count,)."""
        smallest = start.copy()
        np.minimum.at(smallest, self.host[owners], values)
        return smallest
