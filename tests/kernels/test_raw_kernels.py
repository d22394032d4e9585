"""The hand-written CUDA kernels against the Warp kernels they may replace.

Without a GPU the same sources run on the processor (`cuda_on_cpu`); with ``--device cuda`` they run there, through CuPy.
"""

import numpy as np
import pytest
import warp as wp
from block_systems import System, chain, random_pairs
from cuda_on_cpu import COMPILER, Held
from on_device import NAME

import abd
from abd.backends.device.device import EMULATED, Device
from abd.backends.linear.cholesky import Addresses
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.bodies.affine import vec12
from cuda_kernels.contact import blocks
from cuda_kernels.linear import krylov

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(COMPILER is None and NAME == "cpu", reason="no C++ compiler is there to emulate CUDA with"),
]
SIZES = (1, 3, 45)


@pytest.fixture(scope="module")
def raw_device() -> Device:
    """A device that runs every kernel and its raw kernel, and compares."""
    device = Device(NAME)
    device.raw = Held(device)
    return device


class Numbers:
    """Random arguments."""

    def __init__(self, device: Device, seed: int):
        self.device, self.rng = device, np.random.default_rng(seed)

    def rows(self, *shape: int) -> wp.array:
        """(..., 12) numbers as rows."""
        return self.device.upload(self.rng.normal(size=(*shape, 12)), vec12)

    def pairs(self, n: int) -> wp.array:
        return self.device.upload(self.rng.normal(size=(n, 2)), wp.vec2d)

    def integers(self, values) -> wp.array:
        return self.device.upload(values, wp.int32)

    def done(self, n: int) -> wp.array:
        """Some bodies, never the first one."""
        return self.integers((self.rng.random(n) < 0.3) & (np.arange(n) > 0))


