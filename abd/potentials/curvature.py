"""Curvature of the distance, which the Gauss-Newton form of a contact omits, bounded by positive terms.

A contact of force ``f = -dE/dd > 0`` adds ``-f d2d/dq2`` to the Hessian. The distance has curvature because the unit
normal n rotates: by motion of a point along a tangent t, and by an edge E that tips out of the tangent plane by
``N = n . dE``. To leading order ``-f d2d`` is f times the products ``t N`` for every tangent direction. With the edge
length l

    t N^T + N t^T  <=  t t^T / l + l N N^T

so that two positive terms bound it: a stiffness ``f/l`` of the two contact points along the tangents, and ``f l`` of
the edge against tipping. Point and edge have one tangent, the edge itself. Point and face, and two edges, have two,
with l the geometric mean of the two edge lengths. For two edges at an angle with cosine c the stiffness against tipping
is ``f l / (1 - c^2) [[1, -c], [-c, 1]]``. Two points, and a point on a half-space, have none.

The bound is needed only if the force dominates the inertia of the bodies; otherwise it slows down Newton's method. It
can exceed the curvature, which has either sign, so that the solver weights it
(`cuda_kernels.step.newton`).
"""

from __future__ import annotations

import numpy as np

from abd.potentials.distance import dot
from abd.potentials.elements import Elements
from cuda_kernels.shared.contact import SMALLEST_SQUARED_SINE, TRANSIENT


def curvature(
    x: np.ndarray,
    rest: np.ndarray,
    first: np.ndarray,
    directions: np.ndarray,
    n: np.ndarray,
    force: np.ndarray,
    inertia: np.ndarray,
    regularisation: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, Elements]:
    """Bound of the curvature of m contacts.

    Args:
        x, rest: (m, 4, 3) positions and rest positions of the four points [m].
        first: (m, 4) 1 if a point belongs to the first body.
        directions: (m, 2, 4) free directions of the closest points' weights (`distance`).
        n: (m, 3) unit normals; force: (m,) normal forces, in units of energy over length; 0 for inactive contacts.
        inertia: (m,) smallest moments of the contacts' bodies, in units of energy.
        regularisation: (m,) weight of the bound.

    Returns:
        ``K`` (m, 3, 3), the stiffness of the contact points along the tangents, and the elements of the edges against
        tipping, with first and second body as in `first`.
    """
    free = np.any(directions != 0.0, axis=2)
    edges, rest_edges = (np.einsum("mjk,mki->mji", directions, points) for points in (x, rest))
    lengths = np.linalg.norm(rest_edges, axis=2)
    both = free[:, 1]
    length = np.where(both, np.sqrt(lengths[:, 0] * lengths[:, 1]), lengths[:, 0])
    bends = free[:, 0] & (force * length > TRANSIENT * inertia)

    force = regularisation * force
    e = edges / np.where(free, np.linalg.norm(edges, axis=2), 1.0)[:, :, None]
    along = np.einsum("mi,mj->mij", e[:, 0], e[:, 0])
    across = np.eye(3) - np.einsum("mi,mj->mij", n, n)
    tangent = np.where(both[:, None, None], across, along)
    K = np.where(bends, force / np.where(bends, length, 1.0), 0.0)[:, None, None] * tangent

    normal = (force * length)[:, None, None] * np.einsum("mi,mj->mij", n, n)
    E = rest_edges / np.where(free, lengths, 1.0)[:, :, None]
    owner = np.einsum("mjk,mk->mj", np.abs(directions), first) > 0.0
    facing = both & (owner[:, 0] != owner[:, 1])
    face = both & ~facing
    square = E[face, 1] - dot(E[face, 0], E[face, 1])[:, None] * E[face, 0]
    E[face, 1] = square / np.linalg.norm(square, axis=1)[:, None]
    parts = [_edge_pair_elements(np.flatnonzero(bends & facing), normal, E, dot(e[:, 0], e[:, 1]))]
    parts += [
        _edge_elements(np.flatnonzero(bends & free[:, j] & ~facing), normal, E[:, j], owner[:, j]) for j in (0, 1)
    ]
    return K, Elements.joined(*parts)


def _edge_elements(rows: np.ndarray, normal: np.ndarray, E: np.ndarray, owner: np.ndarray) -> Elements:
    """Stiffness of an edge of one body against tipping; the first body if `owner`."""
    Y = _directions(E[rows])
    mine = owner[rows]
    zero, K = np.zeros((len(rows), 3)), normal[rows]
    nothing = np.zeros_like(K)
    K_first, K_second = np.where(mine[:, None, None], K, 0.0), np.where(mine[:, None, None], 0.0, K)
    Y_first, Y_second = np.where(mine[:, None], Y, 0.0), np.where(mine[:, None], 0.0, Y)
    return Elements(rows, zero, zero, K_first, nothing, K_second, Y_first, Y_second)


def _edge_pair_elements(rows: np.ndarray, normal: np.ndarray, E: np.ndarray, cosine: np.ndarray) -> Elements:
    """Stiffness of two edges, one per body, against tipping."""
    c = cosine[rows, None, None]
    K = normal[rows] / np.maximum(1.0 - c * c, SMALLEST_SQUARED_SINE)
    zero = np.zeros((len(rows), 3))
    return Elements(rows, zero, zero, K, -c * K, K, _directions(E[rows, 0]), _directions(E[rows, 1]))


def _directions(E: np.ndarray) -> np.ndarray:
    """(m, 4) homogeneous rest coordinates of directions (m, 3)."""
    return np.concatenate([np.zeros((len(E), 1)), E], axis=1)
