"""The factor level by level, by launches that know nothing of the pattern, and solves with it: dense systems, records that serve
any pattern, how long the longest chain of products is."""

import numpy as np
import pytest
import warp as wp
from block_systems import System, chain, net, random_pairs, random_tree, star_of_chains
from on_device import NAME

from abd.backends.device.device import EMULATED, Device
from abd.backends.device.graphs import Graphs
from abd.backends.linear.cholesky import Cholesky
from abd.backends.linear.elimination import Elimination
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


def test_failed_pivots_are_told(wide):
    system = System(wide, 12, chain(12))
    system.diagonal[5] = -np.eye(12)
    with pytest.raises(StepFailure, match="pivot") as failure:
        system.solve(system.solver("direct"))
    assert failure.value.bodies == ("body 5",)


def test_a_record_serves_any_pattern(wide):
    """Patterns with more rows per level, more levels or fewer blocks are solved by the record of the first one."""
    n, graphs = 40, Graphs(wide)
    patterns = [random_pairs(n, 200, seed=3), chain(n), star_of_chains(39, 1), random_pairs(n, 150, seed=4)]
    systems = [System(wide, n, NOTHING, np.concatenate([pairs, NOTHING]), seed=k) for k, pairs in enumerate(patterns)]
    # a record holds its arrays: blocks and pairs of all systems are written to those of the first one
    (_, _), (coupling, capacity), _ = systems[0].couplings
    cholesky = Cholesky(wide, np.arange(n), n, 3)
    diagonal, rhs, x = (wide.zeros(shape, wp.float64) for shape in ((n, 12, 12), (n, 12), (n, 12)))
    done, dots = wide.zeros(n, wp.int32), wide.zeros(n, wp.float64)

    def solve() -> None:
        cholesky.launch_find(1, coupling, capacity)
        first, _, last = (one for one, _ in systems[0].couplings)
        cholesky.set_sources(diagonal, [(first, 0), (coupling, capacity), (last, 0)], done)
        cholesky.compute_and_solve(-1.0, rhs, x, dots)

    levels = set()
    for system, pairs in zip(systems, patterns, strict=True):
        wide.write(diagonal, system.diagonal)
        wide.write(rhs, system.gradient)
        wide.write(coupling.blocks, system.blocks[1])
        wide.write(coupling.row, pairs[:, 0].astype(np.int32))
        wide.write(coupling.column, pairs[:, 1].astype(np.int32))
        wide.write(coupling.count, np.array([len(pairs)], dtype=np.int32))
        cholesky.set_elimination(Elimination(n, *pairs.T, in_ranges=False))
        levels.add(cholesky.levels)
        graphs.run("solve", solve)
        assert wide.read(cholesky.missed)[0] == 0
        exact = system.dense()
        np.testing.assert_allclose(wide.read(x), exact, rtol=0, atol=1e-11 * np.abs(exact).max())
    assert (graphs.recorded, graphs.dropped) == (1, 0) and len(levels) == len(patterns)