@pytest.mark.parametrize("n", SIZES)
def test_products_with_three_couplings(raw_device, n):
    """This includes bodies without entries, with one, and with more than a warp reads at once; merged pairs; done bodies."""
    hub = np.array([(0, k) for k in range(1, n)], dtype=int).reshape(-1, 2)
    loose = random_pairs(n, n // 2, seed=1)
    system = System(raw_device, n, hub, loose, loose[::2, ::-1], seed=n)
    (a, _), (b, _), (c, pairs) = system.couplings
    numbers = Numbers(raw_device, n)
    merged = numbers.integers(np.arange(max(pairs, 1)) % 3 == 0)
    done, x, r, y, products = numbers.done(n), numbers.rows(n), numbers.rows(n), numbers.rows(n), numbers.pairs(n)
    diagonal, addresses = raw_device.upload(system.diagonal, wp.float64), Addresses(raw_device)
    parts = [raw_device.zeros(max(len(ends), 1), vec12) for ends in system.pairs]
    table = addresses.table([a, b, c], merged=[None, None, merged], parts=parts)
    raw_device.launch(krylov.multiply_rows, n, done, raw_device.rows(diagonal), 3, table, x, y)
    raw_device.launch(krylov.add_columns, n, done, 3, table, x, r, y, products)
    H = np.zeros((n, 12, n, 12))
    H[np.arange(n), :, np.arange(n), :] = system.diagonal
    kept = [np.ones(len(hub)), np.ones(len(loose)), np.arange(pairs) % 3 != 0]
    for ends, values, keep in zip(system.pairs, system.blocks, kept, strict=True):
        for (i, j), B, k in zip(ends, values, keep, strict=True):
            H[i, :, j, :] += k * B
            H[j, :, i, :] += k * B.T
    works = done.numpy() == 0
    expected = np.einsum("iajb,jb->ia", H, np.where(works[:, None], x.numpy(), 0.0))
    np.testing.assert_allclose(y.numpy()[works], expected[works], rtol=0, atol=1e-12 * np.abs(expected).max())
    dots = np.sum(np.stack([r.numpy(), expected], axis=1) * x.numpy()[:, None], axis=2)
    np.testing.assert_allclose(products.numpy()[works], dots[works], rtol=0, atol=1e-11 * np.abs(dots).max())


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("begin", [0, 1])
def test_updates_of_conjugate_gradients(raw_device, n, begin):
    """One of several islands has converged."""
    numbers = Numbers(raw_device, n)
    done, island = numbers.done(n + begin), numbers.integers(np.arange(n + begin) % 3)
    weights = np.array([[2.0, 0.0, 0.75], [0.0, 3.0, 0.5]])
    a, b = (raw_device.upload(one, wp.float64) for one in weights)
    z, _, p, q, x, r = vectors = [numbers.rows(n + begin) for _ in range(6)]
    inverse = numbers.rows(n + begin, 12)
    a_i, b_i = weights[:, island.numpy(), None]
    works = ((done.numpy() == 0) & (np.arange(n + begin) >= begin))[:, None] & (a_i != 0.0)
    for has_inverse in (0, 1):
        before = [one.numpy().copy() for one in vectors]
        raw_device.launch(krylov.descend, n, done, island, a, b, *vectors, inverse, has_inverse, begin=begin)
        moved = [before[0] + b_i * before[2], before[1] + b_i * before[3]]
        expected = [*moved, before[4] + a_i * moved[0], before[5] - a_i * moved[1]]
        for values, old, new in zip((p, q, x, r), before[2:], expected, strict=True):
            np.testing.assert_allclose(values.numpy(), np.where(works, new, old), atol=1e-13)
    divided = np.where(works, np.einsum("nrc,nr->nc", inverse.numpy(), r.numpy()), before[0])
    np.testing.assert_allclose(z.numpy(), divided, rtol=0, atol=1e-13 * np.abs(divided).max())


@pytest.mark.parametrize("pairs", SIZES)
def test_partial_sums_are_combined(raw_device, pairs):
    """Pairs have none, one or several further runs; capacity exceeds their number."""
    numbers = Numbers(raw_device, pairs)
    further = numbers.rng.integers(0, 4, size=pairs) * (np.arange(pairs) % 2)
    rest = np.concatenate([[0], np.cumsum(further)])
    runs, capacity = pairs + rest[-1], pairs + rest[-1] + 3
    sums = _sums(numbers, capacity)
    H = sums.H_ij.numpy().copy()
    counts = numbers.integers([pairs, runs])
    raw_device.launch(blocks.join_runs, 12 * (pairs + 2), counts, numbers.integers([*rest, *2 * [rest[-1] + 3]]), sums)
    expected = H.copy()
    np.add.at(expected, np.repeat(np.arange(pairs), further), H[pairs:runs])
    np.testing.assert_allclose(sums.H_ij.numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_contributions_of_bodies_are_summed(raw_device, n):
    """This includes done bodies, bodies of no pair, and one with more pairs than a warp reads at once."""
    numbers = Numbers(raw_device, n)
    pairs = np.array([(0, k) for k in range(1, n)] + [(2, 1)] * (n > 2), dtype=int).reshape(-1, 2)
    pairs = pairs[(pairs % 7 != 3).all(axis=1)]
    (coupling, count), rng = System(raw_device, n, pairs).couplings[0], numbers.rng
    sums, done = _sums(numbers, count + 2), numbers.done(n)
    gradient, diagonal = raw_device.upload(rng.normal(size=(n, 12)), wp.float64), numbers.rows(n, 12)
    g, H = gradient.numpy().copy(), diagonal.numpy().copy()
    raw_device.launch(blocks.gather_bodies, 12 * n, done, coupling.starts, coupling.entries, sums, gradient, diagonal)
    for side, (g_k, H_k) in enumerate(((sums.g_i, sums.H_ii), (sums.g_j, sums.H_jj))):
        works = done.numpy()[pairs[:, side]] == 0
        np.add.at(g, pairs[works, side], g_k.numpy()[:count][works])
        np.add.at(H, pairs[works, side], H_k.numpy()[:count][works])
    np.testing.assert_allclose(gradient.numpy(), g, atol=1e-13)
    np.testing.assert_allclose(diagonal.numpy(), H, atol=1e-13)


def _sums(numbers: Numbers, count: int) -> blocks.PairSums:
    sums = blocks.PairSums()
    for name in ("g_i", "g_j"):
        setattr(sums, name, numbers.rows(count))
    for name in ("H_ii", "H_ij", "H_jj"):
        setattr(sums, name, numbers.rows(count, 12))
    return sums


@pytest.fixture
def in_levels(monkeypatch):
    """Schedules as on a GPU: no ranges, all rows in levels."""

    def elimination(self, keys):
        n = len(self.bodies)
        return Elimination(n, keys // n, keys % n, in_ranges=False)

    monkeypatch.setattr(LinearSolver, "_elimination", elimination)


@pytest.mark.parametrize("joined", [False, True])
def test_conjugate_gradients(raw_device, in_levels, joined):
    """The preconditioners are block-Jacobi and the factor of bodies and joints."""
    joints = chain(20) if joined else np.zeros((0, 2), dtype=int)
    loose = random_pairs(20, 12, seed=3)
    system = System(raw_device, 20, joints, loose, loose[::2, ::-1], stiffness=1.0)
    exact = system.dense()
    assert np.abs(system.solve(system.solver("pcg", tolerance=1e-6)) - exact).max() <= 1e-4 * np.abs(exact).max()
    assert {"multiply_rows", "add_columns", "descend"} <= set(raw_device.raw.launches)


@pytest.mark.skipif(NAME == EMULATED, reason="its launches cover the capacity, the emulated raw kernels their items")
def test_a_step_of_a_scene():
    """Contact and friction of a stack are solved by conjugate gradients, with cancellation in products."""
    simulation = abd.Simulation(abd.load("box_stack", ["solver.linear_solver=pcg", "solver.contact_set=ipc"]), device=NAME)
    simulation.backend.iteration.graphs.whole = False  # launches of records are not watched
    for _ in range(30):  # until the boxes stand on one another
        simulation.step()
    held = simulation.backend.device.raw = Held(simulation.backend.device, relative=1e-10)
    simulation.step()
    assert {"join_runs", "gather_bodies", "invert_pivots", "multiply_rows", "add_columns", "descend"} == set(held.launches)
