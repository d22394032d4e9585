"""Curvature of the distance, which the Gauss-Newton form of a contact leaves out, bounded by positive terms.

A contact of force ``f = -dE/dd > 0`` adds ``-f d2d/dq2`` to the Hessian of its energy. The distance bends because the
unit normal n turns: by a point that moves along a tangent t, and by an edge E of the feature under it that tips out of
the tangent plane by ``N = n . dE``. To leading order ``-f d2d`` is f times the products ``t N`` for every tangent
direction, and with l the length of the edge

    t N^T + N t^T  <=  t t^T / l + l N N^T

so that two positive terms bound it: a stiffness ``f/l`` of the two contact points along the tangents, and ``f l`` of
the edge against tipping. Point and edge have one tangent, the edge itself; point and face, and two edges, have two,
with l the geometric mean of the two edges' lengths. For two edges at an angle with cosine c, which tip together, the
stiffness is ``f l / (1 - c^2) [[1, -c], [-c, 1]]``. Two points, and a point on a half-space, have none.

The bound matters where the force outweighs the inertia of the bodies; elsewhere it would only slow Newton down. Even
there it can be far above the curvature, which has either sign, so that the solver takes no more of it than it needs
(`abd.backends.reference.regularisation`).
"""

from __future__ import annotations

import numpy as np

from abd.potentials.distance import dot
from abd.potentials.elements import Elements, concatenate

TRANSIENT = 0.05
"""Share of a body's inertia that force times edge length must exceed for the curvature to count."""
STEEPEST = 1e-3
"""Smallest squared sine that two edges are taken to enclose."""


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
        first: (m, 4) 1 where a point belongs to the first body.
        directions: (m, 2, 4) free directions of the closest points' weights, see `distance`.
        n: (m, 3) unit normals; force: (m,) normal forces, the energy's unit over length; 0 leaves a contact out.
        inertia: (m,) smallest moments of the contacts' bodies, in the energy's unit.
        regularisation: (m,) share of the bound to take.

    Returns:
        ``K`` (m, 3, 3), the stiffness of the contact points along the tangents, and the elements of the edges against
        tipping, first and second body as in `first`.
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
    parts = [_together(np.flatnonzero(bends & facing), normal, E, dot(e[:, 0], e[:, 1]))]
    parts += [_alone(np.flatnonzero(bends & free[:, j] & ~facing), normal, E[:, j], owner[:, j]) for j in (0, 1)]
    return K, concatenate(parts)


def _alone(rows: np.ndarray, normal: np.ndarray, E: np.ndarray, owner: np.ndarray) -> Elements:
    """Stiffness of an edge of one body, the first where `owner`, against tipping."""
    Y = _directions(E[rows])
    mine = owner[rows]
    zero, K = np.zeros((len(rows), 3)), normal[rows]
    nothing = np.zeros_like(K)
    K_first, K_second = np.where(mine[:, None, None], K, 0.0), np.where(mine[:, None, None], 0.0, K)
    Y_first, Y_second = np.where(mine[:, None], Y, 0.0), np.where(mine[:, None], 0.0, Y)
    return Elements(rows, zero, zero, K_first, nothing, K_second, Y_first, Y_second)


def _together(rows: np.ndarray, normal: np.ndarray, E: np.ndarray, cosine: np.ndarray) -> Elements:
    """Stiffness of two edges, one of each body, against tipping."""
    c = cosine[rows, None, None]
    K = normal[rows] / np.maximum(1.0 - c * c, STEEPEST)
    zero = np.zeros((len(rows), 3))
    return Elements(rows, zero, zero, K, -c * K, K, _directions(E[rows, 0]), _directions(E[rows, 1]))


def _directions(E: np.ndarray) -> np.ndarray:
    """(m, 4) homogeneous rest coordinates of directions (m, 3)."""
    return np.concatenate([np.zeros((len(E), 1)), E], axis=1)
