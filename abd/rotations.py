"""Rotations and rigid motions: exponentials, logarithms, quaternions and modified Rodrigues parameters.

Twists are ``(v; w)``, linear before angular, and wrenches ``(f; t)``. A *body* twist V of a pose T has its components in
the moving frame: ``dT/dt = T hat(V)``. Quaternions are (w, x, y, z); angles are radians.
"""

from __future__ import annotations

import numpy as np

SMALL = 0.05
"""Angle [rad] below which series replace quotients that lose digits; their error there is below 1e-16."""


def skew(w: np.ndarray) -> np.ndarray:
    """(3, 3) matrix of ``x -> w x x``."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def axial(W: np.ndarray) -> np.ndarray:
    """(3,) vector of the skew part of W (3, 3)."""
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def pose(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(4, 4) of a rotation and a position."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def inverse(T: np.ndarray) -> np.ndarray:
    """(4, 4) inverse of a rigid pose."""
    return pose(T[:3, :3].T, -T[:3, :3].T @ T[:3, 3])


def adjoint(T: np.ndarray) -> np.ndarray:
    """(6, 6) that turns twists with components in C into twists with components in D, T = T_CD.

    Its transpose turns wrenches in D into wrenches in C.
    """
    R = T[:3, :3]
    return np.block([[R, skew(T[:3, 3]) @ R], [np.zeros((3, 3)), R]])


def cross(V: np.ndarray) -> np.ndarray:
    """(6, 6) matrix of the bracket of twists, ``[V, U] = cross(V) U``."""
    v, w = skew(V[:3]), skew(V[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def exp(twist: np.ndarray) -> np.ndarray:
    """(4, 4) pose reached by unit time of a constant body twist (6,)."""
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
    """(6,) twist of least angle, at most pi, with ``exp(log(T)) = T``."""
    w = rotation_vector(T[:3, :3])
    W, p = skew(w), T[:3, 3]
    _, second, _ = _log_coefficients(np.linalg.norm(w))
    return np.concatenate([p - 0.5 * W @ p + second * (W @ (W @ p)), w])


def log_rate(twist: np.ndarray) -> np.ndarray:
    """(6, 6) that turns the body twist of T into the rate of ``log(T)``; its last 3x3 block is Bortz' equation.

    ``1 + ad/2 + A ad^2 + B ad^4`` with A and B of Bullo and Murray, "Proportional derivative (PD) control on the
    Euclidean group", 1995.
    """
    ad = cross(twist)
    A, _, B = _log_coefficients(np.linalg.norm(twist[3:]))
    square = ad @ ad
    return np.eye(6) + 0.5 * ad + A * square + B * (square @ square)


def _log_coefficients(angle: float) -> tuple[float, float, float]:
    """A and B of `log_rate`, and between them ``(1 - a)/angle^2`` with ``a = angle/2 cot(angle/2)``."""
    s = angle**2
    if angle < SMALL:
        return 1 / 12 - s**2 / 30240, 1 / 12 + s / 720 + s**2 / 30240, -1 / 720 - s / 15120 - s**2 / 403200
    half = 0.5 * angle
    a, b = half / np.tan(half), (half / np.sin(half)) ** 2
    A = (2.0 * (1.0 - a) + 0.5 * (a - b)) / s
    B = ((1.0 - a) + 0.5 * (a - b)) / s**2
    return A, (1.0 - a) / s, B


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """(3,) axis times angle in [0, pi] [rad]."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_rotvec()


def least_turn(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(3, 3) least rotation that takes a unit vector u (3,) to another one, v."""
    axis, cosine = np.cross(u, v), float(u @ v)
    if cosine < -1.0 + 1e-12:
        other = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
        other /= np.linalg.norm(other)
        return 2.0 * np.outer(other, other) - np.eye(3)
    K = skew(axis)
    return np.eye(3) + K + K @ K / (1.0 + cosine)


def quaternion(R: np.ndarray) -> np.ndarray:
    """(4,) unit quaternion with w >= 0."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z]) * (1.0 if w >= 0.0 else -1.0)


def quaternion_matrix(q: np.ndarray) -> np.ndarray:
    """(3, 3) rotation of a quaternion of any length but zero."""
    w, u = q[0], q[1:]
    return np.eye(3) + (2.0 / (q @ q)) * (w * skew(u) + skew(u) @ skew(u))


def quaternion_rate(q: np.ndarray) -> np.ndarray:
    """(4, 3) that turns the angular velocity in body axes into dq/dt; 4/|q|^2 times its transpose is the way back."""
    w, x, y, z = q
    return 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


def mrp(R: np.ndarray) -> np.ndarray:
    """(3,) modified Rodrigues parameters ``axis tan(angle/4)`` of length at most 1."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_mrp()


def mrp_matrix(s: np.ndarray) -> np.ndarray:
    """(3, 3) rotation of modified Rodrigues parameters."""
    return quaternion_matrix(np.append(1.0 - s @ s, 2.0 * s))


def mrp_rate(s: np.ndarray) -> np.ndarray:
    """(3, 3) that turns the angular velocity in body axes into ds/dt; 16/(1+|s|^2)^2 times its transpose inverts it."""
    return 0.25 * ((1.0 - s @ s) * np.eye(3) + 2.0 * skew(s) + 2.0 * np.outer(s, s))
