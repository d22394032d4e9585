"""The factor level by level, by launches that know nothing of the pattern, and solves with it: dense systems, records that serve
any pattern, how long the longest chain of products is."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from block_systems import System, chain, cube, net, random_pairs, random_tree, star_of_chains
from on_device import NAME

from abd.backends.device.device import EMULATED, Device
from abd.backends.device.graphs import Graphs
from abd.backends.linear import factor_schedules
from abd.backends.linear.cholesky import Cholesky
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.factor_schedules import THREADS_EMULATED, LevelsOfRows
from abd.errors import StepFailure

pytestmark = pytest.mark.device

NOTHING = np.zeros((0, 2), dtype=int)
GRAPHS = {
    "one body": (1, NOTHING),
    "chain": (9, chain(9)),
    "hub": (40, star_of_chains(39, 1)),
    "tree": (30, random_tree(30, seed=1)),
    "net": (25, net(5, 5)),
    "full": (70, random_pairs(70, 2415, seed=2)),
}


@pytest.fixture(scope="module")
def wide() -> Device:
    """A device whose launches have the shape of CUDA's."""
    return Device(EMULATED if NAME == "cpu" else NAME)


@pytest.mark.parametrize("graph", GRAPHS)
def test_factor_and_solves(wide, graph):
    """Joints, contacts and friction in the same blocks; sums of one product, and of more than lanes share."""
    n, pairs = GRAPHS[graph]
    system = System(wide, n, pairs, pairs[1::3], pairs[::2, ::-1], seed=n)
    exact = system.dense()
    assert np.abs(system.solve(system.solver("direct")) - exact).max() <= 1e-11 * np.abs(exact).max()


def test_threads_take_turns(monkeypatch):
    """However many there are, by whole warps: the same bits."""
    n, pairs = GRAPHS["net"]
    solutions = []
    for threads in (32, 96, THREADS_EMULATED):
        monkeypatch.setattr(factor_schedules, "THREADS_EMULATED", threads)
        system = System(Device(EMULATED), n, pairs)
        solutions.append(system.solve(system.solver("direct")))
    np.testing.assert_array_equal(solutions, solutions[:1] * 3)


def test_lanes_of_a_row_never_belong_to_two_turns(monkeypatch):
    """Threads that are no multiple of a warp would leave some lanes of a row waiting for others that have returned."""
    monkeypatch.setattr(factor_schedules, "THREADS_EMULATED", 40)
    with pytest.raises(ValueError, match="turns of 32"):
        LevelsOfRows(Device(EMULATED))


def test_no_order_of_threads_changes_a_bit():
    n, pairs = GRAPHS["full"]
    found = [(s := System(Device(name), n, pairs)).solve(s.solver("direct")) for name in (EMULATED, f"{EMULATED}:5")]
    np.testing.assert_array_equal(*found)


def test_islands_that_are_done_keep_their_rows(wide):
    """One of two nets is done: its part of the factor and the solution stays, the other's is solved."""
    n, pairs = 32, np.concatenate([net(4, 4), 16 + net(4, 4)])
    system = System(wide, n, pairs)
    solver = system.solver("direct")
    before = system.solve(solver)
    wide.write(solver.solver.islands.done, (np.arange(n) < 16).astype(np.int32))
    system.gradient *= 2.0
    after = system.solve(solver)
    np.testing.assert_array_equal(after[:16], before[:16])
    np.testing.assert_allclose(after[16:], 2.0 * before[16:], rtol=0, atol=1e-12 * np.abs(before).max())


def test_failed_pivots_are_told(wide):
    system = System(wide, 12, chain(12))
    system.diagonal[5] = -np.eye(12)
    with pytest.raises(StepFailure, match="pivot") as failure:
        system.solve(system.solver("direct"))
    assert failure.value.bodies == ("body 5",)


def test_a_record_serves_any_pattern(wide):
    """Patterns with more rows side by side, more levels, fewer blocks: the record of the first one solves for all, as long as
    there is room."""
    n, graphs = 40, Graphs(wide)
    patterns = [random_pairs(n, 200, seed=3), chain(n), star_of_chains(39, 1), random_pairs(n, 150, seed=4)]
    systems = [System(wide, n, NOTHING, np.concatenate([pairs, NOTHING]), seed=k) for k, pairs in enumerate(patterns)]
    # a record holds its arrays: blocks and pairs of all systems are written to those of the first one
    (_, _), (coupling, room), _ = systems[0].couplings
    cholesky = Cholesky(wide, np.arange(n), n, 3)
    diagonal, rhs, x = (wide.zeros(shape, wp.float64) for shape in ((n, 12, 12), (n, 12), (n, 12)))
    done, dots = wide.zeros(n, wp.int32), wide.zeros(n, wp.float64)

    def solve() -> None:
        cholesky.launch_find(1, coupling, room)
        cholesky.take(diagonal, [(systems[0].couplings[0][0], 0), (coupling, room), (systems[0].couplings[2][0], 0)], done)
        cholesky.compute_and_solve(-1.0, rhs, x, dots)

    levels = set()
    for system, pairs in zip(systems, patterns, strict=True):
        wide.write(diagonal, system.diagonal)
        wide.write(rhs, system.gradient)
        wide.write(coupling.blocks, system.blocks[1])
        wide.write(coupling.row, pairs[:, 0].astype(np.int32))
        wide.write(coupling.column, pairs[:, 1].astype(np.int32))
        wide.write(coupling.count, np.array([len(pairs)], dtype=np.int32))
        cholesky.adopt(Elimination(n, *pairs.T, in_ranges=False))
        levels.add(cholesky.levels)
        graphs.run("solve", solve)
        assert wide.read(cholesky.missed)[0] == 0
        exact = system.dense()
        np.testing.assert_allclose(wide.read(x), exact, rtol=0, atol=1e-11 * np.abs(exact).max())
    assert (graphs.recorded, graphs.dropped) == (1, 0) and len(levels) == len(patterns)


def test_products_are_those_of_the_dense_factor():
    n = 70
    e = Elimination(n, *random_pairs(n, 400, seed=9).T, in_ranges=False)
    pattern, products = e.fill()
    row, column = pattern["row"], pattern["column"]
    place = {(j, i): s for s, (j, i) in enumerate(zip(row, column, strict=True))}
    assert len(products["left"]) == e.products
    for s, (j, i) in enumerate(zip(row, column, strict=True)):
        mine = slice(products["starts"][s], products["starts"][s + 1])
        common = [k for k in range(j) if (k, j) in place and (k, i) in place]
        assert products["left"][mine].tolist() == [place[k, j] for k in common]
        assert products["right"][mine].tolist() == [place[k, i] for k in common]


def test_levels_are_few():
    """A cube of a thousand boxes, whose minimum degree gives a tree twice as high, and a long chain."""
    assert len(Elimination(1000, *cube(10).T, in_ranges=False).levels) < 250
    assert len(Elimination(5000, *chain(5000).T, in_ranges=False).levels) < 20
