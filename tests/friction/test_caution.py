"""Regularisation: the bound of friction's curvature, how its share is learnt, and what that saves in an impact."""

import numpy as np
import pytest
from test_friction import EPS, displacements, lagged_scene

from abd.potentials import friction

pytestmark = pytest.mark.device


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_with_the_whole_bound_the_model_is_nowhere_below_the_energy_of_friction(size):
    scene, _, lagged, index = lagged_scene("boxes shifted both ways")
    before = displacements(scene, size * EPS)[index]
    f, K = friction._force_and_stiffness(lagged, before, EPS, 1.0)
    slip = np.einsum("mk,mki->mi", lagged.w, before)
    rng = np.random.default_rng(5)
    for reach in (0.1, 1.0, 10.0):
        after = before + reach * size * EPS * rng.normal(size=before.shape)
        du = np.einsum("mk,mki->mi", lagged.w, after) - slip
        model = np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, K, du)
        change = friction.energy(lagged, after, EPS) - friction.energy(lagged, before, EPS)
        assert (change <= model + 1e-9 * lagged.load * EPS).all()
        # the curvature itself is overtaken by slips that turn round
        if reach == 10.0 and size == 3.0:
            _, exact = friction._force_and_stiffness(lagged, before, EPS)
            assert (change > np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, exact, du)).any()
