"""How exactly a Newton iteration solves its linear system, where that takes iterations of its own.

Far from the minimum an exact direction is wasted. The relative tolerance follows the progress of the last iteration
(Eisenstat and Walker, Choosing the forcing terms in an inexact Newton method, 1996, choice 2), measured by the speed s
that a full step would give the vertices:

    eta_k = 0.9 (s_k / s_{k-1})^2, at least 0.9 eta_{k-1}^2 while that is above 0.1, within [tightest, LOOSEST]

A direction that seems to meet Newton's tolerance decides nothing before its solve has reached the tightest tolerance.
"""

from __future__ import annotations

from abd.backends.answers import LOOSEST

_SCALE = 0.9
_KEPT_ABOVE = 0.1


class Forcing:
    """Tolerances of the linear solves of one minimisation.

    Args:
        tightest: relative tolerance of the solves that decide.

    Attributes:
        tolerance: of the next solve.
    """

    def __init__(self, tightest: float):
        self.tightest = tightest
        self.tolerance = self.loosest = max(LOOSEST, tightest)
        self._speed = 0.0

    def decides(self, small: bool) -> bool:
        """Whether a direction may be judged: it does not seem small, or its solve was as tight as can be."""
        return not small or self.tolerance <= self.tightest

    def advance(self, speed: float) -> None:
        """Take in the largest speed of the direction that was just solved for [m/s], converged bodies aside."""
        before, self._speed = self._speed, speed
        if before <= 0.0:
            return
        fresh = _SCALE * (speed / before) ** 2
        kept = _SCALE * self.tolerance**2
        if kept > _KEPT_ABOVE:
            fresh = max(fresh, kept)
        self.tolerance = min(max(fresh, self.tightest), self.loosest)
