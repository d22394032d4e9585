"""Conservative advancement is safe against ipctk and dense sampling, and not more careful than stated."""

from dataclasses import replace

import numpy as np
import pytest

from abd.contact.ccd import time_of_impact
from abd.contact.path import Path, direction_path, standing
from abd.potentials.contact import Contacts, Stencil, closest
from abd.rotations import axial, skew
from cuda_kernels.shared.contact import FINAL_FRACTION

ipctk = pytest.importorskip("ipctk")

STENCILS = (Stencil.POINT_TRIANGLE, Stencil.EDGE_EDGE, Stencil.POINT_PLANE)


def one_body_each(seed: int, count: int, stencil: Stencil, xi: float = 0.0) -> tuple[np.ndarray, Contacts]:
    """States (2 count, 12) of bodies around the origin and one contact between bodies 2k and 2k + 1 each."""
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(count, 4, 3))
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    if stencil == Stencil.POINT_PLANE:
        rest[:] = rest[:, :1]
    contacts = Contacts(
        stencil=np.full(count, stencil), first=2 * np.arange(count), second=2 * np.arange(count) + 1, rest=rest,
        plane=np.column_stack([normals, np.full(count, -5.0)]), xi=np.full(count, xi), stiffness=np.ones(count),
        mu=np.zeros(count), flipped=np.zeros(count, bool),
    )
    A = np.eye(3) + 0.2 * rng.normal(size=(2 * count, 3, 3))
    p = rng.normal(size=(2 * count, 3))
    if stencil == Stencil.POINT_PLANE:
        A[1::2], p[1::2] = np.eye(3), 0.0
    return np.concatenate([p, A.reshape(-1, 9)], axis=1), contacts


def radii(q: np.ndarray, contacts: Contacts) -> np.ndarray:
    """(n,) largest |A X| of every body's points."""
    result = np.zeros(len(q))
    arms = np.einsum("mkij,mkj->mki", q[contacts.owners, 3:].reshape(-1, 4, 3, 3), contacts.rest)
    np.maximum.at(result, contacts.owners, np.linalg.norm(arms, axis=2))
    return result


