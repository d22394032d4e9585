"""Projection of rigid poses onto joint rows: damped minimum-norm Gauss-Newton steps (Levenberg-Marquardt).

Unknowns are the twists of clusters of bodies. A step is ``-(J^T J + mu)^-1 J^T x`` with dimensionless x and J. For
small mu it is the shortest motion that closes the linearised rows, also if they are redundant. Steps rotate no cluster
by more than `LARGEST_TURN`. A step is accepted if it reduces |x|, or the next step with the same J (the natural
monotonicity test of Deuflhard 2004). In a long mechanism |x| may increase, because a step opens many rows slightly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abd.joints.rows.rigid_rows import Clusters, RigidRows

LARGEST_TURN = 0.5
"""Largest rotation [rad] per iteration, and largest translation as a fraction of the unit of length."""
LEAST_DAMPING = 1e-10
MOST_DAMPING = 1e8
ITERATIONS = 60
PATIENCE = 10
"""Number of steps within which the residual must be halved."""
STATIONARY = 1e-9
"""Cosine between the residual and the columns of J at a stationary point."""


@dataclass(frozen=True)
class Projected:
    """Result of a projection.

    Attributes:
        q: (n, 12) rigid states; reference: (m,) measures, with counted turns.
        converged: all residuals are within the tolerance.
        iterations: linear systems solved.
    """

    q: np.ndarray
    reference: np.ndarray
    converged: bool
    iterations: int


def project(
    rows: RigidRows,
    q: np.ndarray,
    chosen: np.ndarray,
    target: np.ndarray,
    clusters: Clusters,
    tolerance: float,
    reference: np.ndarray | None = None,
) -> Projected:
    """Move clusters until the rows `chosen` (k,) have the values `target` (k,).

    Args:
        q: (n, 12) rigid states.
        tolerance: largest residual [m or rad].
        reference: (m,) values of the measures near which angles are counted.
    """
    scale = rows.scale[chosen]

    def residual(state, near):
        values, measured = rows.values(state, near)
        return values[chosen] - target, measured

    x, reference = residual(q, reference)
    damping, iterations = LEAST_DAMPING, 0
    J, sizes = None, []
    while np.abs(x).max(initial=0.0) > tolerance and iterations < ITERATIONS and clusters.count:
        if J is None:
            J = (rows.jacobian(q, reference)[chosen] @ clusters.spread(q, rows.length)).tocsr()
            slope, size = J.T @ (scale * x), np.linalg.norm(scale * x)
            sizes.append(size)
            is_stuck = len(sizes) > PATIENCE and size > 0.5 * sizes[-PATIENCE - 1]
            if is_stuck or np.linalg.norm(slope) <= STATIONARY * size:
                break
        iterations += 1
        solve = _damped_factor(J, damping)
        step = -solve(slope)
        fraction = min(1.0, LARGEST_TURN / np.abs(step).max())
        moved = clusters.move(q, (fraction * step).reshape(-1, 6), rows.length)
        trial, measured = residual(moved, reference)
        following = solve(J.T @ (scale * trial))
        is_natural = np.linalg.norm(following) <= (1.0 - 0.25 * fraction) * np.linalg.norm(step)
        if is_natural or np.linalg.norm(scale * trial) < size:
            q, x, reference, J = moved, trial, measured, None
            damping = max(damping / 10.0, LEAST_DAMPING)
        elif damping >= MOST_DAMPING:
            break
        else:
            damping = max(100.0 * damping, 1e-6)
    return Projected(q, reference, bool(np.abs(x).max(initial=0.0) <= tolerance), iterations)


def _damped_factor(J, damping: float) -> Callable[[np.ndarray], np.ndarray]:
    """Solver of ``(J^T J + mu) y = b`` as a function of b; mu is relative to the largest diagonal entry."""
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    H = (J.T @ J).tocsc()
    H = H + max(damping * H.diagonal().max(), 1e-300) * identity(H.shape[0], format="csc")
    return splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve
