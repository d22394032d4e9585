"""Derivatives of functions of several numbers: by the function's own `gradient`, or by differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

STEP = 5e-4
"""Finite-difference step relative to 1 + |value|, or to the length of what is displaced."""
COMPLEX_STEP = 1e-30
AGREEMENT = 1e-6
"""Tolerance of the comparison of derivatives, relative to one plus their size."""
STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Offsets, in steps, and weights of the five-point formula."""


def gradient(function: Callable[[np.ndarray], float], values: Sequence[float]) -> np.ndarray:
    """Derivatives (k,) of a function at values (k,), by its `gradient` method if it has one."""
    return function.gradient(values) if hasattr(function, "gradient") else differences(function, values)


def is_analytic(by_complex_steps: Callable[[], np.ndarray], agrees: Callable[[np.ndarray], bool]) -> bool:
    """Whether the function accepts complex numbers and its complex-step derivatives agree with differences."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        try:
            return bool(agrees(by_complex_steps()))
        except (TypeError, ValueError, np.exceptions.ComplexWarning):
            return False


def differences(function: Callable[[np.ndarray], float], values: Sequence[float]) -> np.ndarray:
    """Derivatives (k,) of a function at values (k,), by differences of fourth order."""
    v = np.asarray(values, dtype=float)
    slopes = np.zeros(len(v))
    for k in range(len(v)):
        step = STEP * (1.0 + abs(v[k]))
        for offset, weight in STENCIL:
            shifted = v.copy()
            shifted[k] += offset * step
            slopes[k] += weight * float(function(shifted)) / step
    return slopes
