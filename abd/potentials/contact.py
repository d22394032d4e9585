"""Contact potential of candidate pairs: barriers of squared distances.

    E(x) = sum over candidates of  kappa s m(c) b(D)

b is the barrier of `barrier.py`, D the squared distance of `distance.py` (half-spaces: the squared height), m the
edge-edge mollifier of `mollifier.py` (1 for other pairs) and s the stiffness factor of the pair's materials. Without
`Weights` every candidate counts once. Candidates that reduce to the same pair of points, or of point and edge, then
count repeatedly; the sum is the barrier potential of Li et al. 2020 as in ipctk. With the weights of
`abd.contact.minima` every local minimum of the distance counts once, and m b(D) becomes a combination of barriers.

`gradient` and `hessian` are exact. `contact_elements` returns the positive semidefinite Gauss-Newton form of the
solver, per contact with unit normal n and distance d

    dE/dd n,    k n n^T    with  k = max(0, d2E/dd2) = max(0, kappa s m (4 D b'' + 2 b'))

which treats d as linear in the bodies. The curvature of d, times dE/dd < 0, is bounded by positive terms
(`curvature.py`) or omitted. Contacts with negative weight in a combination have dE/dd > 0; the product with the
positive curvature of d is used unchanged (`_across`). With ``e = u x v``, the cross product of its edge vectors, a
nearly parallel pair adds the same for ``c = |e|^2``:

    kappa s b m' dc/du, kappa s b m' dc/dv,    sigma (de)^T (de)    with  sigma = 2 kappa s b m' >= 0
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from abd.potentials import distance, mollifier
from abd.potentials.barrier import barrier
from abd.potentials.curvature import curvature
from abd.potentials.distance import dot
from abd.potentials.elements import Elements
from abd.tables import Table


class Stencil(IntEnum):
    """Kind of the four points of a contact; `FIRST` assigns them to bodies."""

    POINT_TRIANGLE = 0
    EDGE_EDGE = 1
    POINT_PLANE = 2


FIRST = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
"""(3, 4) 1 if a point of a stencil belongs to the first body, 0 if it belongs to the second."""


@dataclass(frozen=True)
class ContactParameters:
    """Stiffness kappa [J/m^4] ([J/m^2] for "cubic"), activation distance [m], scalar or (m,); name of the barrier."""

    kappa: np.ndarray | float
    d_hat: np.ndarray | float
    barrier: str = "log"

    def __getitem__(self, rows: np.ndarray) -> ContactParameters:
        """Parameters of selected contacts."""
        kappa, d_hat = (one if np.ndim(one) == 0 else one[rows] for one in (self.kappa, self.d_hat))
        return ContactParameters(kappa, d_hat, self.barrier)


@dataclass(frozen=True)
class Contacts(Table):
    """m candidate pairs for evaluation.

    Attributes:
        stencil: (m,) of `Stencil`.
        first, second: (m,) bodies of the first and the second primitive.
        rest: (m, 4, 3) rest coordinates of the four points in their body frames [m]: (p, a, b, c), (a0, a1, b0, b1) or,
            with a half-space, four times p.
        plane: (m, 4) unit normal and offset of the half-space [m]; unused for other stencils.
        xi: (m,) separation [m].
        stiffness: (m,) factor on kappa [-].
        mu: (m,) coefficient of friction [-].
        flipped: (m,) whether the first primitive belongs to body j of the body pair (i, j).
    """

    stencil: np.ndarray
    first: np.ndarray
    second: np.ndarray
    rest: np.ndarray
    plane: np.ndarray
    xi: np.ndarray
    stiffness: np.ndarray
    mu: np.ndarray
    flipped: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """(m, 4) body of every point."""
        return np.where(FIRST[self.stencil] > 0.0, self.first[:, None], self.second[:, None])

    def positions(self, q: np.ndarray) -> np.ndarray:
        """(m, 4, 3) positions ``p + A X`` [m] of the points in the state q (n, 12)."""
        owners = self.owners
        maps = q[:, 3:].reshape(-1, 3, 3)[owners]
        return q[owners, :3] + np.einsum("mkij,mkj->mki", maps, self.rest)


@dataclass(frozen=True)
class Weights:
    """Weights of contacts in a combination of barriers, all (m,).

    Attributes:
        force: derivative of the combination by the contact's barrier, without its mollifier [-].
        value: the combination that the contact's mollifier multiplies, in units of the barrier; energies are its sum.
        item: item of the contact; the parts of one item share friction.
    """

    force: np.ndarray
    value: np.ndarray
    item: np.ndarray


@dataclass(frozen=True)
class Closest:
    """Closest points of contacts.

    Attributes:
        r: (m, 3) vector from the second closest point to the first [m]; 0 below a half-space's surface.
        D: (m,) squared distance [m^2].
        w: (m, 4) signed weights of the points.
        directions: (m, 2, 4) free directions of the weights, see `distance`.
    """

    r: np.ndarray
    D: np.ndarray
    w: np.ndarray
    directions: np.ndarray


def closest(x: np.ndarray, contacts: Contacts) -> Closest:
    """Closest points of the contacts at positions x (m, 4, 3) [m]."""
    m = len(contacts)
    w, directions = np.zeros((m, 4)), np.zeros((m, 2, 4))
    r = np.zeros((m, 3))

    triangle = contacts.stencil == Stencil.POINT_TRIANGLE
    if triangle.any():
        _, weights, kind = distance.point_triangle(*x[triangle].swapaxes(0, 1))
        w[triangle] = distance.signed_point_triangle(weights)
        directions[triangle] = distance.POINT_TRIANGLE_DIRECTIONS[kind]

    edges = contacts.stencil == Stencil.EDGE_EDGE
    if edges.any():
        _, weights_a, weights_b, kind = distance.edge_edge(*x[edges].swapaxes(0, 1))
        w[edges] = distance.signed_edge_edge(weights_a, weights_b)
        directions[edges] = distance.EDGE_EDGE_DIRECTIONS[kind]

    plane = contacts.stencil == Stencil.POINT_PLANE
    solid = ~plane
    r[solid] = distance.separation(x[solid], w[solid], directions[solid])
    w[plane, 0] = 1.0
    r[plane] = np.maximum(heights(x[plane], contacts.plane[plane]), 0.0)[:, None] * contacts.plane[plane, :3]
    return Closest(r, dot(r, r), w, directions)


def heights(x: np.ndarray, plane: np.ndarray) -> np.ndarray:
    """(m,) heights ``normal . x_0 - offset`` [m] of the first points of x (m, 4, 3) above planes (m, 4)."""
    return dot(x[:, 0], plane[:, :3]) - plane[:, 3]


def thresholds(contacts: Contacts) -> np.ndarray:
    """(m,) mollifier thresholds eps_x [m^4]; 0 (no mollifier) except for edge-edge pairs."""
    return np.where(contacts.stencil == Stencil.EDGE_EDGE, mollifier.threshold(contacts.rest), 0.0)


def energy(x: np.ndarray, contacts: Contacts, parameters: ContactParameters) -> np.ndarray:
    """(m,) energies [J] at positions x (m, 4, 3) [m]; inf at or below the separation."""
    b, _, _ = barrier(parameters.barrier, closest(x, contacts).D, parameters.d_hat, contacts.xi)
    m = mollifier.value(x, thresholds(contacts))
    finite = np.isfinite(b)
    return np.where(finite, parameters.kappa * contacts.stiffness * m * np.where(finite, b, 0.0), np.inf)


def gradient(
    x: np.ndarray, contacts: Contacts, parameters: ContactParameters, weights: Weights | None = None
) -> np.ndarray:
    """(m, 12) exact gradients of `energy`, or of the combination with weights, by the four points [N]."""
    near = closest(x, contacts)
    b, b1, _ = barrier(parameters.barrier, near.D, parameters.d_hat, contacts.xi)
    eps_x = thresholds(contacts)
    b = np.where(np.isfinite(b), b, 0.0)
    if weights is not None:
        b, b1 = weights.value, weights.force * b1
    by_distance = (mollifier.value(x, eps_x) * b1)[:, None] * distance.gradient(near.r, near.w)
    by_angle = b[:, None] * mollifier.gradient(x, eps_x)
    return (parameters.kappa * contacts.stiffness)[:, None] * (by_distance + by_angle)


def hessian(
    x: np.ndarray, contacts: Contacts, parameters: ContactParameters, weights: Weights | None = None,
    near: Closest | None = None,
) -> np.ndarray:  # fmt: skip
    """(m, 12, 12) exact Hessians of `energy` [N/m], indefinite in general; with weights, derivatives of `gradient` without
    those of the weights.
    """
    near = closest(x, contacts) if near is None else near
    b, b1, b2 = barrier(parameters.barrier, near.D, parameters.d_hat, contacts.xi)
    b = np.where(np.isfinite(b), b, 0.0)
    if weights is not None:
        b, b1, b2 = weights.value, weights.force * b1, weights.force * b2
    b, b1, b2 = (part[:, None, None] for part in (b, b1, b2))
    eps_x = thresholds(contacts)
    m = mollifier.value(x, eps_x)[:, None, None]
    dm, dD = mollifier.gradient(x, eps_x), distance.gradient(near.r, near.w)
    mixed = np.einsum("mi,mj->mij", dm, dD)
    total = b * mollifier.hessian(x, eps_x) + b1 * mixed.transpose(0, 2, 1)
    if weights is None:
        total += b1 * mixed
    total += m * (b1 * _distance_hessian(x, contacts, near) + b2 * np.einsum("mi,mj->mij", dD, dD))
    return (parameters.kappa * contacts.stiffness)[:, None, None] * total


def _distance_hessian(x: np.ndarray, contacts: Contacts, near: Closest) -> np.ndarray:
    """(m, 12, 12) Hessians of D; ``2 n n^T`` for half-spaces."""
    second = distance.hessian(x, near.r, near.w, near.directions)
    plane = contacts.stencil == Stencil.POINT_PLANE
    n = contacts.plane[plane, :3]
    second[plane] = 0.0
    second[plane, :3, :3] = 2.0 * np.einsum("mi,mj->mij", n, n)
    return second


def contact_elements(
    x: np.ndarray,
    contacts: Contacts,
    parameters: ContactParameters,
    inertia: np.ndarray | float = np.inf,
    regularisation: np.ndarray | float = 1.0,
    weights: Weights | None = None,
) -> Elements:
    """Elements of the active contacts in Gauss-Newton form (module docstring).

    Args:
        x: (m, 4, 3) positions [m]; contacts: m candidates, active or not.
        inertia: (m,) smallest moments of the contacts' bodies [kg m^2], for kappa equal to kappa_c c h^2; inf omits the
            curvature of the distance.
        regularisation: (m,) weight of the bound of that curvature, and fraction of negative stiffnesses that is omitted
            (`cuda_kernels.step.newton`).
        weights: of the contacts in a combination of barriers; contacts of weight 0 are inactive.

    Returns:
        One element per active contact, in their order, then those of nearly parallel edge-edge contacts and of
        curvatures. i and j are the bodies of the body pair (first and second exchanged if `Contacts.flipped`).
    """
    near = closest(x, contacts)
    b, b1, b2 = barrier(parameters.barrier, near.D, parameters.d_hat, contacts.xi)
    kappa = parameters.kappa * contacts.stiffness
    c, dc, _ = mollifier.cross_squared(x)
    eps_x = thresholds(contacts)
    m, m1, _ = mollifier.mollifier(c, eps_x)
    active = (b > 0.0) & np.isfinite(b)
    if weights is None:
        one = np.ones(len(contacts))
        weights = Weights(one, np.where(active, b, 0.0), np.arange(len(one)))
    else:
        active &= weights.force != 0.0

    d = np.sqrt(near.D)
    n = near.r / np.where(active, d, 1.0)[:, None]
    by_distance = 2.0 * kappa * weights.force * m * d * b1
    stiffness = weights.force * np.maximum(kappa * m * (4.0 * near.D * b2 + 2.0 * b1), 0.0)
    # regularisation reduces the negative stiffness of contacts with negative weight
    stiffness = np.where(stiffness < 0.0, (1.0 - regularisation) * stiffness, stiffness)
    by_angle = kappa * np.where(active, weights.value, 0.0) * m1
    force = np.where(active & (c >= eps_x), np.maximum(-by_distance, 0.0), 0.0)

    tangential, tipping = curvature(
        x, contacts.rest, FIRST[contacts.stencil], near.directions, n, force, inertia, regularisation
    )
    pull = np.where(active, np.maximum(by_distance, 0.0), 0.0)
    K = stiffness[:, None, None] * np.einsum("mi,mj->mij", n, n) + tangential + _across(x, near, n, pull)
    rows, ends = np.flatnonzero(active), homogeneous(contacts, near.w)
    f = by_distance[rows, None] * n[rows]
    plain = Elements.between(rows, f, K[rows], *(Y[rows] for Y in ends))
    parallel = _angle_elements(x, dc, contacts, by_angle, np.flatnonzero(active & (m1 > 0.0)))
    elements = Elements.joined(plain, parallel, tipping)
    return elements.exchanged(contacts.flipped[elements.source])


def _across(x: np.ndarray, near: Closest, n: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """(m, 3, 3) stiffnesses perpendicular to the normals n (m, 3) of contacts with attraction ``dE/dd`` (m,) [N]; else
    0.

    The distance d of a point from an edge along e has the curvature ``(1 - n n^T - e e^T) / d``, that of two points
    ``(1 - n n^T) / d``. The distances of a point from a face, and of two lines, have none.
    """
    free = np.any(near.directions != 0.0, axis=2)
    rows = np.flatnonzero((pull > 0.0) & ~free[:, 1])
    edges = np.einsum("mk,mki->mi", near.directions[rows, 0], x[rows])
    e = edges / np.where(free[rows, 0], np.linalg.norm(edges, axis=1), 1.0)[:, None]
    plane = np.eye(3) - np.einsum("mi,mj->mij", n[rows], n[rows]) - np.einsum("mi,mj->mij", e, e)
    K = np.zeros((len(pull), 3, 3))
    K[rows] = (pull[rows] / np.sqrt(near.D[rows]))[:, None, None] * plane
    return K


def homogeneous(contacts: Contacts, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, 4) homogeneous rest coordinates of the closest points on the first and second bodies; 0 on a half-space."""
    points = np.concatenate([np.ones((len(contacts), 4, 1)), contacts.rest], axis=2)
    first = FIRST[contacts.stencil]
    return np.einsum("mk,mki->mi", first * w, points), np.einsum("mk,mki->mi", (first - 1.0) * w, points)


