"""Which linear solver a GPU takes, by what it is made of; no GPU is at hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from block_systems import chain, cube, random_pairs

import abd
from abd.backends.device.machine import TYPICAL, Machine, from_attributes, machine_of
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.factor_schedules import longest_chain, solve_chain
from abd.backends.linear.solver_choice import JOINTED_ITERATIONS, choose
from abd.backends.linear.wide_costs import direct_cost, iteration_cost

NOTHING = np.zeros((0, 2), dtype=int)
NARROW = Machine(multiprocessors=4, clock=1e9, doubles=2.0, bandwidth=5e10)
"""A small GPU for pictures, of few doubles."""


def whole_of(n: int, pairs: np.ndarray) -> Elimination:
    return Elimination(n, *pairs.T, in_ranges=False)


def touching(n: int, pairs: np.ndarray, machine: Machine | None, iterations: int = 50):
    """The choice for bodies whose pairs touch; None for a processor."""
    in_ranges = machine is None
    whole, static = (Elimination(n, *some.T, in_ranges=in_ranges) for some in (pairs, NOTHING))
    return choose("auto", whole, len(pairs), static, iterations, machine)


def test_a_step_of_a_few_bodies_is_direct_everywhere():
    for machine in (None, TYPICAL, NARROW):
        assert touching(11, chain(11), machine).direct


def test_joints_are_direct_as_long_as_their_tree_is_low():
    n = 20_000
    whole = whole_of(n, chain(n))
    for machine in (TYPICAL, NARROW):
        assert choose("auto", whole, n - 1, None, machine=machine).direct
        assert direct_cost(whole, machine) < 0.01 * JOINTED_ITERATIONS * iteration_cost(whole, n - 1, None, machine)


def test_contacts_side_by_side_are_iterated_by_a_gpu():
    """Two hundred levels, one after another, take it longer than fifty iterations; more iterations are dearer."""
    n, pairs = 1000, cube(10)
    few, many = (touching(n, pairs, TYPICAL, count) for count in (50, 1000))
    assert not few.direct and many.direct
    assert "ms by the device's data" in few.why and "more than 50 iterations" in few.why
    assert "at most 1000 iterations" in many.why


def test_a_processor_decides_by_products_alone():
    n, pairs = 1000, cube(10)
    choice = touching(n, pairs, None)
    whole = Elimination(n, *pairs.T)
    limit = 50 * (500 + 0.5 * (n + 2 * len(pairs)) + n)
    assert choice.direct == (whole.products <= limit) and f"{whole.products:,} products" in choice.why


@pytest.mark.parametrize("name", ["multiprocessors", "clock", "doubles", "bandwidth"])
def test_more_of_anything_costs_no_more(name):
    n, pairs = 400, random_pairs(400, 1600, seed=2)
    whole, static = whole_of(n, pairs), whole_of(n, NOTHING)
    for machine in (TYPICAL, NARROW):
        better = replace(machine, **{name: 2 * getattr(machine, name)})
        assert direct_cost(whole, better) <= direct_cost(whole, machine)
        assert iteration_cost(whole, len(pairs), static, better) <= iteration_cost(whole, len(pairs), static, machine)


def test_what_is_dense_is_work_on_a_narrow_device():
    """There the products cost what they are, and not how long they wait for one another."""
    n = 300
    i, j = np.triu_indices(n, 1)
    whole = whole_of(n, np.stack([i, j], axis=1))
    work = whole.products * 12**3 / NARROW.rate
    assert work < direct_cost(whole, NARROW) < 4 * work
    assert direct_cost(whole, TYPICAL) > 5 * whole.products * 12**3 / TYPICAL.rate


def test_chains_of_products_are_those_of_the_lists():
    """The longest sums of every level, counted without listing any product."""
    whole = whole_of(200, random_pairs(200, 700, seed=4))
    pattern, products = whole.fill()
    of_slots, starts = np.diff(products["starts"]), pattern["starts"]
    np.testing.assert_array_equal(whole.rights, np.diff(starts) - 1)
    np.testing.assert_array_equal(whole.ups, np.diff(pattern["ups"]))
    for first, last in zip(whole.levels[:-1], whole.levels[1:], strict=True):
        assert of_slots[starts[first] : starts[last]].max() == whole.ups[first:last].max()
    assert 0 < solve_chain(whole) < longest_chain(whole)


def test_what_a_driver_says():
    h200 = from_attributes((9, 0), 132, 1_980_000, 2, 3_201_000, 6016)
    assert (h200.multiprocessors, h200.clock, h200.doubles) == (132, 1.98e9, 64.0)
    assert h200.bandwidth == pytest.approx(4.8e12, rel=0.01) and h200.rate == pytest.approx(16.7e12, rel=0.01)
    assert from_attributes((8, 0), 108, 1_410_000, 2, 1_215_000, 5120).doubles == 32.0
    assert from_attributes((8, 9), 128, 2_520_000, 64, 10_501_000, 384).doubles == 2.0
    assert from_attributes((9, 0), 0, 0, 0, 0, 0) == TYPICAL


def test_the_processor_that_stands_in_for_a_gpu_is_typical():
    assert machine_of(wp.get_device("cpu")) == TYPICAL
    emulated, plain = (abd.Simulation("box_stack", device=name).backend.linear for name in ("emulated", "cpu"))
    assert emulated._machine == TYPICAL and plain._machine is None
