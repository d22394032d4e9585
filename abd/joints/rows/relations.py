"""Terms of rows that one function of several coordinates gives: ``x = ... + weight f(v_1, ..., v_k)``.

On a device the function is asked by the host: before rows are evaluated, the polynomials of its terms are set to the tangent
plane at the present values, which is exact there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from abd.joints.measures.slopes import gradient
from abd.joints.rows import slots

ACCURACY = 1e-9
"""To which share of itself the work of a force within a step is integrated."""
PIECES = 50
"""Into how many pieces that may cut the way, where the force bends or jumps."""


@dataclass(frozen=True)
class Relation:
    """``weight f(v)`` of values v (k,), the measures of k terms from `first` on; f takes a sequence of k numbers."""

    function: Callable[[np.ndarray], float]
    weight: float
    count: int
    first: int = 0

    @property
    def terms(self) -> slice:
        """Its terms."""
        return slice(self.first, self.first + self.count)


def set_tangents(
    relations: tuple[Relation, ...], measured: np.ndarray, height: np.ndarray, slope: np.ndarray
) -> None:
    """Values and derivatives (T,) of the terms of relations at the values (T,) of the terms' measures."""
    for one in relations:
        v = measured[one.terms]
        height[one.terms], slope[one.terms] = 0.0, one.weight * gradient(one.function, v)
        height[one.first] = one.weight * float(one.function(v))


@dataclass(frozen=True)
class ForceLaw:
    """A force F(q, t, v) along a coordinate q with the speed v at the end of a step, t there.

    The integrator's speed is a function of where the step ends, ``v = w (x - x_h)`` (`abd.potentials.integrators`), so that F has
    a potential within the step, whatever it depends on:

        psi(x) = -c h^2 int_{x_n}^x F(s, t, w (s - x_h)) ds,    psi'' = -c h^2 (dF/dq + w dF/dv)

    The curvature is taken where it is positive: where F pulls back, or brakes.
    """

    function: Callable[[Sequence[float]], float]

    def set(self, p: np.ndarray, x: float, ch2: float, time: float) -> None:
        """Set value, energy, slope and curvature of the law `GIVEN` (8,) at x, by its other parameters: w, x_h and x_n."""
        from scipy.integrate import quad

        per_step, last, begin = p[slots.PER_STEP], p[slots.LAST], p[slots.BEGIN]

        def force(s: float) -> float:
            return float(self.function((s, time, per_step * (s - last))))

        along = quad(force, begin, x, epsabs=0.0, epsrel=ACCURACY, limit=PIECES, full_output=1)[0]
        by_value, _, by_rate = gradient(self.function, (x, time, per_step * (x - last)))
        p[slots.HERE], p[slots.ENERGY], p[slots.SLOPE] = x, -ch2 * along, -ch2 * force(x)
        p[slots.CURVATURE] = max(0.0, -ch2 * (by_value + per_step * by_rate))


FUNCTIONS: dict[str, Callable[[np.ndarray], float]] = {}
"""Functions of coordinates that are defined in Python, by name (`coupling_function`)."""


def coupling_function(name: str, function: Callable[[np.ndarray], float]) -> None:
    """Define a function of coordinates for scenes of the same process: ``function = name`` with ``variables`` of a coupling, or
    ``force_function = name`` of a coordinate or of a spring.

    Args:
        function: smooth; of the values (k,) of a coupling's variables in their order, or of (q, t, rate) of a force along q
            [m or rad, s, m/s or rad/s], or of (length, gap, t, speed) of a spring, which gives N or N m. It runs on numpy and
            cpu.
    """
    FUNCTIONS[name] = function
