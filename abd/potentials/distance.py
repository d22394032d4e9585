"""Closest points and squared distances of point-triangle and edge-edge pairs, with derivatives.

A pair has four points ``x_0 .. x_3``: (p, a, b, c) or (a0, a1, b0, b1). The vector from the second closest point to the
first is ``r = sum_k w_k x_k`` with signed weights of sum zero, and the squared distance is

    D(x) = min over theta of |r(x, theta)|^2,     w = w(theta) affine in theta.

The *type* of a pair determines the free entries of theta at the minimum: none (two points), one (point and edge) or two
(point and triangle, edge and edge). The rows of `directions` are ``dw/dtheta`` of the free entries. For all types, with
``T_j = sum_k directions_jk x_k = dr/dtheta_j``:

    gradient   dD/dx_k = 2 w_k r                                                   (envelope theorem)
    Hessian    2 [ w_k w_l 1 - sum_ij G_ik (T^T T)^-1_ij G_jl^T ],   G_jk = w_k T_j + directions_jk r

(implicit function theorem; r is linear in x and in theta separately). r is orthogonal to all T_j.

Degenerate triangles (a, b, b) and (a, a, a) represent codimensional edges and points. Type numbers are those of ipctk.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from abd.rotations import cross_product
from cuda_kernels.shared.contact import PARALLEL, TIE

SMALLEST = 1e-300
"""Weight of a point that counts as over the inside of a triangle within `TIE`."""


class PointTriangle(IntEnum):
    """Nearest feature of triangle abc to the point p."""

    P_A = 0
    P_B = 1
    P_C = 2
    P_AB = 3
    P_BC = 4
    P_CA = 5
    P_ABC = 6


class EdgeEdge(IntEnum):
    """Nearest features of edges a and b."""

    A0_B0 = 0
    A0_B1 = 1
    A1_B0 = 2
    A1_B1 = 3
    A_B0 = 4
    A_B1 = 5
    A0_B = 6
    A1_B = 7
    A_B = 8


POINT_TRIANGLE_DIRECTIONS = np.zeros((7, 2, 4))
POINT_TRIANGLE_DIRECTIONS[PointTriangle.P_AB, 0] = 0, 1, -1, 0
POINT_TRIANGLE_DIRECTIONS[PointTriangle.P_BC, 0] = 0, 0, 1, -1
POINT_TRIANGLE_DIRECTIONS[PointTriangle.P_CA, 0] = 0, -1, 0, 1
POINT_TRIANGLE_DIRECTIONS[PointTriangle.P_ABC] = (0, 1, -1, 0), (0, 1, 0, -1)

EDGE_EDGE_DIRECTIONS = np.zeros((9, 2, 4))
EDGE_EDGE_DIRECTIONS[[EdgeEdge.A_B0, EdgeEdge.A_B1], 0] = -1, 1, 0, 0
EDGE_EDGE_DIRECTIONS[[EdgeEdge.A0_B, EdgeEdge.A1_B], 0] = 0, 0, 1, -1
EDGE_EDGE_DIRECTIONS[EdgeEdge.A_B] = (-1, 1, 0, 0), (0, 0, 1, -1)


_POINT_TRIANGLE_TYPE = np.array(
    [
        [PointTriangle.P_A, PointTriangle.P_B, PointTriangle.P_AB],
        [PointTriangle.P_B, PointTriangle.P_C, PointTriangle.P_BC],
        [PointTriangle.P_C, PointTriangle.P_A, PointTriangle.P_CA],
    ]
)
_EDGE_EDGE_TYPE = np.array(
    [
        [EdgeEdge.A0_B0, EdgeEdge.A0_B1, EdgeEdge.A0_B],
        [EdgeEdge.A1_B0, EdgeEdge.A1_B1, EdgeEdge.A1_B],
        [EdgeEdge.A_B0, EdgeEdge.A_B1, EdgeEdge.A_B],
    ]
)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(m,) scalar products of the rows of a and b (m, n)."""
    return np.einsum("mi,mi->m", a, b)


