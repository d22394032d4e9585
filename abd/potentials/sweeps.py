"""Factors x on contact impulses that bring normal powers within bounds, and their friction: projected Gauss-Seidel.

With the powers ``p = p_0 + A x``, every pair k in turn sets the factor that brings its power within [low_k, high_k],

    x_k = (low_k - f)/A_kk  if f = p_k - A_kk x_k < low_k,   max((high_k - f)/A_kk, -1)  if f > high_k,   otherwise 0,

in the order of the pairs, until no power changes by more than `SETTLED` of the fastest speed. x_k >= -1: an impulse can
be removed, but never becomes attractive.

A pair with friction has two further rows, which follow in each sweep: their p is its slip, their y is the friction impulse that
is added to `spent`, that of the step, along two tangents. With the limit ``l = mu_k (1 + x_k) size_k``, friction first opposes
the slip `before` the impact (direction e). At its end, that slip would be ``p_1 = p - sum A_yy (spent + y + l e)``, with the sum
over all contacts of the same two bodies; it changes in proportion to the impulse, and is closest to zero after the part f of the
impact. For the rest of the impact, each pair in turn stops its slip within what is left of Coulomb's cone
(Routh 1860; Keller 1986, "Impact with friction"),

    f = min(max(before . (before - p_1) / |before - p_1|^2, 0), 1),
    spent + y = t min(1, (1 - f) l / |t|) - f l e,     t = spent + y + f l e - p / a,

with the largest eigenvalue a of A_yy.

Friction of a single contact thus has no positive work, also where a contact that reverses its slip loads itself.

Large piles may need more sweeps than are taken. The normal impulses are therefore swept again at last, with the friction fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

SWEEPS = 500
"""Number of sweeps over many pairs, after which a block that has not settled ends."""
UPDATES = 100_000
"""Number of updates of pairs that a block with few pairs may take instead. A pair of mass ratio R needs about 7 R sweeps for an
error of 0.1 %."""
SETTLED = 1e-10
"""Largest change of a normal velocity or slip in the last sweep, relative to the fastest closing velocity."""
FRICTION_COST = 5
"""Number of sweeps of normal impulses per sweep with friction, which takes five times as long. In a bowl of 200 boxes, friction
leaves the cone by 0.4 % of the largest limit of its block in the mean, with 2 by 0.2 %, with 10 by 0.5 %."""
LEAST = 1e-300
"""Smallest divisor."""
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


@dataclass(frozen=True)
class ConeRows:
    """Friction of m pairs, of which pair j has the rows k + 2 j and k + 2 j + 1 of A, after those of k normal impulses.

    Attributes:
        pair: (m,) rows of the normal impulses, sorted; limit: (m,) ``mu size`` [N s]; spent: (m, 2) friction of the step [N s];
        before: (m, 2) slip before the impact [m/s]; bodies: (m,) key of the two bodies.
    """

    pair: np.ndarray
    limit: np.ndarray
    spent: np.ndarray
    before: np.ndarray
    bodies: np.ndarray

    @property
    def directions(self) -> np.ndarray:
        """(m, 2) directions of `before`, 0 without slip."""
        return self.before / np.maximum(np.linalg.norm(self.before, axis=1, keepdims=True), LEAST)

    def yields(self, A: sparse.csr_matrix) -> np.ndarray:
        """Return (m,) largest eigenvalues of the diagonal blocks of A."""
        k, diagonal, off_diagonal = A.shape[0] - 2 * len(self.pair), A.diagonal(), A.diagonal(1)
        first, second = diagonal[k::2], diagonal[k + 1 :: 2]
        return 0.5 * (first + second) + np.hypot(0.5 * (first - second), off_diagonal[k::2])

    def of_bodies(self, A: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return (2 m, 2 m) slips by friction impulses between the same two bodies."""
        k = A.shape[0] - 2 * len(self.pair)
        C = A[k:, k:].tocoo()
        same = self.bodies[C.row // 2] == self.bodies[C.col // 2]
        return sparse.csr_matrix((C.data[same], (C.row[same], C.col[same])), shape=C.shape)


NO_FRICTION = ConeRows(np.zeros(0, dtype=int), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=int))


