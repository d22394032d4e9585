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
) -> tuple[np.ndarray, np.ndarray, int]:
    """Accept a step on the path.

    Args:
        alpha: (islands,) largest safe fractions; zero leaves an island where it is.
        small: (islands,) whether the full step is within the tolerance.
        slope: (islands,) g.d at the iterate.

    Returns:
        the accepted fractions, the changes of the energy, and the number of energy evaluations.

    Raises:
        StepFailure: an island found no decrease, although its step is larger than the tolerance.
    """
    alpha, trials = alpha.copy(), 0
    taken, halvings = np.zeros(len(alpha), dtype=bool), np.zeros(len(alpha), dtype=int)
    while True:
        change, size = backend.arcs.try_step(alpha)
        trials += 1
        rising = ~taken & ~(change <= ROUNDING * size) & (alpha > 0.0)
        if not rising.any():
            backend.arcs.accept()
            return alpha, change, trials
        doubtful = np.abs(change) <= DOUBTFUL * size
        compared = doubtful[rising].all()
        if compared:
            closes = small & (backend.rows.errors() > 1.0) if backend.system.has_exact else np.zeros(len(small), dtype=bool)
            backend.arcs.accept()
            backend.linear.linearize()
            steeper = rising & ~closes & (np.abs(backend.linear.descent()) > np.abs(slope))
            taken |= rising & ~steeper
            if not steeper.any():
                return alpha, change, trials
            backend.arcs.accept()
            # within the tolerance already, and no better further on: halving would look for what rounding hides
            alpha[steeper & small] = 0.0
        # what may be rounding waits until nothing rises clearly
        shorter = steeper if compared else rising & ~doubtful
        alpha[shorter] *= 0.5
        halvings[shorter] += 1
        spent = shorter & (halvings >= HALVINGS)
        if (spent & ~small).any():
            raise no_decrease(backend, HALVINGS, spent & ~small, slope)
        alpha[spent] = 0.0
