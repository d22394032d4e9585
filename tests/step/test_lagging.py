"""When friction is lagged again within a step: which changes of loads count."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from abd.backends.answers import PairLoads
from abd.step.lagging import changed

INVERSE_MASS = np.array([0.0, 1.0, 0.01])


def loads(*entries: tuple[int, int, float]) -> PairLoads:
    """Body pairs and their loads."""
    return PairLoads(
        np.array([entry[:2] for entry in entries], dtype=int).reshape(-1, 2), np.array([e[2] for e in entries])
    )


@pytest.mark.parametrize(
    ("frozen", "acting", "expected"),
    [
        ((), (), False),
        ((), ((1, 0, 1.0),), True),
        (((1, 0, 1.0),), (), True),
        (((1, 0, 1.0),), ((1, 0, 1.9),), False),
        (((1, 0, 1.0),), ((1, 0, 2.1),), True),
        (((1, 0, 1e-3),), ((1, 0, 2e-2),), False),
        (((2, 0, 1.0),), ((2, 0, 3.0),), False),
        (((1, 0, 1.0), (2, 1, 1.0)), ((2, 1, 1.0), (1, 0, 1.0)), False),
        (((1, 0, 1.0), (2, 1, 1.0)), ((2, 1, 3.0), (1, 0, 1.0)), True),
    ],
)
def test_loads_count_from_half_of_the_larger_one_and_a_speed(frozen, acting, expected):
    settings = SimpleNamespace(eps_v=0.05, friction_tolerance=1e-3, gravity=np.zeros(3))
    pairs = changed(loads(*frozen), loads(*acting), INVERSE_MASS, settings, 0.01, np.zeros(3, dtype=bool))
    assert bool(len(pairs)) is expected


def test_pairs_that_were_lagged_again_count_from_a_tenth():
    """Each pair by itself: what was lagged again elsewhere says nothing of it."""
    settings = SimpleNamespace(eps_v=1e-3, friction_tolerance=1e-5, gravity=np.array([0.0, 0.0, -10.0]))
    frozen, acting = loads((1, 0, 1.0), (2, 0, 1.0)), loads((1, 0, 1.3), (2, 0, 1.3))
    inverse_mass, loaded = np.array([0.0, 1.0, 1.0]), np.array([False, True, False])
    assert changed(frozen, acting, inverse_mass, settings, 0.01, loaded).tolist() == [[1, 0]]