def first_part(before: np.ndarray, opposed: np.ndarray) -> np.ndarray:
    """Return the part (..., 1) of an impact until the slip is closest to zero, from `before` to `opposed` (..., 2) at its end."""
    change = before - opposed
    length2 = np.sum(change * change, axis=-1, keepdims=True)
    return np.clip(np.sum(before * change, axis=-1, keepdims=True) / np.maximum(length2, LEAST), 0.0, 1.0)


def most_sweeps(pairs: int | np.ndarray) -> int | np.ndarray:
    """Largest number of sweeps over the pairs of a block."""
    return np.maximum(SWEEPS, UPDATES // np.maximum(pairs, 1))


def sweeps_with_friction(pairs: int | np.ndarray, cones: int | np.ndarray) -> int | np.ndarray:
    """Largest number of sweeps over the pairs of a block with friction of `cones` of them."""
    return np.where(cones > 0, most_sweeps(pairs) // FRICTION_COST, 0)


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: np.ndarray,
    starts: np.ndarray, rows: np.ndarray, friction: ConeRows = NO_FRICTION,
) -> np.ndarray:  # fmt: skip
    """(k + 2 m,) factors, then friction impulses [N s], in w independent blocks of rows that converge separately.

    Args:
        A: (k + 2 m, k + 2 m) symmetric, powers [J] and slips [m/s] by factors and friction; power: (k + 2 m,) without them.
        low, high: (k,) [J]; size: (k,) of the impulses [N s].
        fastest: (w,) reference speeds of the blocks [m/s].
        starts: (w + 1,) first row of every block, and k; no block is empty.
        rows: (r,) rows of normal impulses to sweep, in order; other factors are 0. friction: of m pairs.
    """
    diagonal, normals = A.diagonal(), len(size)
    yields, of_bodies, directions = friction.yields(A), friction.of_bodies(A), friction.directions
    x, power, slip = np.zeros(len(power)), power[:normals].copy(), power[normals:]
    rows, first = yielding(A, size, starts, rows)
    cones = np.searchsorted(friction.pair, starts)
    on_power, of_slip = A[:, :normals], A[normals:]

    def change(k: int, found: float) -> float:
        row, by = slice(on_power.indptr[k], on_power.indptr[k + 1]), found - x[k]
        x[k] = found
        power[on_power.indices[row]] += by * on_power.data[row]
        return abs(by) * diagonal[k]

    def sweep_normals(block: int) -> float:
        largest = 0.0
        for k in rows[first[block] : first[block + 1]]:
            free = power[k] - diagonal[k] * x[k]
            found = 0.0
            if free < low[k]:
                found = (low[k] - free) / diagonal[k]
            elif free > high[k]:
                found = max((high[k] - free) / diagonal[k], -1.0)
            if found != x[k]:
                largest = max(largest, change(k, found) / size[k])
        return largest

    def sweep_friction(block: int) -> float:
        largest = 0.0
        for j in range(cones[block], cones[block + 1]):
            both = np.arange(2 * j, 2 * j + 2)
            total, p = friction.spent[j] + x[normals + both], slip[both] + of_slip[both] @ x
            limits = friction.limit * (1.0 + x[friction.pair])
            most = friction.spent.ravel() + x[normals:] + (limits[:, None] * directions).ravel()
            part = first_part(friction.before[j], p - of_bodies[both] @ most)
            first = -part * limits[j] * directions[j]
            rest = total - first - p / max(yields[j], LEAST)
            left = (1.0 - float(part[0])) * limits[j]
            found = first + rest * min(1.0, left / max(float(np.linalg.norm(rest)), LEAST)) - friction.spent[j]
            largest = max(largest, *(change(normals + row, value) for row, value in zip(both, found, strict=True)))
        return largest

    def sweep_block(block: int, settled: float) -> None:
        pairs = first[block + 1] - first[block]
        for _ in range(sweeps_with_friction(pairs, cones[block + 1] - cones[block])):
            if max(sweep_normals(block), sweep_friction(block)) <= settled:
                return
        for _ in range(most_sweeps(pairs)):
            if sweep_normals(block) <= settled:
                return

    for block, settled in enumerate(SETTLED * fastest):
        sweep_block(block, settled)
    return x
