"""Factors of impact impulses and their friction: the kernel against the definition, and both against their conditions."""

import math

import numpy as np
import pytest
import scipy.sparse as sparse

from abd.backends.warp import impact_sweeps
from abd.potentials import sweeps

PAIRS, BODIES = 12, 8


def impacts_of(seed: int, frictional: int, slip: float = 1.0):
    """Random pairs of unit bodies in two blocks; the first pairs of each block have friction."""
    rng = np.random.default_rng(seed)
    pair = np.sort(rng.choice(PAIRS, frictional, replace=False))
    rows = np.zeros((PAIRS + 2 * frictional, 2, BODIES, 6))
    block = np.repeat([0, 1], [5, PAIRS - 5])
    for row, k in enumerate(np.concatenate([np.arange(PAIRS), np.repeat(pair, 2)])):
        rows[row, block[k], rng.choice(BODIES, 2, replace=False)] = rng.normal(size=(2, 6))
    rows = rows.reshape(len(rows), -1)
    A = sparse.csr_matrix(rows @ rows.T)
    A.sort_indices()
    spent, before = 0.05 * rng.normal(size=(frictional, 2)), slip * rng.normal(size=(frictional, 2))
    friction = sweeps.ConeRows(pair, rng.uniform(0.1, 0.5, frictional), spent, before, pair // 2)
    power, target = rng.normal(size=len(rows)), rng.uniform(0.0, 0.5, PAIRS)
    low, high = np.zeros(PAIRS), np.where(rng.random(PAIRS) < 0.5, np.inf, target)
    starts, size = np.array([0, 5, PAIRS]), rng.uniform(0.5, 2.0, PAIRS)
    return A, power, low, high, size, np.ones(2), starts, np.arange(PAIRS), friction


@pytest.mark.parametrize("frictional", [0, 1, PAIRS])
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_finds_the_factors_and_friction_of_the_definition(seed, frictional):
    given = impacts_of(seed, frictional)
    np.testing.assert_allclose(impact_sweeps.swept(*given), sweeps.swept(*given), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_powers_are_in_their_bounds_and_friction_in_its_cone_opposes_the_slip(seed):
    A, power, low, high, *_, friction = given = impacts_of(seed, 4, slip=0.0)
    x = sweeps.swept(*given)
    p, factor = power + A @ x, x[:PAIRS]
    assert (p[:PAIRS] > low - 1e-7).all() and (p[:PAIRS] < high + 1e-7)[factor > -1.0].all()
    slip, impulse = p[PAIRS:].reshape(-1, 2), friction.spent + x[PAIRS:].reshape(-1, 2)
    limit, size = friction.limit * (1.0 + factor[friction.pair]), np.linalg.norm(impulse, axis=1)
    assert (size <= limit + 1e-9).all()
    assert np.abs(slip[size < limit - 1e-7]).max(initial=0.0) < 1e-6
    assert (np.sum(impulse * slip, axis=1) < 1e-9).all()


@pytest.mark.parametrize("swept", [sweeps.swept, impact_sweeps.swept])
@pytest.mark.parametrize("mu, slip", [(0.5, 3.88), (0.5, 3.5), (0.8, 3.88), (0.2, 3.88), (0.5, -3.88), (0.5, 0.0)])
def test_friction_of_a_pair_is_that_of_its_integrated_impact(swept, mu, slip):
    """Routh's method: friction opposes the slip of the moment, until the normal velocity is zero."""
    G, normal, tangent, P, step = np.array([[2.186, -3.273], [-3.273, 4.909]]), -2.83, slip, [0.0, 0.0], 2e-5
    (a, b), (_, c) = G.tolist()
    while normal < 0.0:
        by = max(-mu, min(mu, -b / c)) if abs(tangent) < 2e-4 else -math.copysign(mu, tangent)
        P = [P[0] + step, P[1] + step * by]
        normal, tangent = normal + step * (a + b * by), tangent + step * (b + c * by)
    # an impulse of 1e-6 N s in the step, scaled by its factor: the impact is 1 + x of it
    first, scale, along = 1e-6 * G[0], np.diag([1e-6, 1.0, 1.0]), np.array([slip, 0.0])
    A = scale @ np.pad(G, (0, 1), constant_values=0.0) @ scale + np.diag([0.0, 0.0, 1.0])
    friction = sweeps.ConeRows(np.array([0]), np.array([1e-6 * mu]), np.zeros((1, 2)), along[None], np.zeros(1, dtype=int))
    power, zero = scale @ [-2.83 + first[0], slip + first[1], 0.0], np.zeros(1)
    x = swept(sparse.csr_matrix(A), power, zero, zero, zero + 1e-6, zero + 3.0, np.array([0, 1]), np.array([0]), friction)
    np.testing.assert_allclose([1e-6 * (1.0 + x[0]), x[1]], P, rtol=1e-3, atol=2e-3)
