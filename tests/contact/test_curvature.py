"""The bound of the distance's curvature: with it the solver's block is no smaller than the exact Hessian."""

from __future__ import annotations

import numpy as np
import pytest

from abd.potentials import contact
from abd.potentials.contact import FIRST, ContactParameters, Contacts, Stencil
from abd.potentials.distance import EdgeEdge, PointTriangle, edge_edge, point_triangle

D_HAT = 1e-2
COUNT = 60


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def point_over_face(x: np.ndarray, rng: np.random.Generator, d: float) -> None:
    _, a, b, c = x
    x[0] = rng.dirichlet([2, 2, 2]) @ x[1:] + d * unit(np.cross(b - a, c - a))


def point_beside_edge(x: np.ndarray, rng: np.random.Generator, d: float) -> None:
    _, a, b, c = x
    e, away = unit(b - a), a - c
    x[0] = a + rng.uniform(0.1, 0.9) * (b - a) + d * unit(away - (away @ e) * e)


def crossing_edges(x: np.ndarray, rng: np.random.Generator, d: float) -> None:
    s, t = rng.uniform(0.1, 0.9, 2)
    u, v = x[1] - x[0], x[3] - x[2]
    x[2:] += x[0] + s * u - x[2] - t * v - d * unit(np.cross(u, v))


FEATURES = {
    "face": (point_over_face, Stencil.POINT_TRIANGLE, PointTriangle.P_ABC),
    "edge": (point_beside_edge, Stencil.POINT_TRIANGLE, PointTriangle.P_AB),
    "edges": (crossing_edges, Stencil.EDGE_EDGE, EdgeEdge.A_B),
}


def contacts_of(feature: str, d: float) -> tuple[np.ndarray, Contacts]:
    """Positions (m, 4, 3), equal to the rest positions, and contacts of two bodies at distance d."""
    place, stencil, kind = FEATURES[feature]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(COUNT, 4, 3))
    for points in x:
        place(points, rng, d)
    function = edge_edge if stencil == Stencil.EDGE_EDGE else point_triangle
    assert (function(*x.swapaxes(0, 1))[-1] == kind).all()
    ones, zeros = np.ones(COUNT), np.zeros(COUNT)
    pair = zeros.astype(int), ones.astype(int)
    flags = np.zeros(COUNT, bool)
    return x, Contacts(np.full(COUNT, stencil), *pair, x, np.zeros((COUNT, 4)), zeros, ones, zeros, flags)


def block_of(x: np.ndarray, contacts: Contacts, law: ContactParameters, inertia: float) -> np.ndarray:
    """(m, 24, 24) blocks that the solver assembles, each contact by itself."""
    elements = contact.contact_elements(x, contacts, law, inertia)
    ii, ij, jj = elements.blocks()
    total = np.zeros((len(contacts), 24, 24))
    np.add.at(total, elements.source, np.block([[ii, ij], [ij.transpose(0, 2, 1), jj]]))
    return total


def exact_hessian(x: np.ndarray, contacts: Contacts, law: ContactParameters) -> np.ndarray:
    """(m, 24, 24) exact Hessians, pulled back to the two bodies."""
    J = np.zeros((len(contacts), 4, 3, 2, 12))
    points = np.concatenate([np.ones((len(contacts), 4, 1)), contacts.rest], axis=2)
    second = (1.0 - FIRST[contacts.stencil]).astype(int)
    for m, k, r in np.ndindex(len(contacts), 4, 3):
        J[m, k, r, second[m, k], [r, *range(3 + 3 * r, 6 + 3 * r)]] = points[m, k]
    J = J.reshape(-1, 12, 24)
    return J.transpose(0, 2, 1) @ contact.hessian(x, contacts, law) @ J


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("feature", FEATURES)
def test_curvature_is_bounded(feature, share):
    """Up to the gap over the size of the features, which the bound neglects; without it the block is far too small."""
    x, contacts = contacts_of(feature, share * D_HAT)
    law = ContactParameters(1e6, D_HAT)
    force = np.linalg.norm(contact.gradient(x, contacts, law), axis=1)
    exact = exact_hessian(x, contacts, law)
    bounded, plain = (
        np.linalg.eigvalsh(block_of(x, contacts, law, inertia) - exact)[:, 0] / force for inertia in (0.0, np.inf)
    )
    assert bounded.min() >= -10.0 * share * D_HAT
    assert np.median(plain) <= -1.0


def test_curvature_counts_where_force_outweighs_inertia():
    x, contacts = contacts_of("face", 0.1 * D_HAT)
    law = ContactParameters(1e6, D_HAT)
    count = [len(contact.contact_elements(x, contacts, law, inertia)) for inertia in (0.0, 300.0, 1e3, 3e3, np.inf)]
    assert count[0] == 3 * COUNT and count[-1] == COUNT
    assert count == sorted(count, reverse=True) and len(set(count)) > 2


def test_two_points_and_half_spaces_do_not_bend():
    x = np.tile(np.array([0.2, 0.1, 0.5 * D_HAT]), (1, 4, 1))
    one, zero = np.ones(1), np.zeros(1)
    bodies, flags = (np.zeros(1, int), np.ones(1, int)), np.zeros(1, bool)
    plane = np.array([[0.0, 0.0, 1.0, 0.0]])
    over_plane = Contacts(np.array([Stencil.POINT_PLANE]), *bodies, x, plane, zero, one, zero, flags)
    points = x.copy()
    points[:, 1:] = [0.2, 0.1, 0.0]
    two_points = Contacts(np.array([Stencil.POINT_TRIANGLE]), *bodies, points, 0.0 * plane, zero, one, zero, flags)
    for positions, contacts in ((x, over_plane), (points, two_points)):
        assert len(contact.contact_elements(positions, contacts, ContactParameters(1e6, D_HAT), 0.0)) == 1
