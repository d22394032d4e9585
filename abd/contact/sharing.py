"""Assignment of friction forces to the nearest contact point of their pair.

Friction is lagged in the last Newton iterations of a step, whereas normal forces are those of its end. Contact points
may have moved in between.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from abd.contact.forces import FrictionPoints
from abd.contact.pair_rows import keys
from abd.potentials.sticking import nearest
from cuda_kernels.shared.contact import SLIDE


def shared(pair: np.ndarray, point: np.ndarray, friction: FrictionPoints) -> tuple[np.ndarray, np.ndarray]:
    """Friction (c, 3) [N] on the first bodies at points (c, 3) of pairs (c, 2), and slips (c, 3).

    Slips are means weighted by load, in the unit of `friction.slip`.
    """
    n = 1 + max(pair.max(initial=0), friction.pair.max(initial=0))
    row = nearest(keys(pair, n), point, keys(friction.pair, n), friction.point)
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
