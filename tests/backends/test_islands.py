"""Islands: connected bodies, independent convergence, sleep; tables formed on the device equal their definition."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from checkpoints import assert_goes_on
from common_scenes import on_ground, sleepers
from on_device import NAME, follow

import abd
from abd.backends.device.device import Device
from abd.backends.device.scan import Scan
from abd.backends.islands import CHUNK, Islands
from abd.joints.closure.link_graph import connected_labels

pytestmark = pytest.mark.device

DT = 0.01


def two_worlds_apart(first: bool = True, second: bool = True, **solver) -> abd.Scene:
    """A box that hits the floor hard, spinning, and far from it one that falls freely."""
    settings = {"dt": DT, "contact_stiffness": 1e9, "d_hat": 1e-3, **solver}
    scene = abd.Scene(solver=settings)
    scene.add_body("floor", box=[2, 2, 0.2], position=[0, 0, -0.1], kind="static")
    if first:
        turn = {"axis": [1, 0.3, 0], "degrees": 20}
        spin = {"velocity": [0, 0, -8], "angular_velocity": [3, 2, 0]}
        scene.add_body("hitting", box=[0.4, 0.4, 0.4], position=[0, 0, 0.45], axis_angle=turn, **spin)
    if second:
        scene.add_body("falling", box=[0.4, 0.4, 0.4], position=[50, 0, 5], angular_velocity=[0, 0, 1])
    return scene


def states(scene: abd.Scene, device: str, steps: int) -> tuple[np.ndarray, list, list]:
    simulation = abd.Simulation(scene, device=device)
    reports, out = zip(*follow(simulation, steps, lambda report: (report, simulation.host_state().q)))
    return np.array(out), simulation.model.bodies.names, reports


def test_islands_do_not_influence_each_other():
    both, names, reports = states(two_worlds_apart(), NAME, 12)
    assert max(report.newton_iterations for report in reports) > 4
    for body, keys in (("hitting", {"second": False}), ("falling", {"first": False})):
        alone, own, _ = states(two_worlds_apart(**keys), NAME, 12)
        difference = both[:, names.index(body)] - alone[:, own.index(body)]
        assert np.abs(difference).max() <= 1e-7


def slept(simulation: abd.Simulation) -> list[str]:
    flags = simulation.backend.inactive.sleeping
    return [name for name, asleep in zip(simulation.model.bodies.names, flags, strict=True) if asleep]


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_islands_at_rest_sleep_until_a_body_comes_near(device):
    simulation = abd.Simulation(sleepers(), device=device)
    names = simulation.model.bodies.names
    near, far = names.index("near"), names.index("far")
    positions, asleep = zip(*follow(simulation, 44, lambda _: (simulation.host_state().q, slept(simulation))))
    positions = np.array(positions)
    assert asleep[25] == ["near", "far"]
    np.testing.assert_array_equal(positions[26], np.where(np.arange(len(names))[:, None] == 3, positions[26], positions[25]))
    awake = next(k for k in range(26, 44) if "near" not in asleep[k])
    assert 33 <= awake <= 38
    assert positions[-1, near, 0] > 1e-3
    assert asleep[-1] == ["far"]
    np.testing.assert_array_equal(positions[-1, far], positions[25, far])


def test_sleep_is_off_by_default_and_changes_little():
    resting, _, _ = states(sleepers(), NAME, 44)
    awake, _, reports = states(sleepers(sleep_speed=0.0), NAME, 44)
    assert all(report.converged for report in reports)
    assert np.abs(resting - awake).max() <= 2e-3
    assert sleepers(sleep_speed=0.0).spec.solver.sleep_speed == abd.Scene().spec.solver.sleep_speed


def test_sleep_resumes_bit_for_bit():
    first, second = (abd.Simulation(sleepers(), device=NAME) for _ in range(2))
    first.run(steps=17)
    assert_goes_on(first, second, 13)


def test_a_run_that_sleeps_balances_its_friction():
    """A run in which all islands sleep does not fail with repeated lagging."""
    scene = on_ground(0.5, dt=DT, d_hat=1e-3, sleep_speed=1e-2, sleep_time=0.05, friction_iterations=-1)
    scene.add_body("box", box=[0.5, 0.5, 0.5], position=[0, 0, 0.2505])
    simulation = abd.Simulation(scene, device=NAME)
    reports = [simulation.step() for _ in range(20)]
    assert slept(simulation) == ["box"]
    assert all(report.converged for report in reports) and reports[-1].newton_iterations == 0


def test_changing_contacts_resume_bit_for_bit():
    """The elimination order depends on the pairs of the step only, whichever patterns came before."""
    random = np.random.default_rng(4)
    scene = on_ground(0.3, dt=DT, d_hat=1e-3)
    for k in range(12):
        place = [0.35 * (k % 2), 0.35 * (k // 2 % 2), 0.25 + 0.36 * (k // 4)]
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0, 60))}
        scene.add_body(f"box {k}", box=[0.2, 0.2, 0.2], position=place, axis_angle=turn)
    first, patterns = abd.Simulation(scene, device=NAME), set()
    for _ in range(26):
        first.step()
        patterns.add(first.linear_solver["factor_blocks"])
    assert len(patterns) > 3
    assert_goes_on(first, abd.Simulation(scene, device=NAME), 8)


DEVICE = Device(NAME, records=True)


class NoRows:
    """No rows with measures."""

    term_measure = np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return 0


def tied(pairs: np.ndarray) -> SimpleNamespace:
    """As much of a joint system as ties its bodies: child and parent of linear rows."""
    linear = SimpleNamespace(child=pairs[:, 0], parent=pairs[:, 1])
    none = NoRows.term_measure
    return SimpleNamespace(linear=linear, rows=NoRows(), table=SimpleNamespace(child=none, parent=none))


def pairs_of(values) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, 2)


def listed(pairs: np.ndarray, spare: int = 3) -> tuple:
    """Pairs on the device with capacity for more; what lies beyond the count would tie everything to body 0."""
    capacity = np.zeros((len(pairs) + spare, 2), dtype=np.int32)
    capacity[: len(pairs)] = pairs
    capacity[len(pairs) :, 1] = np.arange(spare)
    counts = DEVICE.upload([len(pairs), 99], wp.int32)
    return DEVICE.upload(capacity, wp.vec2i), counts, len(capacity)


def expected_islands(n: int, ties: np.ndarray, mobile: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(n,) islands, numbered in the order of their first bodies."""
    edges = np.concatenate([ties[mobile[ties[:, 1]]], pairs[mobile[pairs].all(axis=1)]])
    labels = connected_labels(n, edges)
    inactive = ~mobile
    inactive[ties[:, 0]] = False
    labels[inactive] = labels[inactive][:1]
    _, first, part = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[part]


