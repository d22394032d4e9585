"""Linear joint rows and their energy: the definition that the kernels mirror.

A row is ``F = Q_child Y_child - Q_parent Y_parent`` (3,), Q = [p | A] (3x4): ``Y = (1, X)`` for a point X, ``(0, u)``
for a direction u. Joined to the world, the parent's term is the constant point or direction itself. The energy
``1/2 sum_k K_k (F_k - a_k)^2`` [kg m^2] stands in the incremental potential as it is; the physical stiffness is
``K / (c h^2)`` [N/m]. The shift a is zero for penalties; exact rows carry their multipliers in it, ``a = -lambda / K``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import WORLD, Joint

EXACT_RATIO = 1e3
"""Stiffness of exact rows over the largest mass among the bodies joined to them: how much of a multiplier's error is
left after one iteration is the inverse of it; more would lengthen the arc's way along the valley."""


@dataclass(frozen=True)
class Row:
    """4-vectors of one residual; ``is_point`` tells metres from unit directions, `mask` which world components count."""

    parent: np.ndarray
    child: np.ndarray
    is_point: bool
    mask: tuple[float, float, float] = (1.0, 1.0, 1.0)


def point_row(parent_point: np.ndarray, child_point: np.ndarray) -> Row:
    """The two points coincide."""
    return Row(np.append(1.0, parent_point), np.append(1.0, child_point), True)


def direction_row(parent_direction: np.ndarray, child_direction: np.ndarray) -> Row:
    """The two directions coincide."""
    return Row(np.append(0.0, parent_direction), np.append(0.0, child_direction), False)


@dataclass(frozen=True)
class Rows:
    """Rows of all joints.

    Attributes:
        joint, parent, child: (m,) indices; Yp, Yc: (m, 4).
        K: (m, 3) stiffness of the components [kg] (directions: kg m^2); 0 where one is free, or the joint is off.
        mask: (m, 3) 1 for the components that count, 0 for free ones.
        is_point, exact: (m,) bool.
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

    def __len__(self) -> int:
        return len(self.joint)


def compile_rows(joints: list[Joint], mass: np.ndarray | None = None) -> Rows:
    """Rows of a scene's joints that are not compliant, in the order of the joints; of exact ones their points alone.

    Args:
        mass: (j,) mass [kg] that stands for m_i + m_j in exact joints; default: their own.
    """
    from abd.joints import TYPES

    found = [
        (k, joint, row)
        for k, joint in enumerate(joints)
        if joint.enforcement != "compliant"
        for row in TYPES[joint.type].rows(joint)
        if row.is_point or joint.enforcement == "penalty"
    ]
    return Rows(
        joint=np.array([k for k, _, _ in found], dtype=np.int32),
        parent=np.array([j.parent for _, j, _ in found], dtype=np.int32),
        child=np.array([j.child for _, j, _ in found], dtype=np.int32),
        Yp=np.array([r.parent for _, _, r in found]).reshape(-1, 4),
        Yc=np.array([r.child for _, _, r in found]).reshape(-1, 4),
        K=np.array([_stiffness(j, r, mass if mass is None else mass[k]) for k, j, r in found]).reshape(-1, 3),
        mask=np.array([r.mask for _, _, r in found], dtype=float).reshape(-1, 3),
        is_point=np.array([r.is_point for _, _, r in found], dtype=bool),
        exact=np.array([j.enforcement == "exact" for _, j, _ in found], dtype=bool),
    )


def _stiffness(joint: Joint, row: Row, mass: float | None) -> np.ndarray:
    """K of a row's components; directions of types without a uid act at the joint's length."""
    if not joint.active:
        return np.zeros(3)
    exact = joint.enforcement == "exact" and mass is not None
    K = EXACT_RATIO * mass if exact else joint.strength_ratio * joint.stiffness_mass
    return K * np.asarray(row.mask) * (1.0 if row.is_point or joint.uid else joint.length**2)


def residual(rows: Rows, q: np.ndarray) -> np.ndarray:
    """F (m, 3) for states q (n, 12)."""
    Q = np.concatenate([q[:, :3, None], q[:, 3:].reshape(-1, 3, 3)], axis=2)
    F = np.einsum("mrc,mc->mr", Q[rows.child], rows.Yc)
    world = rows.parent == WORLD
    inner = np.einsum("mrc,mc->mr", Q[rows.parent], rows.Yp)
    return F - np.where(world[:, None], rows.Yp[:, 1:], inner)


def energy(rows: Rows, q: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """Energies (m,) with shifts a (m, 3)."""
    return 0.5 * np.sum(rows.K * (residual(rows, q) - shift) ** 2, axis=1)


def gradient(rows: Rows, q: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """Gradient (n, 12) of the total energy."""
    return pull_back(rows, rows.K * (residual(rows, q) - shift), len(q))


def pull_back(rows: Rows, f: np.ndarray, bodies: int) -> np.ndarray:
    """Gradient (n, 12) of an energy whose derivatives by the residuals are f (m, 3)."""
    out = np.zeros((bodies, 3, 4))
    np.add.at(out, rows.child, f[:, :, None] * rows.Yc[:, None, :])
    inner = rows.parent != WORLD
    np.subtract.at(out, rows.parent[inner], (f[:, :, None] * rows.Yp[:, None, :])[inner])
    return np.concatenate([out[:, :, 0], out[:, :, 1:].reshape(-1, 9)], axis=1)


def hessian(rows: Rows, bodies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Constant Hessian: diagonal blocks (n, 12, 12), pairs (k, 2) with parent and child distinct, blocks (k, 12, 12)
    of row parent, column child, the lower body index first; rows of one pair are added up."""
    diagonal = np.zeros((bodies, 12, 12))
    np.add.at(diagonal, rows.child, _blocks(rows.K, rows.Yc, rows.Yc))
    inner = rows.parent != WORLD
    np.add.at(diagonal, rows.parent[inner], _blocks(rows.K[inner], rows.Yp[inner], rows.Yp[inner]))
    parent, child, K = rows.parent[inner].astype(np.int64), rows.child[inner].astype(np.int64), rows.K[inner]
    upwards = (parent < child)[:, None]
    low, high = np.where(upwards, rows.Yp[inner], rows.Yc[inner]), np.where(upwards, rows.Yc[inner], rows.Yp[inner])
    keys, slot = np.unique(np.minimum(parent, child) * bodies + np.maximum(parent, child), return_inverse=True)
    blocks = np.zeros((len(keys), 12, 12))
    np.subtract.at(blocks, slot, _blocks(K, low, high))
    return diagonal, np.stack([keys // bodies, keys % bodies], axis=1).astype(np.int32), blocks


_ORDER = np.array([[r if a == 0 else 2 + 3 * r + a for a in range(4)] for r in range(3)])
"""(3, 4) where entry (r, a) of Q stands in q."""


def _blocks(K: np.ndarray, Ya: np.ndarray, Yb: np.ndarray) -> np.ndarray:
    """12x12 blocks ``diag(K) (x) Ya Yb^T`` (m, 12, 12) in q order."""
    out = np.zeros((len(K), 12, 12))
    outer = Ya[:, :, None] * Yb[:, None, :]
    for r in range(3):
        out[:, _ORDER[r][:, None], _ORDER[r]] = K[:, r, None, None] * outer
    return out
