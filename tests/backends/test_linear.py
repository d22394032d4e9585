"""Linear solvers against dense LAPACK: trees, loops, nets, changing contacts; factors; choice of a solver."""

import numpy as np
import pytest
import warp as wp
from block_systems import System, chain, cube, net, random_pairs, random_tree, star_of_chains
from on_device import NAME

import cuda_kernels
from abd.backends.device.device import EMULATED, Device
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.linear import choose
from abd.errors import StepFailure

pytestmark = pytest.mark.device

NOTHING = np.zeros((0, 2), dtype=int)
GRAPHS = {
    "one body": (1, NOTHING),
    "free bodies": (7, NOTHING),
    "chain": (40, chain(40)),
    "star": (31, star_of_chains(3, 10)),
    "tree": (60, random_tree(60, seed=1)),
    "ladder of four-bars": (60, net(2, 30)),
    "ring": (24, np.concatenate([chain(24), [[23, 0]]])),
    "net": (49, net(7, 7)),
    "two nets and a chain": (60, np.concatenate([net(5, 5), 25 + net(5, 5), 50 + chain(10)])),
    "hub": (40, star_of_chains(39, 1)),
    "full": (70, random_pairs(70, 2415, seed=2)),
}


WIDE = EMULATED if NAME == "cpu" else NAME
"""A device whose launches have the shape of CUDA's: the factor is computed level by level."""


@pytest.fixture(scope="module", params=dict.fromkeys((NAME, WIDE)))
def device(request) -> Device:
    device = Device(request.param)
    device.load(cuda_kernels)
    return device


def largest_error(x: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(x - exact).max() / np.abs(exact).max())


@pytest.mark.parametrize("graph", GRAPHS)
def test_direct_and_iterative_solutions_equal_the_dense_one(device, graph):
    n, pairs = GRAPHS[graph]
    system = System(device, n, pairs)
    exact = system.dense()
    direct, pcg = system.solver("direct"), system.solver("pcg")
    assert largest_error(system.solve(direct), exact) <= 1e-12
    assert direct.iterations == 0 and direct.solver.describe()["name"] == "block Cholesky"
    assert largest_error(system.solve(pcg), exact) <= 1e-9
    assert pcg.iterations == 1, "joints alone: the preconditioner is the matrix"


def contact_system(device, seed=5, contacts=40) -> System:
    """Two chains with contacts between their links, half with friction in the other order; some friction without contact."""
    joints = np.concatenate([chain(20), 20 + chain(20)])
    loose = random_pairs(40, contacts, seed)
    return System(device, 40, joints, loose[3:], loose[::2, ::-1], seed=seed)


def test_contacts_and_friction_add_to_the_blocks_of_joints(device):
    system = contact_system(device)
    exact = system.dense()
    assert largest_error(system.solve(system.solver("direct")), exact) <= 1e-12
    pcg = system.solver("pcg")
    assert largest_error(system.solve(pcg), exact) <= 1e-9
    assert pcg.iterations > 1 and "bodies and joints" in pcg.solver.describe()["name"]
    moving = ~np.isin(np.arange(40), (0, 7, 33))
    x = system.solve(system.solver("direct", moving=moving))
    assert largest_error(x, system.dense(moving)) <= 1e-12 and not x[~moving].any(), "static bodies stay out of the system"


def test_block_jacobi_reaches_the_dense_solution(device):
    system = System(device, 40, NOTHING, random_pairs(40, 60, seed=6))
    moving = np.ones(40, dtype=bool)
    moving[11] = False
    solver = system.solver("pcg", moving=moving)
    assert largest_error(system.solve(solver), system.dense(moving)) <= 1e-9
    assert solver.iterations > 10 and solver.solver.describe()["name"] == "pcg, block-Jacobi"


@pytest.mark.parametrize("wanted", ["direct", "pcg"])
def test_corrections_use_the_matrix_of_the_last_solve(device, wanted):
    system = contact_system(device)
    solver = system.solver(wanted)
    first = system.solve(solver)
    corrected = solver.correct(device.upload(2.0 * system.gradient, wp.float64))
    assert largest_error(corrected, 2.0 * first) <= 1e-5


def test_a_matrix_that_is_not_positive_definite_names_the_body(device):
    system = System(device, 30, chain(30))
    system.diagonal[17, 4, 4] = -1.0
    with pytest.raises(StepFailure) as failure:
        system.solve(system.solver("direct"))
    assert failure.value.reason == "not_positive_definite" and failure.value.bodies == ("body 17",)
    system.diagonal[17, 4, 4] = np.nan
    with pytest.raises(StepFailure, match="not a number"):
        system.solve(system.solver("direct"))


def test_conjugate_gradients_without_positive_curvature_stop(device):
    """Contacts that couple more than the diagonal blocks carry do not converge, and the solver stops."""
    pairs = chain(40)
    system = System(device, 40, NOTHING, pairs)
    system.diagonal[:] = np.eye(12)
    system.blocks = [np.zeros((0, 12, 12)), np.tile(-50.0 * np.eye(12), (len(pairs), 1, 1)), np.zeros((0, 12, 12))]
    system.couplings = [system.coupling(p, b) for p, b in zip(system.pairs, system.blocks, strict=True)]
    solver = system.solver("pcg")
    with pytest.raises(StepFailure) as failure:
        system.solve(solver)
    assert failure.value.reason == "not_positive_definite" and solver.iterations <= 2


CHOICES = {
    # bodies, pairs, whether these are contacts, and whether they are factored
    "a few bodies": (11, chain(11), True, True),
    "a cube of boxes": (216, cube(6), True, True),
    "a larger cube": (512, cube(8), True, False),
    "joints without contacts": (343, cube(7), False, True),
    "a dense matrix": (500, random_pairs(500, 60_000, seed=1), True, False),
}


@pytest.mark.parametrize("in_ranges", [True, False])
@pytest.mark.parametrize("case", CHOICES)
def test_matrices_are_factored_if_the_fill_is_small(case, in_ranges):
    n, pairs, has_contacts, direct = CHOICES[case]
    choice = choose("auto", Elimination(n, *pairs.T, in_ranges=in_ranges), len(pairs), has_contacts=has_contacts)
    assert choice.direct == direct, choice.why
