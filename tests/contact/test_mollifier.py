"""Edge-edge mollifier against ipctk and finite differences."""

import numpy as np
import pytest
from ulp import assert_agrees

from abd.potentials import mollifier

ipctk = pytest.importorskip("ipctk")


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
def test_equals_ipctk(scale):
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


def test_derivatives_by_finite_differences():
    x = np.random.default_rng(2).normal(size=(30, 4, 3))
    eps_x = 2.0 * mollifier.cross_squared(x)[0]
    gradients, hessians = mollifier.gradient(x, eps_x), mollifier.hessian(x, eps_x)
    step = 1e-6
    for k in range(12):
        move = (step * (np.arange(12) == k)).reshape(4, 3)
        rise = mollifier.value(x + move, eps_x) - mollifier.value(x - move, eps_x)
        turn = mollifier.gradient(x + move, eps_x) - mollifier.gradient(x - move, eps_x)
        np.testing.assert_allclose(gradients[:, k], rise / (2 * step), atol=1e-6, rtol=1e-5)
        np.testing.assert_allclose(hessians[:, k], turn / (2 * step), atol=1e-5, rtol=1e-5)


def test_mollifier_reaches_one_with_zero_slope():
    m, m1, _ = mollifier.mollifier(np.array([0.0, 1.0 - 1e-9, 1.0, 5.0]), 1.0)
    np.testing.assert_allclose(m, [0.0, 1.0, 1.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(m1, [2.0, 0.0, 0.0, 0.0], atol=3e-9)
