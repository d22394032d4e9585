"""Distances, barriers and mollifiers with their derivatives against ipctk; barriers also against finite differences."""

import numpy as np
import pytest
from differences import assert_agrees

from abd.potentials import distance, mollifier
from abd.potentials.barrier import BARRIERS, barrier
from abd.potentials.distance import EDGE_EDGE_DIRECTIONS, POINT_TRIANGLE_DIRECTIONS, EdgeEdge, PointTriangle

ipctk = pytest.importorskip("ipctk")

def random_pairs(seed: int, count: int, scale: float = 1.0, offset: float = 0.0) -> np.ndarray:
    """(count, 4, 3) points around one another, of gaps from large to small."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4, 3)) * scale
    x[:, :, 2] *= 10.0 ** rng.uniform(-6, 0, size=(count, 1))
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return np.einsum("mij,mkj->mki", turns, x) + offset


def degenerate_point_triangles() -> np.ndarray:
    """Points above corners, edges, edge lines and the inside; slivers; a point in the plane of the triangle."""
    a, b, c = np.zeros(3), np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
    feet = np.array([a, b, c, (a + b) / 2, (b + c) / 2, (a + c) / 2, (a + b + c) / 3, 2 * b, -c, [1.0, 1.0, 0.0]])
    pairs = [[foot + h * np.array([0, 0, 1]), a, b, c] for foot in feet for h in (1e-6, 1e-3, 1.0)]
    pairs += [[[0.3, 0.3, 0.0], a, b, [0.3, 1e-4, 0]], [[0.4, 0.2, 1e-3], a, b, [0.5, 1e-5, 0]]]
    pairs += [[[0.4, -0.2, 1e-3], a, b, [2.0, 1e-6, 0]], [[2.0, 3.0, 0.0], a, b, c]]
    return np.array(pairs)


def degenerate_edge_pairs() -> np.ndarray:
    """Parallel, collinear, overlapping, touching at ends, perpendicular and nearly parallel edges."""
    a0, a1 = np.zeros(3), np.array([1.0, 0, 0])
    pairs = []
    for h in (1e-6, 1e-3, 0.5):
        for start, end in ((0, 1), (0.25, 0.75), (-1, 2), (0.5, 1.5), (1.5, 3), (-2, -1), (1, 2), (1, 0), (0.8, -0.4)):
            pairs.append([a0, a1, [start, h, 0], [end, h, 0]])
        pairs.append([a0, a1, [0.5, -1, h], [0.5, 1, h]])
        pairs.append([a0, a1, [0, -1, h], [0, 1, h]])
        pairs.append([a0, a1, [1, 0, h], [1, 1, h]])
        pairs += [[a0, a1, [0.1, h, -s], [0.9, h, s]] for s in (1e-2, 1e-4, 1e-6)]
    pairs += [[a0, a1, [1.1, 0, 0], [2, 0, 0]], [a0, a1, [1.0, 1e-4, 0], [2, 1, 0]]]
    return np.array(pairs)


def slanted(pairs: np.ndarray) -> np.ndarray:
    """The same pairs turned, so that their coordinates are rounded."""
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    return pairs @ turn.T + np.array([0.3, -1.1, 2.7])


CASES = {
    "unit": lambda degenerate: random_pairs(0, 150),
    "millimetres": lambda degenerate: random_pairs(1, 60, scale=1e-3),
    "far from the origin": lambda degenerate: random_pairs(2, 60, offset=50.0),
    "degenerate": lambda degenerate: degenerate(),
    "degenerate, slanted": lambda degenerate: slanted(degenerate()),
}


KINDS = {
    # name: signed weights, directions by type, types of ipctk, degenerate pairs
    "point_triangle": (
        distance.signed_point_triangle, POINT_TRIANGLE_DIRECTIONS, ipctk.PointTriangleDistanceType, degenerate_point_triangles
    ),
    "edge_edge": (distance.signed_edge_edge, EDGE_EDGE_DIRECTIONS, ipctk.EdgeEdgeDistanceType, degenerate_edge_pairs),
}


def evaluate(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Squared distance, gradient, Hessian and type of every pair."""
    signed, directions, *_ = KINDS[name]
    D, *weights, kind = getattr(distance, name)(*x.swapaxes(0, 1))
    w, along = signed(*weights), directions[kind]
    r = distance.separation(x, w, along)
    return D, distance.gradient(r, w), distance.hessian(x, r, w, along), kind


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", KINDS)
def test_distances_equal_ipctk(name, case):
    *_, types, degenerate = KINDS[name]
    x = CASES[case](degenerate)
    D, gradient, hessian, kind = evaluate(name, x)
    value_of, gradient_of, hessian_of = (getattr(ipctk, f"{name}_distance{of}") for of in ("", "_gradient", "_hessian"))
    for i, pair in enumerate(x):
        fixed = types(int(kind[i]))  # where types tie the minimum has a kink: compare on the same side
        where = f"{case}, pair {i}, {fixed}"
        assert_agrees(D[i], lambda x: value_of(*x), pair, context=where)
        assert_agrees(gradient[i], lambda x, fixed=fixed: gradient_of(*x, fixed), pair, context=where)
        assert_agrees(hessian[i], lambda x, fixed=fixed: hessian_of(*x, fixed), pair, context=where)


