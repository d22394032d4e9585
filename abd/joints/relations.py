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


@dataclass(frozen=True)
class ForceLaw:
    """A force F(q, t) along a coordinate q: ``psi = -c h^2 int_{x_n}^x F(s, t) ds`` from where the step began, t at its end.

    The integral is Gauss and Legendre's with eight points; a curvature is taken where F pulls back.
    """

    function: Callable[[tuple[float, float]], float]

    def set(self, p: np.ndarray, x: float, ch2: float, time: float, begin: float) -> None:
        """Set the first four parameters of the law `GIVEN` (8,) for the value x."""
        points, weights = _GAUSS
        half = 0.5 * (x - begin)
        along = [self.function((begin + half * (1.0 + s), time)) for s in points]
        step = STEP * (1.0 + abs(x))
        slope = sum(weight * self.function((x + place * step, time)) for place, weight in STENCIL) / step
        p[:4] = x, -ch2 * half * float(weights @ along), -ch2 * self.function((x, time)), max(0.0, -ch2 * slope)


_GAUSS = np.polynomial.legendre.leggauss(8)

FUNCTIONS: dict[str, Callable[[np.ndarray], float]] = {}
"""Functions of coordinates that are defined in Python, by name (`coupling_function`)."""


def coupling_function(name: str, function: Callable[[np.ndarray], float]) -> None:
    """Define a function of coordinates for scenes of the same process: ``function = name`` with ``variables`` of a coupling, or
    ``force_function = name`` of a coordinate or of a spring.

    Args:
        function: smooth; of the values (k,) of a coupling's variables in their order, or of (q, t) of a force along q [m, rad
            and s], or of (length, gap, t) of a spring, which gives N or N m. It runs on numpy and cpu.
    """
    FUNCTIONS[name] = function
