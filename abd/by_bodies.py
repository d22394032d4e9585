"""Numbers that all bodies share, or each its own: times, and lengths of steps, which worlds may have of their own."""

from __future__ import annotations

import numpy as np

PerBody = float | np.ndarray
"""A number of all bodies, or (n,) of each."""


def common(values: PerBody) -> PerBody:
    """The number that all bodies have, where they have one."""
    if not isinstance(values, np.ndarray):
        return float(values)
    return float(values[0]) if len(values) and (values == values[0]).all() else values


def among(values: PerBody, who: np.ndarray) -> PerBody:
    """The number that all of some bodies (n,) bool have, where they have one."""
    if not isinstance(values, np.ndarray):
        return values
    theirs = common(values[who])
    return theirs if isinstance(theirs, float) else values


def of_body(values: PerBody, body: int) -> float:
    """The number of one body."""
    return float(values[body]) if isinstance(values, np.ndarray) else values
