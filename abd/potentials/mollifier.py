"""Edge-edge mollifier: smooths the distance of nearly parallel edges (Li et al. 2020, section 5.2).

With the edge vectors ``u = a1 - a0``, ``v = b1 - b0`` and ``c = |u x v|^2``

    m(c) = 2 c/eps_x - (c/eps_x)^2  for c < eps_x,  1 beyond;     eps_x = 1e-3 |u_rest|^2 |v_rest|^2

multiplies the barrier of the pair. m and its first derivative are continuous at eps_x.
"""

from __future__ import annotations

import numpy as np

from abd.potentials.distance import dot
from abd.rotations import cross_product

EDGE_SIGNS = np.array([[-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 1.0]])
"""u and v as combinations of (a0, a1, b0, b1)."""


def threshold(rest: np.ndarray) -> np.ndarray:
    """(m,) eps_x [m^4] of edge pairs (a0, a1, b0, b1) with rest positions (m, 4, 3) [m]."""
    u, v = rest[:, 1] - rest[:, 0], rest[:, 3] - rest[:, 2]
    return 1e-3 * dot(u, u) * dot(v, v)


def mollifier(c: np.ndarray, eps_x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(m, dm/dc, d2m/dc2)``, each (m,), at squared cross products c (m,) [m^4] for thresholds eps_x (m,) [m^4]."""
    c, eps_x = np.broadcast_arrays(np.asarray(c, dtype=float), np.asarray(eps_x, dtype=float))
    near = c < eps_x
    eps = np.where(near, eps_x, 1.0)
    ratio = np.where(near, c, 0.0) / eps
    return (
        np.where(near, (2.0 - ratio) * ratio, 1.0),
        np.where(near, 2.0 * (1.0 - ratio) / eps, 0.0),
        np.where(near, -2.0 / eps**2, 0.0),
    )


def cross_squared(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c = |u x v|^2 with its derivatives by the edge vectors.

    Args:
        x: (m, 4, 3) points (a0, a1, b0, b1) [m].

    Returns:
        c (m,) [m^4], ``(dc/du, dc/dv)`` (m, 2, 3) [m^3] and the second derivatives (m, 2, 3, 2, 3) [m^2]:

            dc/du = 2 v x (u x v)          d2c/du2  = 2 (|v|^2 1 - v v^T)
            dc/dv = 2 (u x v) x u          d2c/dudv = 2 (2 u v^T - v u^T - (u.v) 1)
    """
    u, v = x[:, 1] - x[:, 0], x[:, 3] - x[:, 2]
    n = cross_product(u, v)
    uv, vu = np.einsum("mi,mj->mij", u, v), np.einsum("mi,mj->mij", v, u)
    one = np.eye(3)
    second = np.empty((len(x), 2, 3, 2, 3))
    second[:, 0, :, 0] = 2.0 * (dot(v, v)[:, None, None] * one - np.einsum("mi,mj->mij", v, v))
    second[:, 1, :, 1] = 2.0 * (dot(u, u)[:, None, None] * one - np.einsum("mi,mj->mij", u, u))
    second[:, 0, :, 1] = 2.0 * (2.0 * uv - vu - dot(u, v)[:, None, None] * one)
    second[:, 1, :, 0] = second[:, 0, :, 1].transpose(0, 2, 1)
    return dot(n, n), 2.0 * np.stack([cross_product(v, n), cross_product(n, u)], axis=1), second


def cross_squared_points(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c (m,), its gradient (m, 12) and Hessian (m, 12, 12) with respect to the four points x (m, 4, 3)."""
    c, first, second = cross_squared(x)
    gradient = np.einsum("ek,mei->mki", EDGE_SIGNS, first).reshape(-1, 12)
    hessian = np.einsum("ek,fl,meifj->mkilj", EDGE_SIGNS, EDGE_SIGNS, second, optimize=True).reshape(-1, 12, 12)
    return c, gradient, hessian


def value(x: np.ndarray, eps_x: np.ndarray) -> np.ndarray:
    """(m,) mollifiers of edge pairs x (m, 4, 3) [m] with thresholds eps_x (m,) [m^4]."""
    n = cross_product(x[:, 1] - x[:, 0], x[:, 3] - x[:, 2])
    return mollifier(dot(n, n), eps_x)[0]


def gradient(x: np.ndarray, eps_x: np.ndarray) -> np.ndarray:
    """(m, 12) gradients of `value` [1/m]."""
    c, first, _ = cross_squared(x)
    return mollifier(c, eps_x)[1][:, None] * np.einsum("ek,mei->mki", EDGE_SIGNS, first).reshape(-1, 12)


def hessian(x: np.ndarray, eps_x: np.ndarray) -> np.ndarray:
    """(m, 12, 12) exact Hessians of `value` [1/m^2]."""
    c, dc, ddc = cross_squared_points(x)
    _, m1, m2 = mollifier(c, eps_x)
    return m1[:, None, None] * ddc + m2[:, None, None] * np.einsum("mi,mj->mij", dc, dc)
