"""Backtracking on the arc until the energy decreases, each island by itself.

Any decrease is accepted: an Armijo fraction cannot be met on steps capped by collisions. Where the change is so small
that it may be rounding (below `DOUBTFUL` times the size of all terms), the gradient decides, which keeps its digits
longer: the step is accepted if the slope along the direction falls in size. It is also accepted, if it is within the
tolerance, where it closes exact joint rows that are open: without it they would stay so.
"""

from __future__ import annotations

import numpy as np

from abd.backends.progress import no_decrease

ROUNDING = 1e-15
DOUBTFUL = 1e-9
HALVINGS = 40


def search(
    backend, alpha: np.ndarray, small: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Accept a step on the path.

    Args:
        alpha: (islands,) largest safe fractions; zero leaves an island where it is.
        small: (islands,) whether the full step is within the tolerance.
        slope: (islands,) g.d at the iterate.

    Returns:
        the accepted fractions, the changes of the energy, the number of energy evaluations, and whether the new iterate
        is linearised already.

    Raises:
        StepFailure: an island found no decrease, although its step is larger than the tolerance.
    """
    alpha = alpha.copy()
    for trial in range(1, HALVINGS + 1):
        change, size = backend.arcs.try_step(alpha)
        rising = ~(change <= ROUNDING * size) & (alpha > 0.0)
        if not rising.any():
            backend.arcs.accept()
            return alpha, change, trial, False
        if (np.abs(change[rising]) <= DOUBTFUL * size[rising]).all():
            closes = small & (backend.rows.errors() > 1.0) if backend.system.has_exact else np.zeros(len(small), dtype=bool)
            backend.arcs.accept()
            backend.linear.linearize()
            steeper = rising & ~closes & (np.abs(backend.linear.descent()) > np.abs(slope))
            if not steeper.any():
                return alpha, change, trial, True
            backend.arcs.accept()
            rising = steeper
            # within the tolerance already, and no better further on: halving would look for what rounding hides
            alpha[rising & small] = 0.0
        alpha[rising] *= 0.5
    stuck = rising & ~small
    if stuck.any():
        raise no_decrease(backend, HALVINGS, stuck, slope)
    alpha[rising] = 0.0
    change, _ = backend.arcs.try_step(alpha)
    backend.arcs.accept()
    return alpha, change, HALVINGS + 1, False
