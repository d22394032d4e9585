"""When friction is lagged again within a step: which changes of loads count."""

from __future__ import annotations

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
    assert changed(loads(*frozen), loads(*acting), INVERSE_MASS, speed=0.05, share=0.5) is expected
