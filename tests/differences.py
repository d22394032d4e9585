"""Central differences, and agreement with a reference up to the rounding of its input."""

from collections.abc import Callable

import numpy as np


def differences(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float) -> np.ndarray:
    """Return the derivatives (x.size, ...) of a function by all entries of x."""
    moves = step * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([np.subtract(function(x + move), function(x - move)) / (2.0 * step) for move in moves])


def derivative(function: Callable[[float], np.ndarray], step: float = 4e-3) -> np.ndarray:
    """Return the derivative of a function of time at 0, by differences of order 8."""
    weights = [4 / 5, -1 / 5, 4 / 105, -1 / 280]
    return sum(w / step * (function((k + 1) * step) - function(-(k + 1) * step)) for k, w in enumerate(weights))


def assert_agrees(
    value: np.ndarray, reference: Callable[[np.ndarray], np.ndarray], x: np.ndarray, relative: float = 1e-9,
    ulps: float = 100.0, samples: int = 6, seed: int = 0, context: str = "",
) -> None:
    """Assert that the largest absolute difference of value and reference(x) is within the larger of two bounds.

    The bounds are `relative` times the reference, and `ulps` times the largest change of the reference when all
    entries of x change by one ulp (`samples` random choices of signs).
    """
    expected = np.asarray(reference(x), dtype=float)
    value = np.asarray(value, dtype=float)
    assert value.shape == expected.shape, f"{context}: shapes {value.shape} and {expected.shape}"
    rng = np.random.default_rng(seed)
    change = 0.0
    for _ in range(samples):
        moved = np.nextafter(x, np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf))
        change = max(change, float(np.max(np.abs(np.asarray(reference(moved)) - expected), initial=0.0)))
    bound = max(relative * float(np.max(np.abs(expected), initial=0.0)), ulps * change)
    error = float(np.max(np.abs(value - expected), initial=0.0))
    assert error <= bound, f"{context}: differs by {error:.3e}, allowed {bound:.3e} (change by one ulp {change:.3e})"
