"""Measured rows: ``x = sum_t f_t(measure_t)`` with a law psi(x) each; reference implementation of the kernels.

f_t is a piecewise polynomial: a factor for most rows, a power series or a spline in couplings. A function of several
coordinates has several terms, ``weight f(v_1, ..., v_k)``. Before rows are evaluated, the host sets the polynomials of
these terms to the tangent plane at the present values, where it is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from abd.joint_model import Coupling
from abd.joints.measures.slopes import gradient
from cuda_kernels.shared import slots

COEFFICIENTS = 6
EVERYWHERE = -1e300
"""Start of the first piece of a term."""
ACCURACY = 1e-9
"""Relative accuracy of the integral of a force over a step."""
PIECES = 50
"""Largest number of intervals of that integral, for forces with kinks or jumps."""
LOBATTO = (
    (-1.0, 11.0 / 210.0, 1.0 / 6.0), (-(2.0 / 3.0) ** 0.5, 72.0 / 245.0, 0.0), (-(0.2**0.5), 125.0 / 294.0, 5.0 / 6.0),
    (0.0, 16.0 / 35.0, 0.0),
    (0.2**0.5, 125.0 / 294.0, 5.0 / 6.0), ((2.0 / 3.0) ** 0.5, 72.0 / 245.0, 0.0), (1.0, 11.0 / 210.0, 1.0 / 6.0),
)  # fmt: skip
"""Points in [-1, 1], their weights in the extended Gauss-Lobatto rule of 7 points (Gander and Gautschi 2000) and in that of 4."""


@dataclass(frozen=True)
class Relation:
    """``weight f(v)`` of values v (k,), the measures of the k terms from `first` on; f takes a sequence of k numbers."""

    function: Callable[[np.ndarray], float]
    weight: float
    count: int
    first: int = 0

    @property
    def terms(self) -> slice:
        """Slice of its terms."""
        return slice(self.first, self.first + self.count)


@dataclass(frozen=True)
class MeasuredRows:
    """R rows, T terms, P pieces; the kernels read a struct with the same names.

    Attributes:
        starts: (R + 1,) first term of every row.
        term_measure: (T,) measure of every term.
        piece_starts: (T + 1,) first piece of every term.
        starts_at: (P,) lower bound of a piece; origin: (P,) value about which its polynomial is expanded.
        coefficients: (P, 6), lowest order first.
        relations: functions of several measures; each of their terms has one piece.
    """

    starts: np.ndarray
    term_measure: np.ndarray
    piece_starts: np.ndarray
    starts_at: np.ndarray
    origin: np.ndarray
    coefficients: np.ndarray
    relations: tuple[Relation, ...] = ()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def term_row(self) -> np.ndarray:
        """(T,) row of every term."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


Piece = tuple[float, float, np.ndarray]
"""(starts_at, origin, coefficients) of one piece."""
Term = tuple[int, list[Piece] | Relation]
"""Measure index, and the pieces of its function, or a function of the measures of this and the following terms."""


def factor(weight: float) -> list[Piece]:
    """Pieces of ``weight v``."""
    return power_series((0.0, weight))


def power_series(coefficients) -> list[Piece]:
    """Piece of a polynomial about zero with at most six coefficients, lowest order first."""
    padded = np.zeros(COEFFICIENTS)
    padded[: len(coefficients)] = coefficients
    return [(EVERYWHERE, 0.0, padded)]


def spline(table: np.ndarray, weight: float = 1.0) -> list[Piece]:
    """Pieces of a natural cubic spline through knots (p, 2) times `weight`, with linear extrapolation."""
    from scipy.interpolate import CubicSpline

    knots, heights = np.asarray(table, dtype=float).T
    curve = CubicSpline(knots, weight * heights, bc_type="natural")
    slopes = curve(knots[[0, -1]], 1)
    pieces = [(EVERYWHERE, knots[0], np.array([curve(knots[0]), slopes[0]]))]
    pieces += [(knots[k], knots[k], curve.c[::-1, k]) for k in range(len(knots) - 1)]
    pieces.append((knots[-1], knots[-1], np.array([curve(knots[-1]), slopes[1]])))
    return [(start, origin, np.pad(c, (0, COEFFICIENTS - len(c)))) for start, origin, c in pieces]


def terms_of(coupling: Coupling, measures: list[int]) -> list[Term]:
    """Terms of a coupling except q0, for the measures of its other coordinates."""
    if coupling.function is not None:
        relation = Relation(coupling.function, -coupling.scale, len(measures))
        return [(measure, factor(0.0) if k else relation) for k, measure in enumerate(measures)]
    weight = -coupling.scale
    pieces = [
        power_series([weight * c for c in term.polynomial]) if term.table is None else spline(term.table, weight)
        for term in coupling.terms
    ]
    return list(zip(measures, pieces, strict=True))