def assert_formed(n: int, ties: np.ndarray, mobile: np.ndarray, *lists: np.ndarray) -> None:
    """Islands, and their chunks of at most `CHUNK` bodies."""
    islands, read = Islands(DEVICE, n), DEVICE.read
    islands.tie(tied(ties))
    islands.follow_joined(mobile)
    islands.launch_renumber(DEVICE.upload((~mobile).astype(np.int32), wp.int32), *map(listed, lists))
    expected = expected_islands(n, ties, mobile, np.concatenate([pairs_of([]), *lists]))
    sizes = np.bincount(expected)
    per_island, first = -(-sizes // CHUNK), np.cumsum(sizes) - sizes
    starts = np.concatenate([np.arange(one, one + size, CHUNK) for one, size in zip(first, sizes)])
    assert islands.count == len(sizes)
    assert read(islands.counts).tolist() == [len(sizes), len(starts)]
    np.testing.assert_array_equal(islands.host, expected)
    np.testing.assert_array_equal(read(islands.order, n), np.argsort(expected, kind="stable"))
    np.testing.assert_array_equal(read(islands.chunk_start, len(starts) + 1), np.append(starts, n))
    np.testing.assert_array_equal(read(islands.island_start, len(sizes) + 1), np.concatenate([[0], np.cumsum(per_island)]))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    random = np.random.default_rng(seed)
    n = int(random.choice([1, 2, 3, 7, 40, 300, 2000]))
    mobile = random.random(n) < random.choice([0.05, 0.5, 0.95])

    def some(share: float) -> np.ndarray:
        pairs = random.integers(n, size=(int(share * n), 2))
        return pairs_of(pairs[pairs[:, 0] != pairs[:, 1]])

    ties, near = some(random.choice([0.0, 0.3])), some(random.choice([0.0, 0.4, 2.0]))
    assert_formed(n, ties, mobile, near, some(0.1))


@pytest.mark.parametrize("order", ["ascending", "descending", "random", "bits"])
def test_long_chains(order):
    n, random = 5000, np.random.default_rng(1)
    links = pairs_of(np.stack([np.arange(1, n), np.arange(n - 1)], axis=1))
    if order == "descending":
        links = links[::-1]
    elif order == "random":
        links = random.permutation(n)[random.permutation(links)].astype(np.int32)
    elif order == "bits":
        links = links[np.argsort([bin(k)[::-1] for k in range(n - 1)])]
    cut = np.delete(links, 1234, axis=0)
    assert_formed(n, pairs_of([]), np.ones(n, bool), cut)
    assert_formed(n, cut, np.ones(n, bool))


@pytest.mark.parametrize("count, capacity", [(0, 1), (1, 1), (31, 40), (32, 32), (33, 64), (5000, 5000), (70001, 90000)])
def test_exclusive_sums(count, capacity):
    counts = np.random.default_rng(count).integers(0, 9, capacity).astype(np.int32)
    sizes, offsets = DEVICE.upload(np.array([7, count]), wp.int32), DEVICE.upload(np.full(capacity + 1, -1), wp.int32)
    Scan(DEVICE).run(DEVICE.upload(counts, wp.int32), offsets, sizes, 1, capacity)
    expected = np.concatenate([[0], np.cumsum(counts[:count])])
    np.testing.assert_array_equal(DEVICE.read(offsets, count + 1), expected)
