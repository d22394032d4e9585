"""Central differences."""

from collections.abc import Callable

import numpy as np


def differences(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float) -> np.ndarray:
    """Return the derivatives (x.size, ...) of a function by all entries of x."""
    moves = step * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([np.subtract(function(x + move), function(x - move)) / (2.0 * step) for move in moves])
