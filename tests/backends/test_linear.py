"""Linear solvers against dense LAPACK: chains, trees, loops, nets, contacts that come and go; patterns, schedules."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import warp as wp
from block_systems import System, chain, cube, net, random_pairs, random_tree, star_of_chains
from on_device import NAME

import abd
import cuda_kernels
from abd.backends.answers import LOOSEST
from abd.backends.device.device import Device
from abd.backends.linear import elimination, linear, orders
from abd.backends.linear.conjugate_gradients import DOUBT_EVERY
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.linear import LinearSolver
from abd.backends.numbering import Division
from abd.backends.recorded import iteration
from abd.backends.reference.forcing import Forcing
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
    "full": (12, random_pairs(12, 66, seed=2)),
}


@pytest.fixture(scope="module")
def device() -> Device:
    device = Device(NAME)
    device.load(cuda_kernels)
    return device


def largest_error(x: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(x - exact).max() / np.abs(exact).max())


def split_everywhere(monkeypatch) -> None:
    """Cut even small trees into many ranges and levels."""
    monkeypatch.setattr(elimination, "WORTH_CUTTING", 0.0)
    monkeypatch.setattr(elimination, "WORTH_DEALING", 0.0)
    monkeypatch.setattr(elimination, "LEVEL_COST", 0.0)


@pytest.mark.parametrize("graph", GRAPHS)
def test_direct_and_iterative_solutions_are_the_dense_one(device, graph):
    n, pairs = GRAPHS[graph]
    system = System(device, n, pairs)
    exact = system.dense()
    direct, pcg = system.solver("direct"), system.solver("pcg")
    assert largest_error(system.solve(direct), exact) <= 1e-12
    assert direct.iterations == 0 and direct.solver.describe()["name"] == "block Cholesky"
    assert largest_error(system.solve(pcg), exact) <= 1e-9
    assert pcg.iterations == 1, "joints alone: the preconditioner is the matrix"


@pytest.mark.parametrize("graph", GRAPHS)
def test_schedules_agree_and_threads_do_not_matter(monkeypatch, device, graph):
    """One range, many ranges with levels above them, or levels alone: the same solution; any threads: the same bits."""
    n, pairs = GRAPHS[graph]
    exact = System(device, n, pairs).dense()
    split_everywhere(monkeypatch)
    solutions = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ABD_THREADS", threads)
        system = System(Device(NAME), n, pairs)
        solutions.append(system.solve(system.solver("direct")))
        assert largest_error(solutions[-1], exact) <= 1e-12
        np.testing.assert_array_equal(solutions[-1], solutions[0])
    monkeypatch.setattr(
        LinearSolver, "_elimination", lambda self, keys: Elimination(n, keys // n, keys % n, in_ranges=False)
    )
    system = System(device, n, pairs)
    solver = system.solver("direct")
    assert largest_error(system.solve(solver), exact) <= 1e-12
    assert solver.solver.describe()["ranges"] == 0 and solver.solver.describe()["levels"] > 0


def test_trees_have_no_fill_and_chains_are_eliminated_from_both_ends():
    for n, pairs in ((1000, chain(1000)), (300, random_tree(300, seed=3)), (61, star_of_chains(4, 15))):
        assert Elimination(n, *pairs.T).slots == 2 * n - 1
    long = Elimination(20000, *chain(20000).T)
    sizes = np.diff(long.ranges)
    assert len(sizes) == 2 and sizes.min() > 9000 and len(long.levels) == 2


@pytest.mark.parametrize("graph", [cube(6), net(12, 12), random_pairs(300, 900, 1)], ids=["cube", "net", "random"])
def test_the_order_is_that_of_a_complete_factor(graph):
    """Which nobody computes for it: that takes time like the fill."""
    size = int(graph.max()) + 1
    ends = np.concatenate([graph, graph[:, ::-1]]).T
    A = scipy.sparse.csc_matrix((np.full(len(ends[0]), 1.0), tuple(ends)), shape=(size, size))
    A = (A + 2.0 * size * scipy.sparse.eye_array(size, format="csc")).tocsc()
    place = scipy.sparse.linalg.splu(
        A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    ).perm_c
    order = orders.minimum_degree(scipy.sparse.csr_matrix((np.ones(len(ends[0]), bool), tuple(ends)), shape=(size, size)))
    np.testing.assert_array_equal(place[order], np.arange(size))


def test_levels_are_few_where_items_run_side_by_side():
    """Chains, ladders and trees without ranges: a logarithmic number of levels for at most a few times the products."""
    for n, pairs, levels in (
        (1000, chain(1000), 14),
        (2000, net(2, 1000), 30),
        (1001, star_of_chains(10, 100), 14),
        (2000, random_tree(2000, seed=4), 30),
    ):
        serial, wide = (Elimination(n, *pairs.T, in_ranges=in_ranges) for in_ranges in (True, False))
        assert len(wide.levels) - 1 <= levels and len(wide.ranges) == 1
        assert wide.products <= 4 * serial.products
        assert sorted(wide.order) == list(range(n))


@pytest.mark.parametrize("in_ranges", [True, False])
def test_fill_is_the_pattern_of_the_dense_factor(in_ranges):
    n, pairs = GRAPHS["two nets and a chain"]
    e = Elimination(n, *pairs.T, in_ranges=in_ranges)
    arrays, panels = e.fill()
    A = np.zeros((n, n))
    A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = -1.0
    A += n * np.eye(n)
    U = np.linalg.cholesky(A[np.ix_(e.order, e.order)]).T
    rows, columns = np.nonzero(U)
    np.testing.assert_array_equal(arrays["row"], rows)
    np.testing.assert_array_equal(arrays["column"], columns)
    off = np.count_nonzero(U, axis=1) - 1
    assert e.slots == len(rows) and e.products == (off * (off + 1) // 2).sum()
    assert ("panels" in panels) == in_ranges and len(arrays["up_row"]) == (0 if in_ranges else len(rows) - n)


def test_rows_of_a_panel_have_the_same_blocks_right_of_them():
    n, pairs = 400, net(20, 20)
    e = Elimination(n, *pairs.T)
    pattern, panels = e.fill()
    columns = [pattern["column"][a:b] for a, b in zip(pattern["starts"][:-1], pattern["starts"][1:], strict=True)]
    bounds, updates = panels["panels"], {}
    assert np.diff(bounds).max() == elimination.PANEL and (bounds[0], bounds[-1]) == (0, n)
    for k, (first, last) in enumerate(pairwise(bounds)):
        for row in range(first, last):
            np.testing.assert_array_equal(columns[row], [*range(row, last), *columns[last - 1][1:]])
        shared = columns[last - 1][1:]
        for reach, column in zip(range(len(shared), 0, -1), shared, strict=True):
            updates.setdefault((panels["panel"][column], k), reach)
    listed = zip(np.repeat(np.arange(len(bounds) - 1), np.diff(panels["ups"])), panels["up_panel"], strict=True)
    assert sorted(updates) == [(int(target), int(source)) for target, source in listed]
    assert [updates[key] for key in sorted(updates)] == panels["up_reach"].tolist()


@pytest.mark.parametrize("graph", ["ladder of four-bars", "net", "two nets and a chain", "full"])
def test_values_do_not_depend_on_panels(monkeypatch, device, graph):
    """The order of the rows alone decides the bits, however many of them are worked on together."""
    n, pairs = GRAPHS[graph]
    system, solutions = System(device, n, pairs), []
    for most in (1, 2, 8):
        monkeypatch.setattr(elimination, "PANEL", most)
        solutions.append(system.solve(system.solver("direct")))
        np.testing.assert_array_equal(solutions[-1], solutions[0])


def contact_system(device, seed=5, contacts=40) -> System:
    """Two chains with contacts between their links; friction in half of them, written the other way round, and where
    contact has ended."""
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


def test_block_jacobi_reaches_the_dense_solution(device):
    system = System(device, 40, NOTHING, random_pairs(40, 60, seed=6))
    moving = np.ones(40, dtype=bool)
    moving[11] = False
    solver = system.solver("pcg", moving=moving)
    assert largest_error(system.solve(solver), system.dense(moving)) <= 1e-9
    assert solver.iterations > 10 and solver.solver.describe()["name"] == "pcg, block-Jacobi"


def test_static_bodies_stay_out_of_the_system(device):
    system = contact_system(device)
    moving = np.ones(40, dtype=bool)
    moving[[0, 7, 33]] = False
    exact = system.dense(moving)
    x = system.solve(system.solver("direct", moving=moving))
    assert largest_error(x, exact) <= 1e-12 and not x[~moving].any()


def with_pairs(device, system: System, loose: np.ndarray, seed: int = 9) -> System:
    """The joints of a system with other pairs in contact."""
    other = System(device, 40, system.pairs[0], loose, seed=seed)
    other.couplings[0], other.blocks[0] = system.couplings[0], system.blocks[0]
    other.diagonal += 1000.0 * np.eye(12)
    return other


def test_a_pattern_serves_as_long_as_it_holds_all_pairs(device, monkeypatch):
    system = contact_system(device)
    solver = system.solver("direct")
    system.solve(solver)
    pattern = solver.solver._whole.elimination
    analyses = []
    analyse = Elimination.__init__
    monkeypatch.setattr(
        Elimination, "__init__", lambda self, *args, **options: (analyses.append(1), analyse(self, *args, **options))[0]
    )
    loose = system.pairs[1]
    fewer = with_pairs(device, system, loose[3:], seed=8)
    assert largest_error(fewer.solve(solver), fewer.dense()) <= 1e-12
    assert solver.solver._whole.elimination is pattern and not analyses
    more = with_pairs(device, system, random_pairs(40, 60, seed=9))
    assert largest_error(more.solve(solver), more.dense()) <= 1e-12
    assert solver.solver._whole.elimination is not pattern and len(analyses) == 1


def test_pairs_that_have_parted_do_not_crowd_out_others(device, monkeypatch):
    """They stay in a pattern, but not where they are too many, nor where a factor is refused because of them."""
    system, later = contact_system(device), random_pairs(40, 90, seed=9)
    most, few = (with_pairs(device, system, later[:count]) for count in (90, 10))
    for other, keeps in ((most, True), (few, False)):
        solver = system.solver("direct")
        system.solve(solver)
        before = set(solver.solver._whole_keys)
        other.solve(solver)
        assert (before <= set(solver.solver._whole_keys)) == keeps
    choose = linear.choose

    def refuse(wanted, elimination, pairs, *rest):
        return (
            linear.Choice(False, "too wide") if elimination.slots > limit else choose(wanted, elimination, pairs, *rest)
        )

    fresh = most.solver("direct")
    most.solve(fresh)
    limit = fresh.solver._whole.elimination.slots
    monkeypatch.setattr(linear, "choose", refuse)
    solver = system.solver("direct")
    system.solve(solver)
    assert solver.solver.choice.direct
    assert largest_error(most.solve(solver), most.dense()) <= 1e-12
    assert solver.solver.choice.direct and solver.solver._whole.elimination.slots == limit


def test_without_contacts_the_pattern_of_joints_is_used_again(device):
    system = contact_system(device)
    solver = system.solver("direct")
    system.solve(solver)
    system.couplings[1:] = [(c, 0) for c, _ in system.couplings[1:]]
    system.pairs[1:] = [NOTHING, NOTHING]
    system.blocks[1:] = [np.zeros((0, 12, 12))] * 2
    assert largest_error(system.solve(solver), system.dense()) <= 1e-12
    assert solver.solver.describe()["factor_blocks"] == (104 if device.wide else 78)


@pytest.mark.parametrize("wanted", ["direct", "pcg"])
def test_corrections_use_the_matrix_of_the_last_solve(device, wanted):
    system = contact_system(device)
    solver = system.solver(wanted)
    first = system.solve(solver)
    corrected = solver.correct(device.upload(2.0 * system.gradient, wp.float64))
    assert largest_error(corrected, 3.0 * first) <= 1e-5


def test_bodies_that_are_done_keep_their_direction(device):
    system = System(device, 20, np.concatenate([chain(10), 10 + chain(10)]))
    for wanted in ("direct", "pcg"):
        solver = system.solver(wanted)
        solver.solver.islands._assign(Division.of(np.repeat([0, 1], 10).astype(np.int32)))
        expected = system.solve(solver)
        device.write(solver.solver.islands.done, np.repeat([0, 1], 10).astype(np.int32))
        system.gradient *= 2.0
        x = system.solve(solver)
        np.testing.assert_allclose(x[:10], 2.0 * expected[:10], rtol=1e-9)
        np.testing.assert_array_equal(x[10:], expected[10:])
        system.gradient /= 2.0


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
    """Contacts that couple more than the bodies' own blocks carry: iterations would go on for nothing, and soon."""
    pairs = chain(40)
    system = System(device, 40, NOTHING, pairs)
    system.diagonal[:] = np.eye(12)
    system.blocks = [np.zeros((0, 12, 12)), np.tile(-50.0 * np.eye(12), (len(pairs), 1, 1)), np.zeros((0, 12, 12))]
    system.couplings = [system.coupling(p, b) for p, b in zip(system.pairs, system.blocks, strict=True)]
    solver = system.solver("pcg")
    with pytest.raises(StepFailure) as failure:
        system.solve(solver)
    assert failure.value.reason == "not_positive_definite" and solver.iterations == DOUBT_EVERY


