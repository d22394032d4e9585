"""Scalar barriers against ipctk and finite differences."""

import numpy as np
import pytest
from ulp import assert_agrees

from abd.potentials.barrier import BARRIERS, barrier

ipctk = pytest.importorskip("ipctk")

D_HAT = 2e-3
SEPARATIONS = (0.0, 1e-3)
FRACTIONS = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0, 1.5])
LOG_FAMILY = {"log": ipctk.ClampedLogBarrier, "log_sq": ipctk.ClampedLogSqBarrier}


@pytest.mark.parametrize("xi", SEPARATIONS)
@pytest.mark.parametrize("kind", LOG_FAMILY)
def test_log_barriers_equal_ipctk(kind, xi):
    reference = LOG_FAMILY[kind]()
    h = D_HAT**2 + 2 * D_HAT * xi
    for distance in xi + D_HAT * FRACTIONS:
        D = np.array([distance**2])
        calls = (reference, reference.first_derivative, reference.second_derivative)
        for value, call in zip(barrier(kind, D, D_HAT, xi), calls, strict=True):
            assert_agrees(value, lambda D, call=call: np.array([call(D[0] - xi**2, h)]), D, context=f"{kind} at {distance}")


@pytest.mark.parametrize("xi", SEPARATIONS)
def test_cubic_is_the_scalar_function_of_ipctk(xi):
    """ipctk's function of the distance, differentiated by the squared distance, equals the barrier."""
    reference = ipctk.CubicBarrier()
    for distance in xi + D_HAT * FRACTIONS:
        gap = np.array([distance - xi])
        b, b1, b2 = barrier("cubic", np.array([distance**2]), D_HAT, xi)
        b_d = 2.0 * distance * b1
        b_dd = 2.0 * b1 + 4.0 * distance**2 * b2
        calls = (reference, reference.first_derivative, reference.second_derivative)
        for value, call in zip((b, b_d, b_dd), calls, strict=True):
            # the distance is rounded when squared and rooted: an ulp of the distance, not of the gap
            expected = call(gap[0], D_HAT)
            slack = 100 * abs(call(gap[0] + np.spacing(distance), D_HAT) - expected)
            assert abs(value[0] - expected) <= max(1e-9 * abs(expected), slack)


@pytest.mark.parametrize("xi", SEPARATIONS)
@pytest.mark.parametrize("kind", BARRIERS)
def test_derivatives_by_finite_differences(kind, xi):
    D = (xi + D_HAT * np.array([0.05, 0.3, 0.7, 0.95])) ** 2
    step = 1e-6 * (D - xi**2)
    _, b1, b2 = barrier(kind, D, D_HAT, xi)
    plus, minus = barrier(kind, D + step, D_HAT, xi), barrier(kind, D - step, D_HAT, xi)
    np.testing.assert_allclose(b1, (plus[0] - minus[0]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(b2, (plus[1] - minus[1]) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("kind", BARRIERS)
def test_ends_of_the_range(kind):
    xi = 1e-3
    values = barrier(kind, np.array([0.9 * xi, xi, xi + D_HAT, xi + 2 * D_HAT]) ** 2, D_HAT, xi)
    assert np.all(np.isinf(values[0][:2])) and np.all(values[0][2:] == 0.0)
    for derivative in values[1:]:
        assert np.all(derivative[:2] == 0.0) and np.all(np.abs(derivative[2:]) < 1e-9)
    inside = barrier(kind, (xi + D_HAT * np.linspace(0.01, 0.99, 50)) ** 2, D_HAT, xi)
    assert np.all(inside[0] > 0) and np.all(inside[1] < 0) and np.all(np.diff(inside[0]) < 0)


def test_unknown_barrier_is_named():
    with pytest.raises(ValueError, match=r"quartic.*log, log_sq, cubic"):
        barrier("quartic", np.array([1.0]), 1.0)
