"""Which rows of a Jacobian are independent, and which motions they leave.

Dense QR with column pivoting up to `DENSE_ROWS` rows; beyond that nothing is said rather than guessed.
"""

from __future__ import annotations

import numpy as np

DENSE_ROWS = 1500
"""Most rows or columns of a Jacobian that is analysed."""
RANK = 1e-9
"""A pivot below this share of the largest one counts as zero."""
INDEPENDENT = 1e-7
"""Share of a row's length that must lie outside the span of others for it to be independent of them."""


def independence(J) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Analysis of a sparse J (r, c); None where it is larger than `DENSE_ROWS`.

    Returns:
        rank; the (r - rank,) rows that the others imply, ascending; (c, c - rank) orthonormal motions that leave all rows as
        they are.
    """
    from scipy.linalg import qr

    r, c = J.shape
    if max(r, c) > DENSE_ROWS:
        return None
    if r == 0 or c == 0:
        return 0, np.arange(r), np.eye(c)
    Q, R, order = qr(J.toarray().T, pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > RANK * max(pivots[0], 1e-300)))
    return rank, np.sort(order[rank:]), Q[:, rank:]


def independent_in_order(extra: np.ndarray, motions: np.ndarray) -> np.ndarray:
    """(k,) bool: which rows of extra (k, c) change along `motions` (c, f) and are independent of those before them."""
    out = np.zeros(len(extra), dtype=bool)
    basis = np.zeros((0, motions.shape[1]))
    for k, row in enumerate(extra):
        along = row @ motions
        along = along - (basis @ along) @ basis
        size = np.linalg.norm(along)
        if size > INDEPENDENT * max(np.linalg.norm(row), 1e-300):
            out[k] = True
            basis = np.vstack([basis, along / size])
    return out
