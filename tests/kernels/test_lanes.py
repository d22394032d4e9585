"""Kernels that share an item among the 32 lanes of a warp, against NumPy and dense solutions, in several orders of threads."""

import numpy as np
import pytest
import warp as wp
from block_systems import System, chain, net, random_pairs, random_tree
from cuda_on_cpu import COMPILER, Emulated
from on_device import NAME
from warp_lanes import lanes

import abd
from abd.backends.device.device import EMULATED
from abd.backends.device.scan import Scan
from abd.backends.islands import Islands
from cuda_kernels.parallel import sums

pytestmark = pytest.mark.skipif(COMPILER is None or NAME != "cpu", reason="no C++ compiler is there to emulate CUDA with")
ORDERS = (0, 1, 3)
GRAPHS = {
    "chain": (40, chain(40)),
    "tree": (60, random_tree(60, 1)),
    "net": (25, net(5, 5)),
    "full": (20, random_pairs(20, 190, seed=2)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [0, 1, 33, 1000, 5000])
def test_scans(size, order):
    counts = np.random.default_rng(size).integers(0, 5, size + 1).astype(np.int32)
    with lanes(order) as device:
        scan, offsets = Scan(device), device.zeros(size + 1, wp.int32)
        scan.reserve(max(size, 1))
        scan.run(device.upload(counts, wp.int32), offsets, device.upload([size], wp.int32), 0, size)
        np.testing.assert_array_equal(device.read(offsets, size + 1), np.concatenate([[0], np.cumsum(counts[:size])]))
        assert device.laned or not size


@pytest.mark.parametrize("size", [1, 33, 700])
@pytest.mark.parametrize(("operation", "fold"), [(sums.SUM, np.sum), (sums.MIN, np.min), (sums.MAX, np.max)])
def test_reductions(size, operation, fold):
    """They agree to rounding, and always have the same order."""
    values, found = np.random.default_rng(size).normal(size=size), []
    for order in ORDERS:
        with lanes(order) as device:
            islands = Islands(device, size)
            found.append(device.read(islands.reduce(device.upload(values, wp.float64), operation, islands.each))[0])
            assert device.laned
    assert found == found[:1] * len(ORDERS)
    assert found[0] == pytest.approx(fold(values), rel=1e-12)


@pytest.mark.parametrize("solver", ["direct", "pcg"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_solves(graph, solver):
    n, pairs = GRAPHS[graph]
    found = []
    for order in ORDERS:
        with lanes(order) as device:
            system = System(device, n, pairs)
            found.append(system.solve(system.solver(solver)))
            assert device.laned
    exact = system.dense()
    assert np.abs(found[0] - exact).max() <= 1e-8 * np.abs(exact).max()
    np.testing.assert_array_equal(found, found[:1] * len(ORDERS))


@pytest.mark.parametrize("scene", ["box_stack", "chain", "ragdoll", "gear_train", "falling_box"])
def test_scenes_take_the_steps_of_the_processor(scene):
    """Newton iterations and contacts are equal, states agree to rounding; hand-written kernels take part as on CUDA."""
    plain = abd.Simulation(scene, device="cpu")
    steps = [plain.step() for _ in range(3)]
    with lanes(1) as device:
        laned = abd.Simulation(scene, device=EMULATED)
        laned.backend.device.raw = Emulated(1)
        for here in steps:
            there = laned.step()
            assert (there.newton_iterations, there.contacts) == (here.newton_iterations, here.contacts)
        assert device.laned > 50
    np.testing.assert_allclose(laned.stepper.q, plain.stepper.q, atol=1e-9)
