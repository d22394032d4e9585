"""Bodies that move by many of their sizes per step do not pass through one another."""

import numpy as np
import pytest
from thrown import PAIRS, has_passed, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("spin", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [0.5, 20, 100])
@pytest.mark.parametrize("name", PAIRS)
def test_nothing_passes(name, sizes, spin):
    assert not any(has_passed(PAIRS[name], sizes, spin, 1000 * trial, "cpu") for trial in range(3))


@pytest.mark.parametrize("sizes", [1, 5])
@pytest.mark.parametrize("name", ["box at box", "ball at ball", "box at fixed plate"])
def test_impacts_match_those_of_a_hundredth_of_the_step(name, sizes):
    """Momentum and energy within 20 % in most of six trials."""
    momentum = energy = 0
    for seed in range(0, 6000, 1000):
        end, fine = (run(PAIRS[name], sizes, 0.0, seed, "cpu", finer) for finer in (1, 100))
        momentum += np.linalg.norm(end.pushed - fine.pushed) <= 0.2 * np.linalg.norm(fine.pushed)
        energy += abs(end.energy - fine.energy) <= 0.2 * fine.available
    assert momentum >= 4 and energy >= 4, (momentum, energy)