@pytest.mark.parametrize(("name", "every"), [("point_triangle", PointTriangle), ("edge_edge", EdgeEdge)])
def test_types_equal_ipctk_on_random_pairs(name, every):
    x = random_pairs(4, 2000) * np.random.default_rng(5).uniform(0.2, 3.0, size=(2000, 4, 1))
    kind, types = getattr(distance, name)(*x.swapaxes(0, 1))[-1], KINDS[name][2]
    assert set(kind) == set(every)
    assert [types(int(k)) for k in kind] == [getattr(ipctk, f"{name}_distance_type")(*pair) for pair in x]


def test_degenerate_triangles_are_edges_and_points():
    x = random_pairs(7, 200)
    p, a, b, _ = x.swapaxes(0, 1)
    edge, weights, kind = distance.point_triangle(p, a, b, b)
    assert not np.any(kind == PointTriangle.P_ABC)
    np.testing.assert_allclose(weights[:, 1] + weights[:, 2], distance.edge_parameter(p, a, b), atol=1e-15)
    point, weights, kind = distance.point_triangle(p, a, a, a)
    assert np.all(kind == PointTriangle.P_A) and np.all(weights == [1.0, 0.0, 0.0])
    for i in range(len(x)):
        pair = x[i, :3]
        assert_agrees(edge[i], lambda x: ipctk.point_edge_distance(*x), pair)
        assert_agrees(point[i], lambda x: ipctk.point_point_distance(x[0], x[1]), pair)


def test_zero_length_edges():
    x = random_pairs(8, 100)
    a0, a1, b0, _ = x.swapaxes(0, 1)
    for arguments in ((a0, a1, b0, b0), (b0, b0, a0, a1), (a0, a0, b0, b0)):
        D, weights_a, weights_b, _ = distance.edge_edge(*arguments)
        assert np.all(np.isfinite(D)) and np.all(np.isfinite(weights_a)) and np.all(np.isfinite(weights_b))
    D = distance.edge_edge(a0, a1, b0, b0)[0]
    np.testing.assert_allclose(D, distance.point_triangle(b0, a0, a1, a1)[0], rtol=1e-12)


def test_nearly_parallel_edges_use_the_nearer_end():
    """Between sines of 1e-10 and 1.6e-8 ipctk selects an end by its position, which may be the farther one."""
    for sine in (1e-9, 3e-9, 1e-8):
        rng = np.random.default_rng(9)
        for _ in range(50):
            h, middle, tilt = 1e-3, rng.uniform(-1, 2), rng.uniform(-sine, sine, size=2)
            half = np.array([0.4, *tilt * 0.4])
            b = np.array([middle, h, 0.0])
            pair = np.array([[0.0, 0, 0], [1.0, 0, 0], b - half, b + half])
            D = distance.edge_edge(*pair[:, None])[0][0]
            theirs = ipctk.edge_edge_distance(*pair)
            excess = np.sqrt(theirs) - np.sqrt(D)
            assert -1e-9 * h <= excess <= sine


REACH = 2e-3
SEPARATIONS = (0.0, 1e-3)
FRACTIONS = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0, 1.5])
LOG_FAMILY = {"log": ipctk.ClampedLogBarrier, "log_sq": ipctk.ClampedLogSqBarrier}


@pytest.mark.usefixtures("without_core")
@pytest.mark.parametrize("xi", SEPARATIONS)
@pytest.mark.parametrize("kind", LOG_FAMILY)
def test_log_barriers_equal_ipctk(kind, xi):
    reference = LOG_FAMILY[kind]()
    h = REACH**2 + 2 * REACH * xi
    for d in xi + REACH * FRACTIONS:
        D = np.array([d**2])
        calls = (reference, reference.first_derivative, reference.second_derivative)
        for value, call in zip(barrier(kind, D, REACH, xi), calls, strict=True):
            assert_agrees(value, lambda D, call=call: np.array([call(D[0] - xi**2, h)]), D, context=f"{kind} at {d}")


