"""Factors x on contact impulses that bring normal powers within bounds: projected Gauss-Seidel.

With the powers ``p = p_0 + A x``, every pair k in turn sets the factor that brings its power within [low_k, high_k],

    x_k = (low_k - f)/A_kk  if f = p_k - A_kk x_k < low_k,   max((high_k - f)/A_kk, -1)  if f > high_k,   otherwise 0,

in the order of the pairs, until no power changes by more than `SETTLED` of the fastest speed. x_k >= -1: an impulse can
be removed, but never becomes attractive.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

SWEEPS = 500
"""Number of sweeps over many pairs, after which a block that has not settled ends."""
UPDATES = 100_000
"""Number of updates of pairs that a block with few pairs may take instead. A pair of mass ratio R needs about 7 R sweeps for an
error of 0.1 %."""
SETTLED = 1e-10
"""Largest change of a normal velocity in the last sweep, relative to the fastest closing velocity."""
YIELDS = 1e-14
"""Smallest inverse mass A_kk / size_k^2, relative to the largest, of a pair with an effective impulse."""


def least_yielding(diagonal: np.ndarray, size: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(k,) lower bound of A_kk [J] for an effective impulse, for impulses of the sizes (k,) [N s].

    Args:
        starts: (w + 1,) first row of every block, and the number of rows.
    """
    weight = size * size
    largest = np.maximum.reduceat(np.maximum(diagonal / weight, 0.0), starts[:-1])
    return YIELDS * np.repeat(largest, np.diff(starts)) * weight


def yielding(A: sparse.csr_matrix, size: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows, among `rows` (m,), with an effective impulse, and the first of them in every block (w + 1,)."""
    diagonal, among = A.diagonal(), np.zeros(len(size))
    among[rows] = diagonal[rows]
    rows = rows[diagonal[rows] > least_yielding(among, size, starts)[rows]]
    return rows, np.searchsorted(rows, starts)


def most_sweeps(pairs: int | np.ndarray) -> int | np.ndarray:
    """Largest number of sweeps over the pairs of a block."""
    return np.maximum(SWEEPS, UPDATES // np.maximum(pairs, 1))


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: np.ndarray,
    starts: np.ndarray, rows: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(k,) factors, in w independent blocks of rows that converge separately.

    Args:
        A: (k, k) symmetric, powers per factor [J]; power, low, high: (k,) [J]; size: (k,) of the impulses [N s].
        fastest: (w,) reference speeds of the blocks [m/s].
        starts: (w + 1,) first row of every block, and k; no block is empty.
        rows: (m,) rows to sweep, in order; other factors are 0.
    """
    diagonal = A.diagonal()
    x, power = np.zeros(len(power)), power.copy()
    rows, first = yielding(A, size, starts, rows)
    for block in range(len(fastest)):
        for _ in range(most_sweeps(first[block + 1] - first[block])):
            largest = 0.0
            for k in rows[first[block] : first[block + 1]]:
                free = power[k] - diagonal[k] * x[k]
                found = 0.0
                if free < low[k]:
                    found = (low[k] - free) / diagonal[k]
                elif free > high[k]:
                    found = max((high[k] - free) / diagonal[k], -1.0)
                change = found - x[k]
                if change != 0.0:
                    x[k] = found
                    row = slice(A.indptr[k], A.indptr[k + 1])
                    power[A.indices[row]] += change * A.data[row]
                    largest = max(largest, abs(change) * diagonal[k] / size[k])
            if largest <= SETTLED * fastest[block]:
                break
    return x
