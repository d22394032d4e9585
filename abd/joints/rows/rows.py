"""Linear joint rows and their energy: reference implementation of the kernels.

A row is ``F = Q_child Y_child - Q_parent Y_parent`` (3,), Q = [p | A] (3x4): ``Y = (1, X)`` for a point X, ``(0, u)``
for a direction u. If the parent is the world, its term is the constant point or direction. The energy
``1/2 sum_k K_k (F_k - a_k)^2`` [kg m^2] enters the incremental potential directly; the physical stiffness is
``K / (c h^2)`` [N/m]. The shift a is zero for penalties and contains the multiplier of exact rows, ``a = -lambda / K``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from abd.joint_list import JointList
from abd.joint_model import Joint
from abd.joints.rows.batches import PerJoint, batches
from abd.joints.rows.sizes import EXACT_RATIO
from abd.joints.types import TYPES
from abd.model import WORLD
from abd.potentials.elements import STATE_ORDER, body_gradient


@dataclass(frozen=True)
class Rows:
    """Rows of all joints.

    Attributes:
        joint, parent, child: (m,) indices; Yp, Yc: (m, 4).
        K: (m, 3) stiffness of the components [kg] (directions: kg m^2); 0 for free components and inactive joints.
        mask: (m, 3) 1 for constrained components, 0 for free ones.
        is_point, exact: (m,) bool.
        tolerance: (m,) residual tolerance of exact rows [m].
    """

    joint: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    Yp: np.ndarray
    Yc: np.ndarray
    K: np.ndarray
    mask: np.ndarray
    is_point: np.ndarray
    exact: np.ndarray
    tolerance: np.ndarray

    def __len__(self) -> int:
        return len(self.joint)


def compile_rows(joints: Sequence[Joint], mass: np.ndarray, tolerance: np.ndarray) -> Rows:
    """Rows of the joints that are not compliant, in the order of the joints; exact joints have point rows only.

    Args:
        mass: (j,) mass [kg] that replaces m_i + m_j for exact joints; tolerance: (j,) residual tolerance [m].
    """
    joints = JointList.of(joints)
    found = [
        (batch, row)
        for batch in batches(joints)
        if batch.first.enforcement != "compliant"
        for row in TYPES[batch.first.type].rows(batch.merged)
        if row.is_point or batch.first.enforcement == "penalty"
    ]
    each = PerJoint(found)
    return Rows(
        joint=each.joint,
        parent=joints.column("parent")[each.joint].astype(np.int32),
        child=joints.column("child")[each.joint].astype(np.int32),
        Yp=each.column(lambda _, row: row.parent, float, 4),
        Yc=each.column(lambda _, row: row.child, float, 4),
        K=_stiffness(joints, each, mass),
        mask=each.column(lambda _, row: row.mask, float, 3),
        is_point=each.column(lambda _, row: row.is_point, bool),
        exact=each.column(lambda batch, _: batch.first.enforcement == "exact", bool),
        tolerance=tolerance[each.joint],
    )


def _stiffness(joints: JointList, each: PerJoint, mass: np.ndarray) -> np.ndarray:
    """(m, 3) K of the components of rows; direction rows of types without a uid act at the length of the joint."""

    def of_rows(name: str) -> np.ndarray:
        return joints.column(name)[each.joint]

    mask = each.column(lambda _, row: row.mask, float, 3)
    own = each.column(lambda batch, row: row.is_point or batch.first.uid > 0, bool)
    K = of_rows("strength_ratio") * of_rows("stiffness_mass")
    K = np.where(of_rows("enforcement") == "exact", EXACT_RATIO * mass[each.joint], K)
    K = np.where(of_rows("active").astype(bool), K, 0.0)
    return K[:, None] * mask * np.where(own, 1.0, of_rows("length") ** 2)[:, None]


def residual(rows: Rows, q: np.ndarray) -> np.ndarray:
    """F (m, 3) for states q (n, 12)."""
    Q = np.concatenate([q[:, :3, None], q[:, 3:].reshape(-1, 3, 3)], axis=2)
    F = np.einsum("mrc,mc->mr", Q[rows.child], rows.Yc)
    world = rows.parent == WORLD
    inner = np.einsum("mrc,mc->mr", Q[rows.parent], rows.Yp)
    return F - np.where(world[:, None], rows.Yp[:, 1:], inner)


def by_states(rows: Rows, row: np.ndarray, axis: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Gradients of components of linear rows, each a `row` (k,) and a world `axis` (k,).

    Returns:
        for the child and for the parent: bodies (k,), and derivatives (k, 12) by their states.
    """
    unit = np.eye(3)[axis]
    return [(rows.child[row], body_gradient(unit, rows.Yc[row])), (rows.parent[row], body_gradient(-unit, rows.Yp[row]))]


def energy(rows: Rows, q: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """Energies (m,) with shifts a (m, 3)."""
    return 0.5 * np.sum(rows.K * (residual(rows, q) - shift) ** 2, axis=1)


def gradient(rows: Rows, q: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """Gradient (n, 12) of the total energy."""
    return pull_back(rows, rows.K * (residual(rows, q) - shift), len(q))


def pull_back(rows: Rows, f: np.ndarray, bodies: int) -> np.ndarray:
    """Gradient (n, 12) of an energy with the derivatives f (m, 3) by the residuals."""
    out = np.zeros((bodies + 1, 12))  # the last body is the world
    np.add.at(out, rows.child, body_gradient(f, rows.Yc))
    np.subtract.at(out, rows.parent, body_gradient(f, rows.Yp))
    return out[:WORLD]


def hessian(rows: Rows, bodies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Constant Hessian of all rows.

    Returns:
        diagonal blocks (n, 12, 12); pairs (k, 2) of distinct bodies, the lower index first; blocks (k, 12, 12) with the
        first body as row and the second as column. Rows of one pair are summed.
    """
    inner = rows.parent != WORLD
    parent, child, K = rows.parent[inner].astype(np.int64), rows.child[inner].astype(np.int64), rows.K[inner]
    Yp, Yc = rows.Yp[inner], rows.Yc[inner]
    own = np.concatenate([rows.Yc, Yp])
    diagonal = _summed(np.concatenate([rows.child, parent]), np.concatenate([rows.K, K]), own, own, bodies)
    upwards = (parent < child)[:, None]
    low, high = np.where(upwards, Yp, Yc), np.where(upwards, Yc, Yp)
    keys, slot = np.unique(np.minimum(parent, child) * bodies + np.maximum(parent, child), return_inverse=True)
    blocks = _summed(slot, -K, low, high, len(keys))
    return diagonal, np.stack([keys // bodies, keys % bodies], axis=1).astype(np.int32), blocks


def _summed(slot: np.ndarray, K: np.ndarray, Ya: np.ndarray, Yb: np.ndarray, count: int) -> np.ndarray:
    """(count, 12, 12) blocks ``diag(K) (x) Ya Yb^T`` in q order; blocks of one slot (m,) are summed in their order."""
    each = K[:, :, None, None] * (Ya[:, :, None] * Yb[:, None, :])[:, None]
    of_slot = csr_matrix((np.ones(len(slot)), (slot, np.arange(len(slot)))), shape=(count, len(slot)))
    out = np.zeros((count, 12, 12))
    out[:, STATE_ORDER[:, :, None], STATE_ORDER[:, None, :]] = (of_slot @ each.reshape(-1, 48)).reshape(-1, 3, 4, 4)
    return out