def _angle_elements(
    x: np.ndarray, dc: np.ndarray, contacts: Contacts, by_angle: np.ndarray, rows: np.ndarray
) -> Elements:
    """Mollifier elements of the nearly parallel contacts `rows`.

    With ``e = u x v``: ``de = -[v]_x du + [u]_x dv``, and ``[a]_x [b]_x = b a^T - (a.b) 1`` gives the blocks
    ``|v|^2 1 - v v^T``, ``u v^T - (u.v) 1`` and ``|u|^2 1 - u u^T``.
    """
    u, v = x[rows, 1] - x[rows, 0], x[rows, 3] - x[rows, 2]
    one = np.eye(3)
    sigma = 2.0 * by_angle[rows, None, None]
    K_uu = sigma * (dot(v, v)[:, None, None] * one - np.einsum("mi,mj->mij", v, v))
    K_uv = sigma * (np.einsum("mi,mj->mij", u, v) - dot(u, v)[:, None, None] * one)
    K_vv = sigma * (dot(u, u)[:, None, None] * one - np.einsum("mi,mj->mij", u, u))
    rest = contacts.rest[rows]
    Y_u, Y_v = np.zeros((len(rows), 4)), np.zeros((len(rows), 4))
    Y_u[:, 1:], Y_v[:, 1:] = rest[:, 1] - rest[:, 0], rest[:, 3] - rest[:, 2]
    f_u, f_v = by_angle[rows, None] * dc[rows, 0], by_angle[rows, None] * dc[rows, 1]
    return Elements(rows, f_u, f_v, K_uu, K_uv, K_vv, Y_u, Y_v)
