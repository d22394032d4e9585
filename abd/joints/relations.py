"""Terms of rows that one function of several coordinates gives: ``x = ... + weight f(v_1, ..., v_k)``.

On a device the function is asked by the host: before rows are evaluated, the polynomials of its terms are set to the tangent
plane at the present values, which is exact there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEP = 5e-4
"""Step of differences over one and the size of a value."""
STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Places, in steps, and weights of the five-point formula."""


@dataclass(frozen=True)
class Relation:
    """``weight f(v)`` of values v (k,); f takes a sequence of k numbers."""

    function: Callable[[np.ndarray], float]
    weight: float
    count: int

    def at(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """Its value and its derivatives (k,), by differences of fourth order."""
        slopes = np.zeros(len(v))
        for k in range(len(v)):
            step = STEP * (1.0 + abs(v[k]))
            for place, weight in STENCIL:
                moved = v.copy()
                moved[k] += place * step
                slopes[k] += weight * float(self.function(moved)) / step
        return self.weight * float(self.function(v)), self.weight * slopes


@dataclass(frozen=True)
class Share:
    """The k-th term of a relation, in the place of a term's pieces."""

    relation: Relation
    index: int


@dataclass(frozen=True)
class PlacedRelation:
    """A relation whose terms begin with the term `first`."""

    relation: Relation
    first: int

    @property
    def terms(self) -> slice:
        """Its terms."""
        return slice(self.first, self.first + self.relation.count)


def set_tangents(
    relations: tuple[PlacedRelation, ...], measured: np.ndarray, height: np.ndarray, slope: np.ndarray
) -> None:
    """Values and derivatives (T,) of the terms of relations at the values (T,) of the terms' measures."""
    for one in relations:
        value, slopes = one.relation.at(measured[one.terms])
        height[one.terms], slope[one.terms] = 0.0, slopes
        height[one.first] = value


FUNCTIONS: dict[str, Callable[[np.ndarray], float]] = {}
"""Functions of couplings that are defined in Python, by name (`coupling_function`)."""


def coupling_function(name: str, function: Callable[[np.ndarray], float]) -> None:
    """Define a function of coordinates for couplings of the same process: ``function = name`` with ``variables`` in a scene.

    Args:
        function: smooth, of the values (k,) of the variables in their order [m or rad]; it runs on numpy and cpu.
    """
    FUNCTIONS[name] = function