@pytest.mark.usefixtures("without_core")
@pytest.mark.parametrize("xi", SEPARATIONS)
def test_cubic_is_the_scalar_function_of_ipctk(xi):
    """ipctk's function of the distance, differentiated by the squared distance, equals the barrier."""
    reference = ipctk.CubicBarrier()
    for d in xi + REACH * FRACTIONS:
        gap = np.array([d - xi])
        b, b1, b2 = barrier("cubic", np.array([d**2]), REACH, xi)
        b_d = 2.0 * d * b1
        b_dd = 2.0 * b1 + 4.0 * d**2 * b2
        calls = (reference, reference.first_derivative, reference.second_derivative)
        for value, call in zip((b, b_d, b_dd), calls, strict=True):
            # the distance is rounded when squared and rooted: an ulp of the distance, not of the gap
            expected = call(gap[0], REACH)
            slack = 100 * abs(call(gap[0] + np.spacing(d), REACH) - expected)
            assert abs(value[0] - expected) <= max(1e-9 * abs(expected), slack)


@pytest.mark.parametrize("xi", SEPARATIONS)
@pytest.mark.parametrize("kind", BARRIERS)
def test_derivatives_of_barriers_by_finite_differences(kind, xi):
    D = (xi + REACH * np.array([0.05, 0.3, 0.7, 0.95])) ** 2
    step = 1e-6 * (D - xi**2)
    _, b1, b2 = barrier(kind, D, REACH, xi)
    plus, minus = barrier(kind, D + step, REACH, xi), barrier(kind, D - step, REACH, xi)
    np.testing.assert_allclose(b1, (plus[0] - minus[0]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(b2, (plus[1] - minus[1]) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("kind", BARRIERS)
def test_ends_of_the_range(kind):
    xi = 1e-3
    values = barrier(kind, np.array([0.9 * xi, xi, xi + REACH, xi + 2 * REACH]) ** 2, REACH, xi)
    assert np.all(np.isinf(values[0][:2])) and np.all(values[0][2:] == 0.0)
    for derivative in values[1:]:
        assert np.all(derivative[:2] == 0.0) and np.all(np.abs(derivative[2:]) < 1e-9)
    inside = barrier(kind, (xi + REACH * np.linspace(0.01, 0.99, 50)) ** 2, REACH, xi)
    assert np.all(inside[0] > 0) and np.all(inside[1] < 0) and np.all(np.diff(inside[0]) < 0)


def test_unknown_barrier_is_named():
    with pytest.raises(ValueError, match=r"quartic.*log, log_sq, cubic"):
        barrier("quartic", np.array([1.0]), 1.0)


def edge_pairs(seed: int, count: int, scale: float) -> np.ndarray:
    """(count, 4, 3) pairs of edges at angles from a right angle down to 1e-9, and exactly parallel ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4, 3))
    angle = 10.0 ** rng.uniform(-9, 0, size=(count, 1))
    angle[::10] = 0.0
    u = x[:, 1] - x[:, 0]
    x[:, 3] = x[:, 2] + rng.uniform(-2, 2, size=(count, 1)) * u + angle * (x[:, 3] - x[:, 2])
    return scale * x


@pytest.mark.parametrize("scale", [1.0, 1e-3, 30.0])
def test_mollifier_equals_ipctk(scale):
    x = edge_pairs(0, 120, scale)
    rest = edge_pairs(1, 120, scale)
    eps_x = mollifier.threshold(rest)
    values, gradients, hessians = (f(x, eps_x) for f in (mollifier.value, mollifier.gradient, mollifier.hessian))
    assert np.any(values == 1.0) and np.any((values > 0) & (values < 1)) and np.any(values < 1e-12)
    for i, pair in enumerate(x):
        eps = ipctk.edge_edge_mollifier_threshold(*rest[i])
        assert eps == pytest.approx(eps_x[i], rel=1e-14)
        assert_agrees(values[i], lambda x, eps=eps: ipctk.edge_edge_mollifier(*x, eps), pair)
        assert_agrees(gradients[i], lambda x, eps=eps: ipctk.edge_edge_mollifier_gradient(*x, eps), pair)
        assert_agrees(hessians[i], lambda x, eps=eps: ipctk.edge_edge_mollifier_hessian(*x, eps), pair)
