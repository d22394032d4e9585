"""Linear joint rows and their energy: the definition that the kernels mirror.

A row is ``F = Q_child Y_child - Q_parent Y_parent`` (3,), Q = [p | A] (3x4): ``Y = (1, X)`` for a point X, ``(0, u)``
for a direction u. Joined to the world, the parent's term is the constant point or direction itself. The energy
``K/2 |F|^2`` [kg m^2] stands in the incremental potential as it is; the physical stiffness is ``K / (c h^2)`` [N/m].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import WORLD, Joint


@dataclass(frozen=True)
class Row:
    """4-vectors of one residual; ``is_point`` tells metres from unit directions."""

    parent: np.ndarray
    child: np.ndarray
    is_point: bool


def point_row(parent_point: np.ndarray, child_point: np.ndarray) -> Row:
    """The two points coincide."""
    return Row(np.append(1.0, parent_point), np.append(1.0, child_point), True)


def direction_row(parent_direction: np.ndarray, child_direction: np.ndarray) -> Row:
    """The two directions coincide."""
    return Row(np.append(0.0, parent_direction), np.append(0.0, child_direction), False)


@dataclass(frozen=True)
class Rows:
    """Rows of all joints: joint, parent, child (m,), Yp, Yc (m, 4), K (m,) [kg], is_point (m,)."""

    joint: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    Yp: np.ndarray
    Yc: np.ndarray
    K: np.ndarray
    is_point: np.ndarray

    def __len__(self) -> int:
        return len(self.joint)


def compile_rows(joints: list[Joint]) -> Rows:
    """Rows of a scene's joints, in the order of the joints."""
    from abd.joints import TYPES

    found = [(k, joint, row) for k, joint in enumerate(joints) for row in TYPES[joint.type].rows(joint)]
    return Rows(
        joint=np.array([k for k, _, _ in found], dtype=np.int32),
        parent=np.array([j.parent for _, j, _ in found], dtype=np.int32),
        child=np.array([j.child for _, j, _ in found], dtype=np.int32),
        Yp=np.array([r.parent for _, _, r in found]).reshape(-1, 4),
        Yc=np.array([r.child for _, _, r in found]).reshape(-1, 4),
        K=np.array([j.strength_ratio * j.stiffness_mass for _, j, _ in found], dtype=float),
        is_point=np.array([r.is_point for _, _, r in found], dtype=bool),
    )


def residual(rows: Rows, q: np.ndarray) -> np.ndarray:
    """F (m, 3) for states q (n, 12)."""
    Q = np.concatenate([q[:, :3, None], q[:, 3:].reshape(-1, 3, 3)], axis=2)
    F = np.einsum("mrc,mc->mr", Q[rows.child], rows.Yc)
    world = rows.parent == WORLD
    inner = np.einsum("mrc,mc->mr", Q[rows.parent], rows.Yp)
    return F - np.where(world[:, None], rows.Yp[:, 1:], inner)


def energy(rows: Rows, q: np.ndarray) -> np.ndarray:
    """K/2 |F|^2 of every row (m,)."""
    return 0.5 * rows.K * np.sum(residual(rows, q) ** 2, axis=1)


def gradient(rows: Rows, q: np.ndarray) -> np.ndarray:
    """Gradient (n, 12) of the total energy."""
    f = rows.K[:, None] * residual(rows, q)
    out = np.zeros((len(q), 3, 4))
    np.add.at(out, rows.child, f[:, :, None] * rows.Yc[:, None, :])
    inner = rows.parent != WORLD
    np.subtract.at(out, rows.parent[inner], (f[:, :, None] * rows.Yp[:, None, :])[inner])
    return np.concatenate([out[:, :, 0], out[:, :, 1:].reshape(-1, 9)], axis=1)


def block(Ya: np.ndarray, Yb: np.ndarray, K: float) -> np.ndarray:
    """12x12 block ``K Ya Yb^T (x) 1_3`` in q order."""
    order = np.array([[r if a == 0 else 2 + 3 * r + a for a in range(4)] for r in range(3)])
    out = np.zeros((12, 12))
    for r in range(3):
        out[np.ix_(order[r], order[r])] = K * np.outer(Ya, Yb)
    return out


def hessian(rows: Rows, bodies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Constant Hessian: diagonal blocks (n, 12, 12), pairs (k, 2) with parent and child distinct, blocks (k, 12, 12)
    of row parent, column child; rows of one pair are added up."""
    diagonal = np.zeros((bodies, 12, 12))
    pairs: dict[tuple[int, int], np.ndarray] = {}
    for i, j, Yp, Yc, K in zip(rows.parent.tolist(), rows.child.tolist(), rows.Yp, rows.Yc, rows.K):
        diagonal[j] += block(Yc, Yc, K)
        if i != WORLD:
            diagonal[i] += block(Yp, Yp, K)
            low, high, value = (i, j, -block(Yp, Yc, K)) if i < j else (j, i, -block(Yc, Yp, K))
            pairs[low, high] = pairs.get((low, high), 0.0) + value
    keys = sorted(pairs)
    blocks = np.array([pairs[key] for key in keys]).reshape(-1, 12, 12)
    return diagonal, np.array(keys, dtype=np.int32).reshape(-1, 2), blocks


def wrenches(rows: Rows, joints: list[Joint], q: np.ndarray, ch2: float) -> np.ndarray:
    """(len(joints), 6): force [N] and torque [N m] of every joint on its child, at the child's anchor, world axes.

    A point row pulls with ``-K F / (c h^2)`` at its point; a direction row turns with the couple ``e x (-K F)/(c h^2)``.
    """
    Q = np.concatenate([q[:, :3, None], q[:, 3:].reshape(-1, 3, 3)], axis=2)
    f = -(rows.K / ch2)[:, None] * residual(rows, q)
    arms = np.einsum("mrc,mc->mr", Q[rows.child], rows.Yc)
    out = np.zeros((len(joints), 6))
    for k, joint, force, arm, is_point in zip(rows.joint, (joints[k] for k in rows.joint), f, arms, rows.is_point):
        if is_point:
            anchor = Q[joint.child] @ np.append(1.0, joint.child_frame[:3, 3])
            out[k, :3] += force
            out[k, 3:] += np.cross(arm - anchor, force)
        else:
            out[k, 3:] += np.cross(arm, force)
    return out
