"""Friction at points of contact: every force of friction belongs to the nearest point of its pair.

Friction was frozen in the last Newton iterations of a step, normal forces are those of its end, and contact may have moved on
in between by what a step brings.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from abd.contact.forces import FrictionPoints, friction_points
from abd.contact.pair_rows import PairRows, keys
from abd.potentials.rolling import SLIDE

FEW = 32
"""Points of a pair up to which the nearest is found by looking at each, and not by a tree."""


class FrictionDefinition:
    """Reference implementation of `abd.backends.warp.terms.friction_points`."""

    friction_points = staticmethod(friction_points)

    @staticmethod
    def shared(pair: np.ndarray, point: np.ndarray, rows: PairRows, friction: FrictionPoints, friction_rows: PairRows):
        """As `shared`; the rows by pair are not needed."""
        return shared(pair, point, friction)


def shared(pair: np.ndarray, point: np.ndarray, friction: FrictionPoints) -> tuple[np.ndarray, np.ndarray]:
    """Friction (c, 3) [N] on the first bodies at points (c, 3) of pairs (c, 2), and slips (c, 3), means by their loads, in the
    unit of `friction.slip`."""
    row = nearest(pair, point, friction.pair, friction.point)
    row[friction.kind != SLIDE] = -1
    weight = np.abs(friction.load)
    total = summed(row, np.column_stack([friction.force, weight, weight[:, None] * friction.slip]), len(pair))
    return total[:, :3], total[:, 4:] / np.where(total[:, 3] > 0.0, total[:, 3], 1.0)[:, None]


def summed(row: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count, d) sums of the values (l, d) of every row, in their order; those of row -1 are left out."""
    kept = row >= 0
    where = np.flatnonzero(kept)
    matrix = csr_matrix((np.ones(len(where)), (row[kept], where)), shape=(count, len(row)))
    return matrix @ values


def nearest(pair: np.ndarray, point: np.ndarray, asked_pair: np.ndarray, asked_point: np.ndarray) -> np.ndarray:
    """(l,) row of the nearest point of the same pair, -1 where the pair has none."""
    out = np.full(len(asked_pair), -1)
    if not len(pair) or not len(asked_pair):
        return out
    n = int(max(pair.max(), asked_pair.max())) + 1
    key, asked_key = keys(pair, n), keys(asked_pair, n)
    order = np.argsort(key, kind="stable")
    first, end = (np.searchsorted(key[order], asked_key, side) for side in ("left", "right"))
    few = end - first <= FEW
    best = np.full(len(out), np.inf)
    for rank in range(int((end - first)[few].max(initial=0))):
        asked = np.flatnonzero(few & (first + rank < end))
        row = order[first[asked] + rank]
        way = point[row] - asked_point[asked]
        distance = np.einsum("li,li->l", way, way)
        closer = distance < best[asked]
        best[asked[closer]], out[asked[closer]] = distance[closer], row[closer]
    if not few.all():
        many, mine = np.flatnonzero(~few), np.isin(key, asked_key[~few])
        # pairs are kept apart by a fourth coordinate that is larger than all distances
        size = 8.0 * max(np.abs(point).max(), np.abs(asked_point).max(), 1e-300)
        tree = cKDTree(np.column_stack([point[mine], size * key[mine]]))
        _, row = tree.query(np.column_stack([asked_point[many], size * asked_key[many]]))
        out[many] = np.flatnonzero(mine)[row]
    return out
