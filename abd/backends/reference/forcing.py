"""Tolerances of iterative linear solves in Newton's method.

Far from the minimum, exact directions are unnecessary. The relative tolerance follows the progress of the last iteration
(Eisenstat and Walker, Choosing the forcing terms in an inexact Newton method, 1996, choice 2), measured by the vertex speed s of
a full step:

    eta_k = 0.9 (s_k / s_{k-1})^2, at least 0.9 eta_{k-1}^2 while that is above 0.1, within [tightest, LOOSEST]

A direction may end the minimisation only if its solve has reached the tightest tolerance.
"""

from __future__ import annotations

from cuda_kernels.shared.step import FORCING_SCALE, LOOSEST, SAFEGUARD


class Forcing:
    """Tolerances of the linear solves of one minimisation.

    Args:
        tightest: smallest relative tolerance.

    Attributes:
        tolerance: of the next solve.
    """

    def __init__(self, tightest: float):
        self.tightest = tightest
        self.tolerance = self.loosest = max(LOOSEST, tightest)
        self._speed = 0.0

    def decides(self, small: bool) -> bool:
        """Return whether a direction may be judged: it is not `small`, or its solve had the tightest tolerance."""
        return not small or self.tolerance <= self.tightest

    def advance(self, speed: float) -> None:
        """Update the tolerance with the largest vertex speed of the last direction [m/s], without converged bodies."""
        before, self._speed = self._speed, speed
        if before <= 0.0:
            return
        tolerance = FORCING_SCALE * (speed / before) ** 2
        safeguard = FORCING_SCALE * self.tolerance**2
        if safeguard > SAFEGUARD:
            tolerance = max(tolerance, safeguard)
        self.tolerance = min(max(tolerance, self.tightest), self.loosest)
