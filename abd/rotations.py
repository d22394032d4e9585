"""Rotations and rigid motions: cross matrices, exponentials, logarithms, polar factors, quaternions, modified Rodrigues
parameters. Plurals (`rotations`, `rotation_vectors`) take and give many at once.

Twists are ``(v; w)``, linear before angular, and wrenches ``(f; t)``. A *body* twist V of a pose T has its components in
the moving frame: ``dT/dt = T hat(V)``. Quaternions are (w, x, y, z); angles are radians.
"""

from __future__ import annotations

import numpy as np

SMALL = 0.05
"""Angle [rad] below which series replace quotients that lose digits; their error there is below 1e-16."""
STRAIGHT = 1e-9
"""Sine of an angle below which it equals the angle, and does not define the axis."""
NEWTON_COUNT = 64
"""Smallest number of matrices for which those near rotations are treated separately."""
NEAR, EXACT = 0.1, 1e-15
"""Largest entries of ``A^T A - 1`` for which A is nearly a rotation, and a rotation up to rounding."""
COUNTED = 3.0
"""Angle [rad] from which importers give the number of turns: near pi, the angle of a pose is ambiguous."""


def skew(w: np.ndarray) -> np.ndarray:
    """Return (..., 3, 3) matrices of ``x -> w x x`` for w (..., 3)."""
    w = np.asarray(w)
    W = np.zeros((*w.shape, 3), dtype=np.result_type(w, float))
    W[..., 2, 1], W[..., 0, 2], W[..., 1, 0] = w[..., 0], w[..., 1], w[..., 2]
    W[..., 1, 2], W[..., 2, 0], W[..., 0, 1] = -w[..., 0], -w[..., 1], -w[..., 2]
    return W


def cross_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return (..., 3) cross products, equal to `np.cross` at a fraction of its overhead."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        np.subtract(a[..., i] * b[..., j], a[..., j] * b[..., i], out=out[..., k])
    return out


def axial(W: np.ndarray) -> np.ndarray:
    """Return (..., 3) axial vectors of the skew parts of W (..., 3, 3)."""
    v = (W[..., 2, 1] - W[..., 1, 2], W[..., 0, 2] - W[..., 2, 0], W[..., 1, 0] - W[..., 0, 1])
    return 0.5 * np.stack(v, axis=-1)


