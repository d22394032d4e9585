"""ArtiSynth's definition of a joint: constraint wrenches and a projection to the nearest admissible pose.

The projection maps T_CD to T_GD. The joint's error is the motion from G to C; row k is its component

    phi_k = G_k . log(T_GD^-1 T_CD)        G_k = (force; moment) in the axes of C, twists (v; w)

If a wrench does no work on the joint's freedoms, the rate of phi_k is ``G_k . v_CD`` at a closed joint. The rows are
differentiable by complex steps if the projection is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from abd.joints.custom.numpy_rows import Residual
from abd.joints.measures.measures import analytic_rotation_vectors
from abd.rotations import pose

Projection = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""T_GD (k, 4, 4) from T_CD (k, 4, 4) and parameters p (k, np)."""
Wrench = np.ndarray | Projection
"""(6,) force and moment in axes of C, or a function of T_GD (k, 4, 4) and p (k, np) that returns (k, 6)."""
ITERATIONS = 10
"""Number of Newton-Schulz iterations; each doubles the number of correct digits."""
SMALL = 1e-3
"""Squared angle [rad^2] below which series replace quotients."""


def wrench_residual(wrenches: Projection, project: Projection) -> Residual:
    """Residual function of a function of T_GD (k, 4, 4) and p that returns the wrenches (k, rows, 6)."""

    def residual(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        T = pose(closest_rotations(M), r)
        G = project(T, p)
        return np.einsum("kri,ki->kr", wrenches(G, p), logarithms(inverses(G) @ T))

    return residual


def wrench_slopes(wrenches: Projection, project: Projection) -> Residual:
    """Jacobian function of the same rows, (k, rows, 12) by the rows of M and by r, from their rates ``G_k . v_CD``.

    Unlike the derivative of the residual, it has no kink where a projection begins to act.
    """

    def slopes(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        W = wrenches(project(pose(closest_rotations(M), r), p), p)
        by_M = 0.5 * np.cross(M[:, None], W[:, :, None, 3:])
        return np.concatenate([by_M.reshape(*W.shape[:2], 9), W[:, :, :3] @ M.transpose(0, 2, 1)], axis=2)

    return slopes


def stacked(wrenches: Mapping[str, Wrench]) -> Projection:
    """The wrenches of rows (k, rows, 6) as one function of T_GD (k, 4, 4) and p, in their order."""

    def function(G: np.ndarray, p: np.ndarray) -> np.ndarray:
        each = [one(G, p) if callable(one) else np.asarray(one, dtype=float) for one in wrenches.values()]
        return np.stack([np.broadcast_to(one, (len(G), 6)) for one in each], axis=1)

    return function


def mixed_residual(
    names: Sequence[str], function: Residual, wrenches: Mapping[str, Wrench], project: Projection
) -> Residual:
    """Residual function of rows by name: those of wrenches, and the others (k, others) of a function in their order."""
    by_wrench = wrench_residual(stacked(wrenches), project)
    order = [name for name in names if name not in wrenches] + list(wrenches)
    place = [order.index(name) for name in names]

    def residual(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.concatenate([function(M, r, p), by_wrench(M, r, p)], axis=1)[:, place]

    return residual


def inverses(T: np.ndarray) -> np.ndarray:
    """(k, 4, 4) inverses of rigid poses."""
    R = T[:, :3, :3].transpose(0, 2, 1)
    return pose(R, -np.einsum("kij,kj->ki", R, T[:, :3, 3]))


def closest_rotations(M: np.ndarray) -> np.ndarray:
    """Rotations closest to M (k, 3, 3) with positive determinant, by an iteration that is analytic in M."""
    X = M * np.sqrt(3.0 / np.sum(M * M, axis=(1, 2)))[:, None, None]
    for _ in range(ITERATIONS):
        X = 1.5 * X - 0.5 * X @ X.transpose(0, 2, 1) @ X
    return X


def logarithms(T: np.ndarray) -> np.ndarray:
    """(k, 6) twists (v; w) of rigid poses (k, 4, 4), rotations less than half a turn; analytic in T."""
    R, p = T[:, :3, :3], T[:, :3, 3]
    w = analytic_rotation_vectors(R)
    angle2 = np.sum(w * w, axis=1)
    small = angle2.real < SMALL
    angle = np.sqrt(np.where(small, 1.0, angle2))
    curved = (1.0 - 0.5 * angle / np.tan(0.5 * angle)) / angle**2
    curved = np.where(small, 1 / 12 + angle2 * (1 / 720 + angle2 * (1 / 30240 + angle2 / 1209600)), curved)
    turned = np.cross(w, p)
    return np.concatenate([p - 0.5 * turned + curved[:, None] * np.cross(w, turned), w], axis=1)
