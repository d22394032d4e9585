"""Distances, their types and derivatives against ipctk, on random and degenerate pairs."""

import numpy as np
import pytest
from ulp import assert_agrees

from abd.potentials import distance
from abd.potentials.distance import EDGE_EDGE_DIRECTIONS, POINT_TRIANGLE_DIRECTIONS, EdgeEdge, PointTriangle

ipctk = pytest.importorskip("ipctk")

POINT_TRIANGLE_IPCTK = ipctk.PointTriangleDistanceType
EDGE_EDGE_IPCTK = ipctk.EdgeEdgeDistanceType


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


def assert_all_agree(name, x, D, r, w, kind, types, directions, context):
    """Distance, gradient and Hessian of every pair against the functions ``ipctk.<name>_distance*``."""
    gradient, hessian = distance.gradient(r, w), distance.hessian(x, r, w, directions)
    value_of = getattr(ipctk, f"{name}_distance")
    gradient_of = getattr(ipctk, f"{name}_distance_gradient")
    hessian_of = getattr(ipctk, f"{name}_distance_hessian")
    for i, pair in enumerate(x):
        fixed = types(int(kind[i]))  # where types tie the minimum has a kink: compare on the same side
        where = f"{context}, pair {i}, {fixed}"
        assert_agrees(D[i], lambda x: value_of(*x), pair, context=where)
        assert_agrees(gradient[i], lambda x, fixed=fixed: gradient_of(*x, fixed), pair, context=where)
        assert_agrees(hessian[i], lambda x, fixed=fixed: hessian_of(*x, fixed), pair, context=where)


@pytest.mark.parametrize("case", CASES)
def test_point_triangle_equals_ipctk(case):
    x = CASES[case](degenerate_point_triangles)
    D, weights, kind = distance.point_triangle(*x.swapaxes(0, 1))
    w, directions = distance.signed_point_triangle(weights), POINT_TRIANGLE_DIRECTIONS[kind]
    r = distance.separation(x, w, directions)
    assert_all_agree("point_triangle", x, D, r, w, kind, POINT_TRIANGLE_IPCTK, directions, case)


@pytest.mark.parametrize("case", CASES)
def test_edge_edge_equals_ipctk(case):
    x = CASES[case](degenerate_edge_pairs)
    D, weights_a, weights_b, kind = distance.edge_edge(*x.swapaxes(0, 1))
    w, directions = distance.signed_edge_edge(weights_a, weights_b), EDGE_EDGE_DIRECTIONS[kind]
    r = distance.separation(x, w, directions)
    assert_all_agree("edge_edge", x, D, r, w, kind, EDGE_EDGE_IPCTK, directions, case)


def test_types_equal_ipctk_on_random_pairs():
    x = random_pairs(4, 2000)
    x[:, :, :] *= np.random.default_rng(5).uniform(0.2, 3.0, size=(2000, 4, 1))
    kind = distance.point_triangle(*x.swapaxes(0, 1))[2]
    assert set(kind) == set(PointTriangle)
    assert [POINT_TRIANGLE_IPCTK(int(k)) for k in kind] == [ipctk.point_triangle_distance_type(*pair) for pair in x]
    kind = distance.edge_edge(*x.swapaxes(0, 1))[3]
    assert set(kind) == set(EdgeEdge)
    assert [EDGE_EDGE_IPCTK(int(k)) for k in kind] == [ipctk.edge_edge_distance_type(*pair) for pair in x]


def test_weights_and_separation_agree_with_the_distance():
    x = np.concatenate([random_pairs(6, 300), slanted(degenerate_point_triangles())])
    D, weights, kind = distance.point_triangle(*x.swapaxes(0, 1))
    r = x[:, 0] - np.einsum("mk,mki->mi", weights, x[:, 1:])
    np.testing.assert_allclose(np.linalg.norm(r, axis=1), np.sqrt(D), rtol=1e-7, atol=1e-15)
    assert np.all(weights >= 0) and np.allclose(weights.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_array_equal(np.count_nonzero(weights, axis=1), np.array([1, 1, 1, 2, 2, 2, 3])[kind])


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


@pytest.mark.parametrize("name", ["point_triangle", "edge_edge"])
def test_derivatives_by_finite_differences(name):
    def evaluate(x):
        parts = getattr(distance, name)(*x.swapaxes(0, 1))
        if name == "point_triangle":
            w, directions = distance.signed_point_triangle(parts[1]), POINT_TRIANGLE_DIRECTIONS[parts[-1]]
        else:
            w, directions = distance.signed_edge_edge(*parts[1:3]), EDGE_EDGE_DIRECTIONS[parts[-1]]
        r = distance.separation(x, w, directions)
        return parts[0], distance.gradient(r, w), distance.hessian(x, r, w, directions), parts[-1]

    x = np.random.default_rng(10).normal(size=(200, 4, 3))
    _, gradient, hessian, kind = evaluate(x)
    step = 1e-6
    for k in range(12):
        move = np.zeros(12)
        move[k] = step
        plus, minus = evaluate(x + move.reshape(4, 3)), evaluate(x - move.reshape(4, 3))
        same = (plus[3] == kind) & (minus[3] == kind)
        assert np.mean(same) > 0.95
        np.testing.assert_allclose(gradient[:, k], (plus[0] - minus[0]) / (2 * step), atol=1e-7)
        np.testing.assert_allclose(hessian[same, k], ((plus[1] - minus[1]) / (2 * step))[same], atol=2e-4, rtol=1e-4)
