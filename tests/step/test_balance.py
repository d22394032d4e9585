"""Laggings of friction until loads balance: the shares by which pairs take their next loads."""

from __future__ import annotations

import numpy as np
import pytest

from abd.backends.answers import PairLoads
from abd.step.balance import LEAST, SHRINK, WATCHED, Shares, _shrink

PAIRS = np.array([[0, 1], [2, 1], [0, 3]])


def after(laggings: int, slope: np.ndarray, mobility: np.ndarray) -> tuple[np.ndarray, Shares]:
    """Loads (3,) after so many laggings of ``G(L) = 1 + slope (L - 1)``, whose fixed point is 1."""
    shares, load = Shares(mobility), np.full(3, 2.0)
    for _ in range(laggings):
        acting = 1.0 + slope * (load - 1.0)
        load = load + shares.next(PairLoads(PAIRS, load), PairLoads(PAIRS, acting)) * (acting - load)
    return load, shares


@pytest.mark.parametrize("slope", [-0.9, -1.0, -1.5, -3.0])
def test_loads_that_go_round_balance(slope):
    load, shares = after(12, np.array([slope, 0.3, 0.0]), np.ones(4))
    np.testing.assert_allclose(load, 1.0, atol=1e-5)
    assert shares.largest < 1e-4


def test_loads_that_settle_by_themselves_are_taken_whole():
    load, shares = after(1, np.full(3, 0.5), np.ones(4))
    np.testing.assert_array_equal(load, 1.5)
    np.testing.assert_array_equal(shares.share.load, 1.0)
    assert (after(30, np.full(3, -50.0), np.ones(4))[1].share.load >= LEAST).all()


def test_changes_are_told_by_the_velocity_that_they_give():
    _, shares = after(1, np.zeros(3), np.array([1.0, 0.0, 5.0, 0.0]))
    assert shares.largest == 5.0


def test_loads_of_pairs_are_found_by_their_bodies():
    loads = PairLoads(PAIRS, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(loads.of(np.array([[0, 3], [2, 1], [5, 1], [0, 3]]), -1.0), [3.0, 2.0, -1.0, 3.0])
    np.testing.assert_array_equal(PairLoads(PAIRS[:0], np.zeros(0)).of(PAIRS), np.zeros(3))


def test_what_does_not_shrink_is_given_up():
    steady, falling = [1.0] * (2 * WATCHED), [(0.9 * SHRINK) ** (k / WATCHED) for k in range(2 * WATCHED)]
    assert not _shrink(steady) and _shrink(steady[:-1]) and _shrink(falling)
