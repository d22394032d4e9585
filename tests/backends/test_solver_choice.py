"""Which linear solver is taken, on a processor and where rows stand in levels."""

import numpy as np
import pytest
from block_systems import chain, cube, random_pairs

from abd.backends.linear.elimination import Elimination
from abd.backends.linear.solver_choice import choose

NOTHING = np.zeros((0, 2), dtype=int)
CASES = {
    "a few bodies that touch": (11, chain(11), 50, True, True),
    "a cube of boxes": (216, cube(6), 50, True, True),
    "a larger one, where iterations are many": (343, cube(7), 1000, True, True),
    "a larger one": (343, cube(7), 50, False, False),
    "what is dense": (500, random_pairs(500, 60_000, seed=1), 50, False, False),
}
"""Bodies, pairs that touch, iterations, and whether a processor and a GPU factor everything."""


@pytest.mark.parametrize("case", CASES)
def test_contacts(case):
    n, pairs, iterations, *expected = CASES[case]
    for in_ranges, direct in zip((True, False), expected, strict=True):
        whole, static = (Elimination(n, *some.T, in_ranges=in_ranges) for some in (pairs, NOTHING))
        choice = choose("auto", whole, len(pairs), static, iterations)
        assert choice.direct == direct, choice.why
        assert f"{iterations} iterations" in choice.why


@pytest.mark.parametrize("in_ranges", [True, False])
def test_joints_are_direct_as_long_as_their_tree_is_low(in_ranges):
    n = 20_000
    assert choose("auto", Elimination(n, *chain(n).T, in_ranges=in_ranges), n - 1, None).direct
