"""Few colours instead of many, for formats in which each one is an object of its own."""

from __future__ import annotations

import numpy as np

MOST_COLORS = 256


def distinct_colors(colors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different colours (c, 4) of colours (n, 4), and the number of each one's: rounded to 8 bits, and coarser where that
    leaves more than `MOST_COLORS`."""
    step = 1
    while True:
        levels = np.round(255.0 * colors / step).astype(int)
        first, number = np.unique(levels.reshape(-1, 4), axis=0, return_inverse=True)
        if len(first) <= MOST_COLORS or step >= 64:
            return np.clip(first * step / 255.0, 0.0, 1.0), number.reshape(-1)
        step *= 2