def edge_parameter(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(m,) parameters in [0, 1] of the points of segments ab closest to p; 0 for segments of zero length."""
    edge = b - a
    length2 = dot(edge, edge)
    return np.clip(dot(p - a, edge) / np.where(length2 > 0.0, length2, 1.0), 0.0, 1.0)


def _feature(t: np.ndarray) -> np.ndarray:
    """0 at the start of an edge, 1 at its end, 2 between: column of the type tables."""
    return np.where(t == 0.0, 0, np.where(t == 1.0, 1, 2))


def point_triangle(
    p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Closest points of points and triangles, all (m, 3) [m].

    The closest point is inside if the triangle is not degenerate and all three weights of the projection are positive
    (up to `TIE`). Otherwise it is on the first of the nearest edges ab, bc, ca.

    Returns:
        squared distances D (m,) [m^2], weights (m, 3) of the closest point in a, b, c, types (m,) of `PointTriangle`.
    """
    u, v, w = b - a, c - a, p - a
    n = cross_product(u, v)
    n2 = dot(n, n)
    proper = n2 > PARALLEL * dot(u, u) * dot(v, v)
    scale = np.where(proper, n2, 1.0)
    beta = dot(cross_product(w, v), n) / scale
    gamma = dot(cross_product(u, w), n) / scale
    projected = np.stack([1.0 - beta - gamma, beta, gamma], axis=1)
    inside = proper & np.all(projected > -TIE, axis=1)

    rows = np.arange(len(p))
    t = np.stack([edge_parameter(p, a, b), edge_parameter(p, b, c), edge_parameter(p, c, a)], axis=1)
    edge_weights = np.zeros((len(p), 3, 3))
    for k in range(3):
        edge_weights[:, k, k] = 1.0 - t[:, k]
        edge_weights[:, k, (k + 1) % 3] = t[:, k]
    to_edges = np.einsum("mks,msi->mki", edge_weights, np.stack([w, p - b, p - c], axis=1))
    nearest = np.argmin(np.einsum("mki,mki->mk", to_edges, to_edges), axis=1)
    weights = edge_weights[rows, nearest]
    kind = _POINT_TRIANGLE_TYPE[nearest, _feature(t[rows, nearest])]

    kind = np.where(inside, PointTriangle.P_ABC, kind)
    weights = np.where(inside[:, None], np.maximum(projected, SMALLEST), weights)
    r = separation(np.stack([p, a, b, c], axis=1), signed_point_triangle(weights), POINT_TRIANGLE_DIRECTIONS[kind])
    return dot(r, r), weights, kind


def edge_edge(
    a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Closest points of edges a and b, all (m, 3) [m].

    The closest points are inside both edges if these are not parallel and both parameters of the lines are strictly
    within (0, 1). Otherwise they belong to the first of the nearest of (a0, b), (a1, b), (b0, a), (b1, a).

    Returns:
        squared distances D (m,) [m^2], weights in a0, a1 (m, 2) and in b0, b1 (m, 2), types (m,) of `EdgeEdge`.
    """
    u, v, w = a1 - a0, b1 - b0, b0 - a0
    n = cross_product(u, v)
    n2 = dot(n, n)
    crossing = n2 > PARALLEL * dot(u, u) * dot(v, v)
    scale = np.where(crossing, n2, 1.0)
    # the error by n is eps / sin, that of the normal equations eps / sin^2
    s = dot(cross_product(w, v), n) / scale
    t = dot(cross_product(w, u), n) / scale
    inside = crossing & (s > 0.0) & (s < 1.0) & (t > 0.0) & (t < 1.0)

    rows, zero, one = np.arange(len(u)), np.zeros(len(u)), np.ones(len(u))
    s_ends = np.stack([zero, one, edge_parameter(b0, a0, a1), edge_parameter(b1, a0, a1)], axis=1)
    t_ends = np.stack([edge_parameter(a0, b0, b1), edge_parameter(a1, b0, b1), zero, one], axis=1)
    ends = s_ends[:, :, None] * u[:, None] - t_ends[:, :, None] * v[:, None] - w[:, None]
    nearest = np.argmin(np.einsum("mki,mki->mk", ends, ends), axis=1)
    s = np.where(inside, s, s_ends[rows, nearest])
    t = np.where(inside, t, t_ends[rows, nearest])

    weights_a, weights_b = np.stack([1.0 - s, s], axis=1), np.stack([1.0 - t, t], axis=1)
    kind = _EDGE_EDGE_TYPE[_feature(s), _feature(t)]
    x = np.stack([a0, a1, b0, b1], axis=1)
    r = separation(x, signed_edge_edge(weights_a, weights_b), EDGE_EDGE_DIRECTIONS[kind])
    return dot(r, r), weights_a, weights_b, kind


def signed_point_triangle(weights: np.ndarray) -> np.ndarray:
    """(m, 4) signed weights of (p, a, b, c) from the weights (m, 3) in the triangle."""
    return np.concatenate([np.ones((len(weights), 1)), -weights], axis=1)


def signed_edge_edge(weights_a: np.ndarray, weights_b: np.ndarray) -> np.ndarray:
    """(m, 4) signed weights of (a0, a1, b0, b1) from the weights (m, 2) in either edge."""
    return np.concatenate([weights_a, -weights_b], axis=1)


def separation(x: np.ndarray, w: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Vectors r (m, 3) [m] from the second closest points to the first.

    If both parameters are free, r is projected on the common normal ``T_0 x T_1``, which is accurate for small r.

    Args:
        x: (m, 4, 3) points; w: (m, 4) signed weights; directions: (m, 2, 4) of the types.
    """
    local = x - x[:, :1]
    r = np.einsum("mk,mki->mi", w, local)
    tangents = np.einsum("mjk,mki->mji", directions, local)
    n = cross_product(tangents[:, 0], tangents[:, 1])
    n2 = dot(n, n)
    proper = n2 > 0.0
    along = dot(n, r) / np.where(proper, n2, 1.0)
    return np.where(proper[:, None], along[:, None] * n, r)


def gradient(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(m, 12) gradients of D [m] with respect to the four points."""
    return 2.0 * np.einsum("mk,mi->mki", w, r).reshape(-1, 12)


def hessian(x: np.ndarray, r: np.ndarray, w: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(m, 12, 12) exact Hessians of D [-] within the types.

    ``w_k w_l (1 - T (T^T T)^-1 T^T)`` uses the projector on the complement of the T_j (all, a plane, or the common
    normal), which avoids cancellation.
    """
    m = len(x)
    T = np.einsum("mjk,mki->mji", directions, x - x[:, :1])
    free = np.any(directions != 0.0, axis=2)
    n = cross_product(T[:, 0], T[:, 1])
    n2 = dot(n, n)
    t2 = np.einsum("mji,mji->mj", T, T)
    both = free[:, 1]
    one = free[:, 0] & ~both
    inverse = np.zeros((m, 2, 2))
    inverse[one, 0, 0] = 1.0 / t2[one, 0]
    inverse[both, 0, 0] = t2[both, 1] / n2[both]
    inverse[both, 1, 1] = t2[both, 0] / n2[both]
    inverse[both, 0, 1] = inverse[both, 1, 0] = -dot(T[both, 0], T[both, 1]) / n2[both]

    across = np.broadcast_to(np.eye(3), (m, 3, 3)).copy()
    across[one] -= np.einsum("mi,mj->mij", T[one, 0], T[one, 0]) / t2[one, 0, None, None]
    across[both] = np.einsum("mi,mj->mij", n[both], n[both]) / n2[both, None, None]

    mixed = np.einsum("mk,mai,mab,mbl,mj->mkilj", w, T, inverse, directions, r, optimize=True)
    turning = np.einsum("mak,mab,mbl,mi,mj->mkilj", directions, inverse, directions, r, r, optimize=True)
    blocks = np.einsum("mk,ml,mij->mkilj", w, w, across) - mixed - mixed.transpose(0, 3, 4, 1, 2) - turning
    return 2.0 * blocks.reshape(m, 12, 12)
