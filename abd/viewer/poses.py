"""Affine maps as a browser's instances take them: position, rotation and one scale along each axis of the mesh."""

from __future__ import annotations

import numpy as np

from abd.rotations import polar


def decomposed(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions (n, 3), quaternions (n, 4), scales (n, 3) of maps (n, 4, 4), and the remaining shear.

    The last is the Frobenius norm (n,) of ``A - R diag(s)``: shear along the axes of the mesh, which no such instance has.
    """
    A = maps[:, :3, :3]
    # sums by einsum: reductions over axes of three take several times as long
    scales = np.sqrt(np.einsum("nij,nij->nj", A, A))
    R = polar(A / np.where(scales > 0.0, scales, 1.0)[:, None])
    left = A - R * scales[:, None]
    rest = np.sqrt(np.einsum("nij,nij->n", left, left))
    return maps[:, :3, 3], quaternions(R), scales, rest


def quaternions(R: np.ndarray) -> np.ndarray:
    """(n, 4) unit quaternions (w, x, y, z) of rotations (n, 3, 3), each by its largest component."""
    diagonal = np.einsum("nii->ni", R)
    trace = diagonal.sum(axis=1)
    # 4 q_i q_j for every pair, of which the row with the largest diagonal entry is taken
    K = np.empty((len(R), 4, 4))
    K[:, 0, 0] = 1.0 + trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        K[:, i + 1, i + 1] = 1.0 - trace + 2.0 * diagonal[:, i]
        K[:, 0, i + 1] = K[:, i + 1, 0] = R[:, k, j] - R[:, j, k]
        K[:, j + 1, i + 1] = K[:, i + 1, j + 1] = R[:, j, i] + R[:, i, j]
    row = np.argmax(np.einsum("nii->ni", K), axis=1)
    q = K[np.arange(len(R)), row]
    return q / np.sqrt(np.einsum("ni,ni->n", q, q))[:, None]


def from_z(direction: np.ndarray) -> np.ndarray:
    """(n, 4) quaternions that turn z to directions (n, 3), of any length."""
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    x, y, z = np.divide(direction, length, out=np.tile([0.0, 0.0, 1.0], (len(direction), 1)), where=length > 0.0).T
    q = np.stack([1.0 + z, -y, x, np.zeros(len(x))], axis=1)
    q[z < -0.999999] = [0.0, 1.0, 0.0, 0.0]
    return q / np.linalg.norm(q, axis=1, keepdims=True)