def approaching(seed: int, count: int, stencil: Stencil, turn: float, strain: float, xi: float = 0.0):
    """Paths that lead the first body towards the second, past it or into it."""
    rng = np.random.default_rng(seed + 1000)
    q, contacts = one_body_each(seed, count, stencil, xi)
    near = closest(contacts.positions(q), contacts)
    direction = np.zeros((2 * count, 12))
    direction[0::2, :3] = -near.r * rng.uniform(0.5, 2.0, size=(count, 1)) + 0.4 * rng.normal(size=(count, 3))
    w = turn * rng.normal(size=(2 * count, 3))
    D = skew(w) + strain * rng.normal(size=(2 * count, 3, 3))
    direction[:, 3:] = (D @ q[:, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
    if stencil == Stencil.POINT_PLANE:
        direction[1::2] = 0.0
    turning = np.broadcast_to(np.eye(3) * (turn > 0.0), (2 * count, 3, 3))
    path = direction_path(q, direction, turning, radii(q, contacts))
    keep = np.sqrt(near.D) > xi
    return path, contacts[keep]


def gaps(path: Path, contacts: Contacts, alpha: float) -> np.ndarray:
    return np.sqrt(closest(contacts.positions(path.samples(np.array([alpha]))[0]), contacts).D) - contacts.xi


def gaps_at(path: Path, contacts: Contacts, alpha: np.ndarray) -> np.ndarray:
    """Gaps of every contact at its own alpha."""
    owners, times = contacts.owners.ravel(), np.repeat(alpha, 4)
    x = path.origins(owners, times) + (path.maps(owners, times) @ contacts.rest.reshape(-1, 3, 1))[:, :, 0]
    return np.sqrt(closest(x.reshape(-1, 4, 3), contacts).D) - contacts.xi


@pytest.mark.parametrize("xi", [0.0, 0.02])
@pytest.mark.parametrize("stencil", STENCILS[:2])
def test_straight_paths_never_exceed_the_exact_time(stencil, xi):
    path, contacts = approaching(0, 150, stencil, turn=0.0, strain=0.3, xi=xi)
    assert np.all(path.bend == 0.0)
    toi = time_of_impact(path, contacts)
    start, end = contacts.positions(path.samples(np.array([0.0]))[0]), contacts.positions(path.samples(np.array([1.0]))[0])
    method = ipctk.TightInclusionCCD(tolerance=1e-7)
    detect = method.point_triangle_ccd if stencil == Stencil.POINT_TRIANGLE else method.edge_edge_ccd
    cube = xi / np.sqrt(3.0)  # ipctk's separation is that of boxes: farther apart than xi is farther than this
    hits = 0
    for k in range(len(contacts)):
        stopped = start[k] + toi[k] * (end[k] - start[k])
        assert not detect(*start[k], *stopped, min_distance=cube)[0]
        if detect(*start[k], *end[k], min_distance=cube)[0]:
            hits += 1
            assert toi[k] < 1.0
    assert 20 < hits < len(contacts)
    lowest = np.min([gaps_at(path, contacts, share * toi) for share in np.linspace(0, 1, 100)], axis=0)
    assert np.all(lowest > 0.0)
    initial, left = gaps(path, contacts, 0.0), gaps_at(path, contacts, toi)
    early = toi < 1.0
    assert np.all(left[early] <= FINAL_FRACTION * initial[early] * (1 + 1e-9))


@pytest.mark.parametrize("turn", [0.3, 1.5])
@pytest.mark.parametrize("stencil", STENCILS)
def test_arcs_against_dense_sampling(stencil, turn):
    path, contacts = approaching(1, 120, stencil, turn=turn, strain=0.15, xi=0.01)
    toi = time_of_impact(path, contacts)
    initial, left = gaps(path, contacts, 0.0), gaps_at(path, contacts, toi)
    lowest = np.min([gaps_at(path, contacts, share * toi) for share in np.linspace(0, 1, 300)], axis=0)
    assert np.all(lowest > 0.0)
    early = toi < 1.0
    assert 10 < np.count_nonzero(early) < len(contacts)
    assert np.all(left[early] <= FINAL_FRACTION * initial[early] * (1 + 1e-9))


def test_half_space_is_closed_form_on_straight_paths():
    path, contacts = approaching(2, 200, Stencil.POINT_PLANE, turn=0.0, strain=0.2)
    toi = time_of_impact(path, contacts, iterations=2)
    before, after = gaps(path, contacts, 0.0), contacts.positions(path.samples(np.array([1.0]))[0])[:, 0]
    height = np.einsum("mi,mi->m", after, contacts.plane[:, :3]) - contacts.plane[:, 3]
    exact = np.where(height < before, before / np.where(height < before, before - height, 1.0), np.inf)
    assert np.all(toi[exact > 1.0 / (1.0 - FINAL_FRACTION)] == 1.0)
    cut = exact < 1.0
    assert np.count_nonzero(cut) > 20
    assert np.all(toi[cut] >= (1.0 - FINAL_FRACTION) * exact[cut] * (1 - 1e-9)) and np.all(toi[cut] < exact[cut])


@pytest.mark.parametrize("turning", ["together", "on one another"])
@pytest.mark.parametrize("stencil", STENCILS[:2])
def test_rotation_at_small_gaps_is_accepted(stencil, turning):
    """Motions at a constant gap are not limited: common rotation, and edges that rotate on each other."""
    q, contacts = one_body_each(7, 400, stencil)
    q[1::2, :3] = q[0::2, :3]
    near = closest(contacts.positions(q), contacts)
    distance = np.sqrt(near.D)
    n, gap = near.r / distance[:, None], 1e-4
    away = q[0::2, 3:].reshape(-1, 3, 3)
    shift = np.linalg.solve(away, ((gap - distance)[:, None] * n)[:, :, None])[:, None, :, 0]
    first = contacts.owners == contacts.first[:, None]
    contacts = replace(contacts, rest=contacts.rest + np.where(first[:, :, None], shift, 0.0))
    w = 0.2 * n if turning == "on one another" else 0.2 * np.random.default_rng(8).normal(size=n.shape)
    direction = np.zeros_like(q)
    for side in (0, 1) if turning == "together" else (0,):
        direction[side::2, 3:] = (skew(w) @ q[side::2, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
    path = direction_path(q, direction, np.broadcast_to(np.eye(3), (len(q), 3, 3)), radii(q, contacts))
    lowest = np.min([gaps(path, contacts, share) for share in np.linspace(0, 1, 100)], axis=0)
    stays = lowest > 0.9 * gap
    assert np.count_nonzero(stays) > 100
    assert np.mean(time_of_impact(path, contacts, iterations=256)[stays] == 1.0) > 0.95


@pytest.mark.parametrize(
    ("first", "second", "gap", "angle"),
    [
        (1.0, 1.0, 1e-3, 0.0), (1.0, 1.0, 1e-6, 0.0), (0.01, 100.0, 1e-6, 1e-6), (0.01, 100.0, 1e-8, 1e-4),
        (0.05, 10.0, 1e-8, 1e-6), (1.0, 1.0, 1e-6, 0.5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("turn", [0.0, 1e-7, 1e-6])
def test_almost_parallel_or_unequal_edges_stop_before_contact(first, second, gap, angle, turn):
    """Edges that approach each other in any pose stop, also where the triple product consists of rounding."""
    count, rng = 100, np.random.default_rng(3)
    frames = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    x = np.zeros((count, 4, 3))
    x[:, 0, 0], x[:, 1, 0] = -0.4 * first, 0.6 * first
    x[:, 2:, 0] = np.array([-0.5, 0.5]) * second * np.cos(angle)
    x[:, 2:, 1] = np.array([-0.5, 0.5]) * second * np.sin(angle)
    x[:, :2, 2] = gap
    rest = x @ frames.transpose(0, 2, 1)
    _, contacts = one_body_each(3, count, Stencil.EDGE_EDGE)
    contacts = replace(contacts, rest=rest)
    q = np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (2 * count, 1))
    direction = np.zeros_like(q)
    direction[0::2, :3] = -4.0 * gap * frames[:, :, 2]
    w = turn * np.repeat(rng.normal(size=(count, 3)), 2, axis=0)
    direction[:, 3:] = skew(w).reshape(-1, 9)
    path = direction_path(q, direction, np.broadcast_to(np.eye(3), (2 * count, 3, 3)), radii(q, contacts))
    toi = time_of_impact(path, contacts)
    assert np.all(toi < 0.25 * (1 + 1e-3 + 100.0 * turn))
    assert np.all(gaps_at(path, contacts, toi) > 0.0)


def sliding() -> tuple[Path, Contacts]:
    """A point and an edge gliding 1 m along a triangle and an edge at a gap of 10 micrometres."""
    gap = 1e-5
    triangle = [[-2.0, -2, 0], [2, -2, 0], [0, 3, 0]]
    rest = np.array([[[0, 0, gap], *triangle], [[-0.3, 0, gap], [0.3, 0.1, gap], [0, -2, 0], [0, 2, 0]]])
    contacts = Contacts(
        stencil=np.array([Stencil.POINT_TRIANGLE, Stencil.EDGE_EDGE]), first=np.zeros(2, int), second=np.ones(2, int), rest=rest,
        plane=np.zeros((2, 4)), xi=np.zeros(2), stiffness=np.ones(2), mu=np.zeros(2), flipped=np.zeros(2, bool),
    )
    q = np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (2, 1))
    direction = np.zeros((2, 12))
    direction[0, :3] = 0.1, 1.0, 0.0
    return direction_path(q, direction, np.zeros((2, 3, 3)), radii(q, contacts)), contacts


def test_sliding_is_accepted_in_one_iteration():
    path, contacts = sliding()
    assert np.all(time_of_impact(path, contacts, iterations=1) == 1.0)


def test_iteration_limit_is_conservative():
    path, contacts = approaching(3, 200, Stencil.EDGE_EDGE, turn=1.0, strain=0.1)
    full = time_of_impact(path, contacts)
    previous = np.zeros(len(contacts))
    for iterations in range(4):
        toi = time_of_impact(path, contacts, iterations=iterations)
        assert np.all(toi >= previous) and np.all(toi <= full)
        assert np.all(gaps_at(path, contacts, toi) > 0.0)
        previous = toi
    assert np.any(previous < full)


def test_violated_start_gives_zero_and_no_motion_gives_one():
    q, contacts = one_body_each(4, 20, Stencil.POINT_TRIANGLE, xi=100.0)
    assert np.all(time_of_impact(standing(q), contacts) == 0.0)
    q, contacts = one_body_each(4, 20, Stencil.POINT_TRIANGLE)
    assert np.all(time_of_impact(standing(q), contacts) == 1.0)
    assert len(time_of_impact(standing(q), contacts[np.zeros(0, int)])) == 0


def test_codimensional_stencils():
    """A point against an edge and against a point, as degenerate triangles, agree with ipctk."""
    path, contacts = approaching(5, 80, Stencil.POINT_TRIANGLE, turn=0.0, strain=0.2)
    contacts.rest[:, 3] = contacts.rest[:, 2]
    contacts.rest[::2, 2:] = contacts.rest[::2, 1:2]
    toi = time_of_impact(path, contacts)
    start, end = contacts.positions(path.samples(np.array([0.0]))[0]), contacts.positions(path.samples(np.array([1.0]))[0])
    method = ipctk.TightInclusionCCD(tolerance=1e-7)
    for k in range(len(contacts)):
        stopped = start[k] + toi[k] * (end[k] - start[k])
        assert not method.point_edge_ccd(*start[k, :3], *stopped[:3])[0]
    assert np.all(gaps_at(path, contacts, toi) > 0.0)


def test_paths():
    """Arcs agree with the direction to first order, rates with finite differences, and bounds hold on the whole arc."""
    path, contacts = approaching(6, 60, Stencil.EDGE_EDGE, turn=0.8, strain=0.2)
    rest = np.zeros((len(path.p), 3))
    rest[contacts.owners[:, 0]], rest[contacts.owners[:, 3]] = contacts.rest[:, 0], contacts.rest[:, 3]
    everybody, step = np.arange(len(path.p)), 1e-4

    def points(alpha):
        at = np.full(len(path.p), alpha)
        return path.origins(everybody, at) + (path.maps(everybody, at) @ rest[:, :, None])[:, :, 0]

    for alpha in (0.0, 0.3, 0.7, 1.0):
        rate = (path.rates(everybody, np.full(len(path.p), alpha)) @ rest[:, :, None])[:, :, 0] + path.dp
        np.testing.assert_allclose(rate, (points(alpha + step) - points(alpha - step)) / (2 * step), atol=1e-6)
        second = (points(alpha + step) - 2 * points(alpha) + points(alpha - step)) / step**2
        assert np.all(np.linalg.norm(second, axis=1) <= path.bend * (1 + 1e-3) + 1e-5)
        assert np.all(np.linalg.norm(rate - path.dp, axis=1) <= path.affine_speed * (1 + 1e-12))
    D = path.rates(everybody, np.zeros(len(path.p))) @ np.linalg.inv(path.A)
    np.testing.assert_allclose(D, skew(path.w) + path.S, atol=1e-12)
    np.testing.assert_allclose(axial(D), path.w, atol=1e-12)
    np.testing.assert_allclose(path.S, path.S.transpose(0, 2, 1), atol=1e-12)
    maps = path.maps(everybody, np.ones(len(path.p)))
    rigid = Path(path.p, path.A, path.dp, path.w, np.zeros_like(path.S), path.radius)
    turned = rigid.maps(everybody, np.ones(len(path.p)))
    np.testing.assert_allclose(np.linalg.det(turned), np.linalg.det(path.A), rtol=1e-12)
    np.testing.assert_allclose(path.samples(np.array([1.0]))[0][:, 3:], maps.reshape(-1, 9), rtol=1e-15)
