"""Derivatives of functions of several numbers: those that they know themselves, or differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

STEP = 5e-4
"""Step of differences over one and the size of a value, or the length of what is moved."""
COMPLEX_STEP = 1e-30
AGREEMENT = 1e-6
"""Largest difference between derivatives that agree, for each unit of their size and one."""
STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Places, in steps, and weights of the five-point formula."""


def gradient(function: Callable[[np.ndarray], float], values: Sequence[float]) -> np.ndarray:
    """Derivatives (k,) of a function at values (k,): by its own `gradient` where it has one, as formulas do."""
    return function.gradient(values) if hasattr(function, "gradient") else differences(function, values)


def is_analytic(by_complex_steps: Callable[[], np.ndarray], agrees: Callable[[np.ndarray], bool]) -> bool:
    """Whether a function takes complex numbers, and its derivatives by complex steps agree with those by differences."""
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
        for place, weight in STENCIL:
            moved = v.copy()
            moved[k] += place * step
            slopes[k] += weight * float(function(moved)) / step
    return slopes
