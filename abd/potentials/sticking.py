"""Tangential springs of sticking contacts, anchored where sticking started.

Smoothed friction (`abd.potentials.friction`) depends on the slip u of a step. Below `eps` it is viscous: a body on a
slope creeps at up to eps_v. Here a contact stores the stretch of its spring, as in the plasticity of granular contacts
(Cundall and Strack 1979, "A discrete numerical model for granular assemblies"):

    E = mu lambda f0(|e|),    e = eps s + u,        s <- e / max(|e|, eps)   at the end of the step

s (3,), the *share*, is the stretch relative to eps, a tangent vector in world axes with |s| <= 1. A contact at rest
under a constant load has u = 0 and the force ``mu lambda f1(|s|)``; a sliding contact has |s| = 1 and the full Coulomb
force. The energy is that of smoothed friction with a shifted origin, with the same bounds of its derivatives. s is
dimensionless, so that the force does not change with the step length and eps.

Contacts appear, disappear and change primitives while bodies slide, roll and tip. A contact takes the share of the
nearest contact of the same two bodies in the last step, measured on the first body. The share is rotated into its
tangent plane. It has none if the bodies were not in contact. Between steps shares rotate with the mean spin of the two
bodies about the normal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd.rotations import cross_product
from abd.tables import Table
from cuda_kernels.shared.contact import SPIN, STEEP

KINDS = SPIN + 1
"""Number of kinds of resisted motion."""
LINEAR_SEARCH = 32
"""Largest number of points of a key for a linear search; more points are searched by a tree."""


@dataclass(frozen=True)
class Anchors(Table):
    """k contacts of the last step.

    Attributes:
        key: (k,) ``i n + j`` of the bodies i, j of n; kind: (k,) resisted motion (`abd.potentials.rolling`).
        point: (k, 3) contact point on body i, in rest coordinates [m].
        share: (k, 3) stretch of i relative to j, over eps [-].
    """

    key: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kind: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    point: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    share: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def nearest(self, key: np.ndarray, kind: np.ndarray, point: np.ndarray) -> np.ndarray:
        """(l,) indices of the nearest anchors of contacts with keys, kinds (l,) and points on their first bodies; -1 for none."""
        return nearest(KINDS * self.key + self.kind, self.point, KINDS * key + kind, point)

    def found(self, key: np.ndarray, kind: np.ndarray, point: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(l, 3) shares of the `nearest` anchors in the tangent planes of the normals n (l, 3); 0 without one."""
        out, nearest = np.zeros((len(key), 3)), self.nearest(key, kind, point)
        known = nearest >= 0
        out[known] = tangential(self.share[nearest[known]], n[known])
        return out


def tangential(share: np.ndarray, n: np.ndarray) -> np.ndarray:
    """(l, 3) shares projected into the planes of the normals n (l, 3), with the same size unless the angle is too large."""
    flat = share - np.sum(share * n, axis=1, keepdims=True) * n
    size, flat_size = (np.linalg.norm(one, axis=1, keepdims=True) for one in (share, flat))
    return np.where(flat_size > STEEP * size, flat * (size / np.maximum(flat_size, 1e-300)), flat)


def final_shares(stretch: np.ndarray, eps: float, n: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """(l, 3) shares after a step with the final stretches e (l, 3) [m].

    Args:
        spin: (l,) mean rotation of the bodies about the normals n (l, 3) [rad].
    """
    share = stretch / eps
    share = share / np.maximum(np.linalg.norm(share, axis=1), 1.0)[:, None]
    return np.cos(spin)[:, None] * share + np.sin(spin)[:, None] * cross_product(n, share)


def nearest(key: np.ndarray, point: np.ndarray, query_key: np.ndarray, query_point: np.ndarray) -> np.ndarray:
    """(l,) row of the nearest of points (c, 3) with the key (c,) of a query (l,), -1 without one."""
    out = np.full(len(query_key), -1)
    if not len(key) or not len(query_key):
        return out
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
        from scipy.spatial import cKDTree

        many, mine = np.flatnonzero(~few), np.isin(key, query_key[~few])
        # a fourth coordinate, larger than all distances, separates the keys
        size = 8.0 * max(np.abs(point).max(), np.abs(query_point).max(), 1e-300)
        tree = cKDTree(np.column_stack([point[mine], size * key[mine]]))
        _, row = tree.query(np.column_stack([query_point[many], size * query_key[many]]))
        out[many] = np.flatnonzero(mine)[row]
    return out