def collect(rows: list[list[Term]]) -> MeasuredRows:
    """Measured rows from lists of terms."""
    given = [term for row in rows for term in row]
    relations = tuple(replace(one, first=place) for place, (_, one) in enumerate(given) if isinstance(one, Relation))
    terms = [(measure, factor(0.0) if isinstance(one, Relation) else one) for measure, one in given]
    pieces = [piece for _, one in terms for piece in one]
    return MeasuredRows(
        starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32),
        term_measure=np.array([measure for measure, _ in terms], dtype=np.int32),
        piece_starts=np.concatenate([[0], np.cumsum([len(one) for _, one in terms])]).astype(np.int32),
        starts_at=np.array([start for start, _, _ in pieces], dtype=float),
        origin=np.array([origin for _, origin, _ in pieces], dtype=float),
        coefficients=np.array([c for _, _, c in pieces], dtype=float).reshape(-1, COEFFICIENTS),
        relations=relations,
    )


def evaluate(rows: MeasuredRows, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values x (R,) of the rows and slopes (T,) of their terms at measured values (m,)."""
    v = measured[rows.term_measure]
    piece = _pieces_at(rows, v)
    c, u = rows.coefficients[piece], v - rows.origin[piece]
    height, slope = np.zeros(len(v)), np.zeros(len(v))
    for k in reversed(range(COEFFICIENTS)):
        slope = slope * u + height
        height = height * u + c[:, k]
    set_tangents(rows.relations, v, height, slope)
    x = np.zeros(len(rows))
    np.add.at(x, rows.term_row, height)
    return x, slope


def _pieces_at(rows: MeasuredRows, v: np.ndarray) -> np.ndarray:
    """(T,) last piece of every term that starts at or below v (T,)."""
    if len(rows.starts_at) == len(v):
        return np.arange(len(v))
    owner = np.repeat(np.arange(len(v)), np.diff(rows.piece_starts))
    below = rows.starts_at <= v[owner]
    return rows.piece_starts[:-1] + np.bincount(owner, below, minlength=len(v)).astype(int) - 1


def set_tangents(relations: tuple[Relation, ...], measured: np.ndarray, height: np.ndarray, slope: np.ndarray) -> None:
    """Set the values and derivatives (T,) of the terms of relations at the values (T,) of the terms' measures."""
    for one in relations:
        v = measured[one.terms]
        height[one.terms], slope[one.terms] = 0.0, one.weight * gradient(one.function, v)
        height[one.first] = one.weight * float(one.function(v))


def integral(function: Callable[[float], float], begin: float, end: float) -> float:
    """Integral by a rule of 7 points, exact for polynomials of degree 9; by adaptive rules where one of 4 points differs."""
    middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
    total = size = difference = 0.0
    for place, weight, coarse in LOBATTO:
        value = half * function(middle + half * place)
        total += weight * value
        size += abs(weight * value)
        difference += (weight - coarse) * value
    if abs(difference) <= ACCURACY * size:
        return total
    from scipy.integrate import quad

    return quad(function, begin, end, epsabs=0.0, epsrel=ACCURACY, limit=PIECES, full_output=1)[0]


@dataclass(frozen=True)
class ForceLaw:
    """Force F(q, t, v) along a coordinate q with the speed v, at the end of a step.

    The speed is a function of the end value, ``v = w (x - x_h)`` (`abd.potentials.integrators`). Within a step F
    therefore has a potential:

        psi(x) = -c h^2 int_{x_n}^x F(s, t, w (s - x_h)) ds,    psi'' = -c h^2 (dF/dq + w dF/dv)

    A negative curvature is replaced by zero.
    """

    function: Callable[[Sequence[float]], float]

    def set(self, p: np.ndarray, x: float, ch2: float, time: float) -> None:
        """Set value, energy, slope and curvature of the law `GIVEN` (8,) at x, from its parameters w, x_h and x_n."""
        per_step, last, begin = p[[slots.PER_STEP, slots.LAST, slots.BEGIN]].tolist()

        def force(s: float) -> float:
            return float(self.function((s, time, per_step * (s - last))))

        along = integral(force, begin, x)
        by_value, _, by_rate = gradient(self.function, (x, time, per_step * (x - last)))
        p[slots.HERE], p[slots.ENERGY], p[slots.SLOPE] = x, -ch2 * along, -ch2 * force(x)
        p[slots.CURVATURE] = max(0.0, -ch2 * (by_value + per_step * by_rate))


FUNCTIONS: dict[str, Callable[[np.ndarray], float]] = {}
"""Functions of coordinates defined in Python, by name (`coupling_function`)."""


def coupling_function(name: str, function: Callable[[np.ndarray], float]) -> None:
    """Define a function of coordinates for scenes of the same process.

    Scenes use it as ``function = name`` with ``variables`` of a coupling, or as ``force_function = name`` of a
    coordinate or a spring.

    Args:
        function: smooth function. Couplings pass the values (k,) of their variables in order. Coordinates pass (q, t,
            rate) [m or rad, s, m/s or rad/s], springs (length, gap, t, speed); both expect N or N m. It works with the
            backends numpy and cpu.
    """
    FUNCTIONS[name] = function
