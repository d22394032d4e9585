"""Backtracking on the arc until the energy decreases, separately for each island.

Any decrease is accepted: steps capped by collisions cannot satisfy an Armijo fraction. Changes below `DOUBTFUL` times the size of
all terms may be rounding. They are judged by the gradient, which is more accurate: the step is accepted if the slope along the
direction decreases in size. A step within the tolerance is also accepted if it closes open exact joint rows.
"""

from __future__ import annotations

import numpy as np

from abd.backends.progress import no_decrease
from cuda_kernels.shared.step import DOUBTFUL, HALVINGS, ROUNDING


def search(
    backend, alpha: np.ndarray, small: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Search an accepted step on the path.

    Args:
        alpha: (islands,) largest safe fractions; an island with zero does not move.
        small: (islands,) whether the full step is within the tolerance.
        slope: (islands,) g.d at the iterate.

    Returns:
        the accepted fractions, the changes of the energy, and the number of energy evaluations.

    Raises:
        StepFailure: the energy of an island does not decrease, although its step is larger than the tolerance.
    """
    alpha, trials = alpha.copy(), 0
    is_accepted, halvings = np.zeros(len(alpha), dtype=bool), np.zeros(len(alpha), dtype=int)
    while True:
        change, size = backend.arcs.try_step(alpha)
        trials += 1
        rises = ~is_accepted & ~(change <= ROUNDING * size) & (alpha > 0.0)
        if not rises.any():
            backend.arcs.accept()
            return alpha, change, trials
        is_doubtful = np.abs(change) <= DOUBTFUL * size
        compares_slopes = is_doubtful[rises].all()
        if compares_slopes:
            closes_rows = small & (backend.rows.errors() > 1.0) if backend.system.has_exact else np.zeros(len(small), dtype=bool)
            backend.arcs.accept()
            backend.linear.linearize()
            steeper = rises & ~closes_rows & (np.abs(backend.linear.descent()) > np.abs(slope))
            is_accepted |= rises & ~steeper
            if not steeper.any():
                return alpha, change, trials
            backend.arcs.accept()
            # within the tolerance a steeper slope is rounding, which halving does not resolve
            alpha[steeper & small] = 0.0
        # doubtful changes are judged once no island rises clearly
        shorter = steeper if compares_slopes else rises & ~is_doubtful
        alpha[shorter] *= 0.5
        halvings[shorter] += 1
        is_exhausted = shorter & (halvings >= HALVINGS)
        if (is_exhausted & ~small).any():
            raise no_decrease(backend, HALVINGS, is_exhausted & ~small, slope)
        alpha[is_exhausted] = 0.0
