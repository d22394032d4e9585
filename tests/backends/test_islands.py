"""Islands: connected bodies, independent convergence, sleep."""

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME, follow

import abd
from abd.backends.numbering import Numbering
from abd.backends.progress import Progress
from abd.backends.reference.on_numpy import NumpyBackend
from abd.backends.warp.on_warp import WarpBackend
from abd.potentials.integrators import scheme

pytestmark = pytest.mark.device

DT = 0.01


def numbering(bodies: int, ties) -> Numbering:
    out = Numbering(bodies)
    out.ties = np.array(ties, dtype=int).reshape(-1, 2)
    return out


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
    """Positions (steps, n, 12), names and reports."""
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


@pytest.mark.parametrize("make", [WarpBackend, NumpyBackend])
def test_each_island_has_its_own_step_length(make):
    """The falling box takes its whole step while contact with the floor limits that of the other one."""
    model = two_worlds_apart().compile()
    backend, n = make(model), len(model.bodies)
    names = model.bodies.names
    q, qd = model.bodies.q, model.bodies.qd * 5.0
    backend.states.load_state(q, qd, q, qd)
    backend.steps.begin(scheme("bdf1", DT), np.zeros(n, int), 1e-5, None)
    alpha = backend.arcs.aim_at_targets(np.ones(n, int))
    at = backend.islands.host
    assert alpha[at[names.index("falling")]] == 1.0
    assert alpha[at[names.index("hitting")]] < 0.9


def test_converged_islands_do_not_move():
    """They stay during the iterations of other islands."""
    model = two_worlds_apart().compile()
    backend, n, names = WarpBackend(model), len(model.bodies), model.bodies.names
    q, qd = model.bodies.q, model.bodies.qd
    backend.states.load_state(q, qd, q, qd)
    backend.steps.begin(scheme("bdf1", DT), np.zeros(n, int), 1e-5, None)
    backend.arcs.aim_at_targets(np.zeros(n, int))
    backend.iteration.evaluate()
    backend.touch.lag_friction()
    settled = np.arange(backend.islands.count) == backend.islands.host[names.index("falling")]
    iteration = backend.iteration
    backend.inactive.asleep = lambda *_: settled
    backend.inactive.sleeping[names.index("falling")] = True
    assert iteration.begin(1e-9, 1e-9, DT, 1e-9)
    status = iteration.run(Progress())
    assert status.moving
    moved = np.abs(backend.states.read_positions() - q).max(axis=1)
    assert moved[names.index("falling")] == 0.0 and moved[names.index("hitting")] > 1e-3
    speeds = iteration.speeds()
    assert speeds[settled] == -1.0 and speeds[~settled] > 0.0


def sleepers(**solver) -> abd.Scene:
    """Two boxes at rest on the floor, far apart, and a third one on a rail that meets the first after 0.375 s."""
    scene = abd.Scene(solver={"dt": DT, "d_hat": 1e-3, "sleep_speed": 2e-3, "sleep_time": 0.1, **solver})
    scene.add_material("stone", mu=0.5)
    scene.add_body("floor", half_space={"normal": [0, 0, 1], "offset": 0.0}, material="stone")
    for name, x in (("near", 0.0), ("far", 40.0)):
        scene.add_body(name, box=[0.5, 0.5, 0.5], position=[x, 0, 0.2505], material="stone")
    rail = ["y", "z", "rx", "ry", "rz"]
    scene.add_body("runner", box=[0.5, 0.5, 0.5], position=[-2.0, 0, 0.5], velocity=[4, 0, 0], fix=rail)
    return scene


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


def test_disturbed_island_wakes_up():
    simulation = abd.run(sleepers(), steps=26, device=NAME)
    assert slept(simulation) == ["near", "far"]
    simulation.stepper.sleep.disturb()
    simulation.step()
    assert slept(simulation) == []


def test_sleep_resumes_bit_for_bit():
    first, second = (abd.Simulation(sleepers(), device=NAME) for _ in range(2))
    first.run(steps=17)
    assert_goes_on(first, second, 13)


def test_a_run_that_sleeps_balances_its_friction():
    """A run in which all islands sleep does not fail with repeated lagging."""
    scene = abd.Scene(solver={"dt": DT, "d_hat": 1e-3, "sleep_speed": 1e-2, "sleep_time": 0.05, "friction_iterations": -1})
    scene.add_material("stone", mu=0.5)
    scene.add_body("floor", half_space={}, material="stone")
    scene.add_body("box", box=[0.5, 0.5, 0.5], position=[0, 0, 0.2505], material="stone")
    simulation = abd.Simulation(scene, device=NAME)
    reports = [simulation.step() for _ in range(20)]
    assert slept(simulation) == ["box"]
    assert all(report.converged for report in reports) and reports[-1].newton_iterations == 0


def test_changing_contacts_resume_bit_for_bit():
    """The elimination order depends on the pairs of the step only, whichever patterns came before."""
    random = np.random.default_rng(4)
    scene = abd.Scene(solver={"dt": DT, "d_hat": 1e-3})
    scene.add_material("stone", mu=0.3)
    scene.add_body("floor", half_space={}, material="stone")
    for k in range(12):
        place = [0.35 * (k % 2), 0.35 * (k // 2 % 2), 0.25 + 0.36 * (k // 4)]
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0, 60))}
        scene.add_body(f"box {k}", box=[0.2, 0.2, 0.2], position=place, axis_angle=turn, material="stone")
    first, patterns = abd.Simulation(scene, device=NAME), set()
    for _ in range(26):
        first.step()
        patterns.add(first.linear_solver["factor_blocks"])
    assert len(patterns) > 3
    assert_goes_on(first, abd.Simulation(scene, device=NAME), 8)
