"""Numbers that are common to all bodies or differ between them, such as the times and steps of worlds."""

from __future__ import annotations

import numpy as np

PerBody = float | np.ndarray
"""One number for all bodies, or (n,) numbers."""


def common(values: PerBody) -> PerBody:
    """Return one number if all are equal, else the array."""
    if not isinstance(values, np.ndarray):
        return float(values)
    return float(values[0]) if len(values) and (values == values[0]).all() else values


def among(values: PerBody, mask: np.ndarray) -> PerBody:
    """Return one number if those of the bodies in a mask (n,) bool are equal, else the array."""
    if not isinstance(values, np.ndarray):
        return values
    chosen = common(values[mask])
    return chosen if isinstance(chosen, float) else values


def of_body(values: PerBody, body: int) -> float:
    """Return the number of one body."""
    return float(values[body]) if isinstance(values, np.ndarray) else values