def test_the_choice_follows_size_and_structure(device):
    """Chains and small systems are factored; a large heap, whose factor fills in, is not."""
    cluster = random_pairs(8, 28, seed=1)
    assert System(device, 8, NOTHING, cluster).solver("auto").solver.describe() == {}
    for system, name in (
        (System(device, 300, chain(300)), "block Cholesky"),
        (System(device, 8, NOTHING, cluster), "block Cholesky"),
        (System(device, 12**3, NOTHING, cube(12), stiffness=0.1), "pcg, block-Jacobi"),
    ):
        solver = system.solver("auto", tolerance=1e-4)
        system.solve(solver)
        assert solver.solver.describe()["name"] == name
        assert "a factorisation takes" in solver.solver.describe()["why"]


def test_a_solve_goes_on_where_it_ended(device):
    """Tightening takes the iterations that were saved, no more, and gives what the tight solve gives."""
    system = contact_system(device)
    tight, loose = system.solver("pcg"), system.solver("pcg")
    expected = system.solve(tight)
    rough = system.solve(loose, forcing=1e-2)
    assert largest_error(rough, expected) > 1e-6 and loose.iterations < tight.iterations
    np.testing.assert_array_equal(loose.tighten(), expected)
    assert loose.iterations == tight.iterations


def test_forcing_follows_progress_and_lets_only_tight_solves_decide():
    forcing = Forcing(1e-4)
    assert forcing.tolerance == LOOSEST and forcing.decides(False) and not forcing.decides(True)
    forcing.advance(1.0)
    forcing.advance(0.9)
    assert forcing.tolerance == LOOSEST
    forcing.advance(0.9 * 0.05)
    assert forcing.tolerance == pytest.approx(0.9 * 0.05**2)
    forcing.advance(1e-9)
    assert forcing.tolerance == 1e-4 and forcing.decides(True)
    assert Forcing(0.1).tolerance == 0.1 and Forcing(0.1).decides(True)


