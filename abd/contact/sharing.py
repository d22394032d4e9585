"""Assignment of friction forces to the nearest contact point of their pair.

Friction is lagged in the last Newton iterations of a step, whereas normal forces are those of its end. Contact points
may have moved in between.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from abd.contact.forces import FrictionPoints
from abd.contact.pair_rows import keys
from cuda_kernels.shared.contact import SLIDE

LINEAR_SEARCH = 32
"""Largest number of points of a pair for a linear search; larger pairs use a tree."""


def shared(pair: np.ndarray, point: np.ndarray, friction: FrictionPoints) -> tuple[np.ndarray, np.ndarray]:
    """Friction (c, 3) [N] on the first bodies at points (c, 3) of pairs (c, 2), and slips (c, 3).

    Slips are means weighted by load, in the unit of `friction.slip`.
    """
    row = nearest(pair, point, friction.pair, friction.point)
    row[friction.kind != SLIDE] = -1
    weight = np.abs(friction.load)
    total = summed(row, np.column_stack([friction.force, weight, weight[:, None] * friction.slip]), len(pair))
    return total[:, :3], total[:, 4:] / np.where(total[:, 3] > 0.0, total[:, 3], 1.0)[:, None]


def summed(row: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count, d) sums of the values (l, d) of every row, in their order; row -1 is ignored."""
    kept = row >= 0
    where = np.flatnonzero(kept)
    matrix = csr_matrix((np.ones(len(where)), (row[kept], where)), shape=(count, len(row)))
    return matrix @ values


def nearest(pair: np.ndarray, point: np.ndarray, query_pair: np.ndarray, query_point: np.ndarray) -> np.ndarray:
    """(l,) row of the nearest point of the same pair, -1 if the pair has none."""
    out = np.full(len(query_pair), -1)
    if not len(pair) or not len(query_pair):
        return out
    n = int(max(pair.max(), query_pair.max())) + 1
    key, query_key = keys(pair, n), keys(query_pair, n)
    order = np.argsort(key, kind="stable")
    first, end = (np.searchsorted(key[order], query_key, side) for side in ("left", "right"))
    few = end - first <= LINEAR_SEARCH
    best = np.full(len(out), np.inf)
    for rank in range(int((end - first)[few].max(initial=0))):
        query = np.flatnonzero(few & (first + rank < end))
        row = order[first[query] + rank]
        difference = point[row] - query_point[query]
        distance = np.einsum("li,li->l", difference, difference)
        closer = distance < best[query]
        best[query[closer]], out[query[closer]] = distance[closer], row[closer]
    if not few.all():
        many, mine = np.flatnonzero(~few), np.isin(key, query_key[~few])
        # a fourth coordinate, larger than all distances, separates the pairs
        size = 8.0 * max(np.abs(point).max(), np.abs(query_point).max(), 1e-300)
        tree = cKDTree(np.column_stack([point[mine], size * key[mine]]))
        _, row = tree.query(np.column_stack([query_point[many], size * query_key[many]]))
        out[many] = np.flatnonzero(mine)[row]
    return out