def pose(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return (..., 4, 4) poses of rotations (..., 3, 3) and positions (..., 3), complex ones too."""
    R, p = np.asarray(R), np.asarray(p)
    T = np.zeros((*R.shape[:-2], 4, 4), dtype=np.result_type(float, R, p))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def inverse(T: np.ndarray) -> np.ndarray:
    """Return the inverse (4, 4) of a rigid pose."""
    return pose(T[:3, :3].T, -T[:3, :3].T @ T[:3, 3])


def adjoint(T: np.ndarray) -> np.ndarray:
    """Return the (6, 6) matrix that turns twists with components in C into twists with components in D, T = T_CD.

    Its transpose turns wrenches in D into wrenches in C.
    """
    R = T[:3, :3]
    return np.block([[R, skew(T[:3, 3]) @ R], [np.zeros((3, 3)), R]])


def cross(V: np.ndarray) -> np.ndarray:
    """Return the (6, 6) matrix of the bracket of twists, ``[V, U] = cross(V) U``."""
    v, w = skew(V[:3]), skew(V[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def exp(twist: np.ndarray) -> np.ndarray:
    """Return the pose (4, 4) reached by unit time of a constant body twist (6,)."""
    v, w = twist[:3], twist[3:]
    angle, W = np.linalg.norm(w), skew(w)
    if angle < SMALL:
        third = 1.0 / 6.0 - angle**2 / 120.0 + angle**4 / 5040.0 - angle**6 / 362880.0
    else:
        third = (angle - np.sin(angle)) / angle**3
    half = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    R = np.eye(3) + np.sinc(angle / np.pi) * W + half * (W @ W)
    return pose(R, v + half * (W @ v) + third * (W @ (W @ v)))


def log(T: np.ndarray) -> np.ndarray:
    """Return the twist (6,) of least angle, at most pi, with ``exp(log(T)) = T``."""
    w = rotation_vector(T[:3, :3])
    W, p = skew(w), T[:3, 3]
    _, second, _ = _log_coefficients(np.linalg.norm(w))
    return np.concatenate([p - 0.5 * W @ p + second * (W @ (W @ p)), w])


def log_rate(twist: np.ndarray) -> np.ndarray:
    """Return the (6, 6) matrix that turns the body twist of T into the rate of ``log(T)``; its last 3x3 block is Bortz' equation.

    ``1 + ad/2 + A ad^2 + B ad^4`` with A and B of Bullo and Murray, "Proportional derivative (PD) control on the
    Euclidean group", 1995.
    """
    ad = cross(twist)
    A, _, B = _log_coefficients(np.linalg.norm(twist[3:]))
    square = ad @ ad
    return np.eye(6) + 0.5 * ad + A * square + B * (square @ square)


def _log_coefficients(angle: float) -> tuple[float, float, float]:
    """Return A and B of `log_rate`, and between them ``(1 - a)/angle^2`` with ``a = angle/2 cot(angle/2)``."""
    s = angle**2
    if angle < SMALL:
        return 1 / 12 - s**2 / 30240, 1 / 12 + s / 720 + s**2 / 30240, -1 / 720 - s / 15120 - s**2 / 403200
    half = 0.5 * angle
    a, b = half / np.tan(half), (half / np.sin(half)) ** 2
    A = (2.0 * (1.0 - a) + 0.5 * (a - b)) / s
    B = ((1.0 - a) + 0.5 * (a - b)) / s**2
    return A, (1.0 - a) / s, B


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return the axis (3,) times the angle in [0, pi] [rad]."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_rotvec()


def rotations(w: np.ndarray) -> np.ndarray:
    """Return (m, 3, 3) rotations exp([w]_x) of rotation vectors w (m, 3) [rad]: Rodrigues, with sin x / x by `sinc`."""
    angle = np.linalg.norm(w, axis=1)[:, None, None]
    K = skew(w)
    half = np.sinc(angle / (2.0 * np.pi))
    return np.eye(3) + np.sinc(angle / np.pi) * K + 0.5 * half**2 * (K @ K)


def rotation_vectors(R: np.ndarray) -> np.ndarray:
    """Return (m, 3) rotation vectors [rad] of rotations R (m, 3, 3) by at most half a turn: the inverse of `rotations`."""
    return nearest_rotation_vectors(R, np.zeros((len(R), 3)))


def nearest_rotation_vectors(R: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the rotation vectors (m, 3) [rad] of rotations R (m, 3, 3) that are nearest to `near` (m, 3).

    With the axis n and the angle theta in [0, pi], ``(R + R^T) / 2 = cos(theta) (1 - n n^T) + n n^T`` has the axis where
    the skew part vanishes, at half a turn.
    """
    v = axial(R)
    sine, cosine = np.linalg.norm(v, axis=1), 0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0)
    dyads = 0.5 * (R + R.transpose(0, 2, 1)) - cosine[:, None, None] * np.eye(3)
    longest = np.einsum("mii->mi", dyads).argmax(axis=1)
    beyond = dyads[np.arange(len(R)), longest]
    beyond = np.where(np.einsum("mi,mi->m", beyond, v)[:, None] < 0.0, -beyond, beyond)
    # zero angle: whole turns are about the requested axis
    axis = np.where((cosine < 0.0)[:, None], beyond, np.where((sine > STRAIGHT)[:, None], v, near))
    length = np.linalg.norm(axis, axis=1)
    axis = axis / np.where(length > 0.0, length, 1.0)[:, None]
    angle = np.arctan2(sine, cosine)
    turns = np.round((np.einsum("mi,mi->m", near, axis) - angle) / (2.0 * np.pi))
    small = (cosine >= 0.0) & (sine <= STRAIGHT)
    return np.where(small[:, None], v, angle[:, None] * axis) + (2.0 * np.pi * turns)[:, None] * axis