@pytest.mark.parametrize(("small", "pairs"), [(128, 1), (0, 0)])
def test_a_large_world_factors_no_pairs_far_from_contact(monkeypatch, small, pairs):
    """The boxes around two slanting rods meet, the rods do not; a third body, on the ground, has steps with lists."""
    monkeypatch.setattr(iteration, "SMALL_WORLD", small)
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    scene.add_body("cube", box=(0.1,) * 3, position=(3, 0, 0.05))
    for name, z in (("lower", 2.0), ("upper", 2.4)):
        slant = {"axis": (0, 1, 0), "degrees": 45}
        scene.add_body(name, box=(1.0, 0.02, 0.02), position=(0, 0, z), axis_angle=slant)
    simulation = abd.Simulation(scene, device="cpu")
    for _ in range(3):
        simulation.step()
    assert simulation.stepper.touching.any()
    assert len(simulation.stepper.backend.linear.memory()["solver_pairs"]) == pairs


def test_worlds_keep_their_pairs_where_the_first_part_has_none():
    """Parts of a step end with memories of their own, and the first one never saw pairs come and go."""
    scene = abd.Scene()
    for k in range(2):
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0, 0, k))
    simulation = abd.Simulation(scene.replicate(2), device="cpu")
    solver, world = simulation.stepper.backend.linear, simulation.model.bodies.world
    without = {"solver_pairs": np.zeros(0, dtype=np.int64), "solver_numbers": np.array([0, 0, 50, 50, 0])}
    last = 2 * len(world) + 3  # of its bodies, which are the last two
    having = {"solver_pairs": np.array([last]), "solver_numbers": np.array([1, 0, 50, 50, 1])}
    found = solver.memory_of_parts([(world == world[0], without), (world == world[-1], having)])
    assert found["solver_pairs"].tolist() == [last]
    assert found["solver_numbers"].tolist() == [1, 0, 50, 50, 1]
