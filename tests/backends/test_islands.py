"""Islands: connected bodies, independent convergence, sleep."""

import numpy as np
import pytest
from checkpoints import assert_goes_on
from common_scenes import on_ground, sleepers
from on_device import NAME, follow

import abd

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