def least_turn(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the least rotations (..., 3, 3) that take a unit vector u (3,) to others, v (..., 3)."""
    K, cosine = skew(np.cross(u, v)), np.asarray(v @ u)
    opposite = cosine < -1.0 + 1e-12
    out = np.eye(3) + K + K @ K / np.where(opposite, 1.0, 1.0 + cosine)[..., None, None]
    if opposite.any():
        other = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
        other /= np.linalg.norm(other)
        out[opposite] = 2.0 * np.outer(other, other) - np.eye(3)
    return out


def polar(A: np.ndarray) -> np.ndarray:
    """Return the rotations (n, 3, 3) closest to A (n, 3, 3), by singular values; by Newton's iteration where many are near."""
    if len(A) < NEWTON_COUNT:
        return _by_singular_values(A)
    near = np.abs(A.transpose(0, 2, 1) @ A - np.eye(3)).max(axis=(1, 2)) <= NEAR
    near &= np.einsum("ni,ni->n", A[:, 0], cross_product(A[:, 1], A[:, 2])) > 0.0
    if near.all():
        return _by_newton(A)
    out = np.empty_like(A)
    out[near], out[~near] = polar(A[near]), _by_singular_values(A[~near])
    return out


def _by_singular_values(A: np.ndarray) -> np.ndarray:
    U, _, Vt = np.linalg.svd(A)
    flip = np.sign(np.linalg.det(U @ Vt))
    U[:, :, 2] *= flip[:, None]
    return U @ Vt


def _by_newton(X: np.ndarray) -> np.ndarray:
    """``X <- X (3 - X^T X) / 2`` squares the error (Higham, Functions of Matrices 2008, section 8.3)."""
    last, error = np.inf, 1.0
    while EXACT < error < last:
        S = X.transpose(0, 2, 1) @ X - np.eye(3)
        X, last, error = X - 0.5 * (X @ S), error, float(np.abs(S).max())
    return X


def quaternions(R: np.ndarray) -> np.ndarray:
    """Return (n, 4) unit quaternions (w, x, y, z) with w >= 0 of rotations (n, 3, 3)."""
    from scipy.spatial.transform import Rotation

    found = Rotation.from_matrix(R).as_quat()[:, [3, 0, 1, 2]]
    return np.where(found[:, :1] >= 0.0, found, -found)


def quaternion(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (4,) of a rotation (3, 3), with w >= 0."""
    return quaternions(R[None])[0]


def quaternion_matrix(q: np.ndarray) -> np.ndarray:
    """Return the rotation (3, 3) of a quaternion (4,) of any norm except zero."""
    w, u = q[0], q[1:]
    return np.eye(3) + (2.0 / (q @ q)) * (w * skew(u) + skew(u) @ skew(u))


def quaternion_rate(q: np.ndarray) -> np.ndarray:
    """Return the (4, 3) map from the angular velocity in body axes to dq/dt; 4/|q|^2 times its transpose is the inverse."""
    w, x, y, z = q
    return 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


def mrp(R: np.ndarray) -> np.ndarray:
    """Return the modified Rodrigues parameters (3,) ``axis tan(angle/4)`` of length at most 1."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_mrp()


def mrp_matrix(s: np.ndarray) -> np.ndarray:
    """Return the rotation (3, 3) of modified Rodrigues parameters (3,)."""
    return quaternion_matrix(np.append(1.0 - s @ s, 2.0 * s))


def mrp_rate(s: np.ndarray) -> np.ndarray:
    """Return the (3, 3) map from the angular velocity in body axes to ds/dt; 16/(1+|s|^2)^2 times its transpose inverts it."""
    return 0.25 * ((1.0 - s @ s) * np.eye(3) + 2.0 * skew(s) + 2.0 * np.outer(s, s))
