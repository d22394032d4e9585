"""Springs between a body and a point of the world: force, moving point, storage."""


import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.io.trajectory import Trajectory

pytestmark = pytest.mark.device

DEVICES = ["numpy", NAME]
LONG = [pytest.param("numpy", marks=pytest.mark.slow), NAME]
"""Those of long runs: the definitions take many times as long."""


def block(**solver) -> abd.Scene:
    scene = on_ground(0.4, "block", **({"dt": 0.002} | solver))
    scene.add_body("block", box=(0.2, 0.2, 0.2), position=(0, 0, 1), density=250)  # 2 kg
    scene.add_body("arm", box=(0.4, 0.1, 0.1), position=(3.2, 0, 2))
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(3, 0, 2), axis=(0, 1, 0), enforcement="exact")
    return scene


@pytest.mark.parametrize("device", LONG)
def test_spring_has_the_frequency_of_its_mass(device):
    """After a quarter of the period of m x'' = -k (x - x0) the block is at the middle with full speed."""
    scene = block()
    scene.gravity = (0, 0, 0)
    sim = abd.Simulation(scene, device=device)
    assert sim.bodies["block"].mass == pytest.approx(2.0)
    k = 2.0 * (2.0 * np.pi) ** 2  # one second
    spring = sim.bodies["block"].spring_to((0.1, 0, 1), stiffness=k)
    assert list(sim.joints) == ["pivot"] and "block" in repr(spring)
    sim.run(steps=125)
    assert sim.bodies["block"].position[0] == pytest.approx(0.1, abs=1e-3)
    assert sim.bodies["block"].linear_velocity[0] == pytest.approx(0.1 * 2.0 * np.pi, rel=2e-3)
    np.testing.assert_allclose(sim.bodies["block"].rotation, np.eye(3), atol=1e-6)


@pytest.mark.parametrize("device", LONG)
def test_spring_force_balances_the_weight(device):
    """The force of a stiff spring at a corner is the weight, and the block hangs below its corner."""
    sim = abd.Simulation(block(dt=0.01), device=device)
    body = sim.bodies["block"]
    spring = body.spring_to((0, 0, 1.2), stiffness=2e3, damping=60.0, at=(0, 0, 0.1))
    sim.run(steps=150)
    np.testing.assert_allclose(spring.force, (0, 0, 2.0 * 9.81), atol=0.02)
    hook = (body.transform @ (0, 0, 0.1, 1))[:3]
    np.testing.assert_allclose(hook, (0, 0, 1.2 - 2.0 * 9.81 / 2e3), atol=1e-5)
    spring.remove()
    assert not spring.active
    sim.run(steps=3)
    assert body.linear_velocity[2] < -0.25


@pytest.mark.parametrize("device", LONG)
def test_spring_pulls_a_body_against_friction(device):
    """At constant speed the spring force is the friction, and the work is that of the drive."""
    scene = block(dt=0.01)
    scene.body("block").position = (0, 0, 0.1003)
    sim = abd.Simulation(scene, device=device)
    spring = sim.bodies["block"].spring_to((0, 0, 0.1), stiffness=400, damping=40.0)
    for _ in range(120):
        spring.point = spring.point + np.array([0.005, 0, 0])
        report = sim.step()
    assert sim.bodies["block"].linear_velocity[0] == pytest.approx(0.5, rel=0.01)
    assert spring.force[0] == pytest.approx(0.4 * 2.0 * 9.81, rel=0.02)
    assert sim.bodies["block"].contact_force[0] == pytest.approx(-spring.force[0], rel=0.02)
    assert report.energy["external_work"] > 0.0


def test_springs_are_not_in_trajectories(tmp_path):
    sim = abd.Simulation(block(dt=0.01), device=NAME)
    sim.bodies["block"].spring_to((0, 0, 2), stiffness=50.0)
    sim.run(steps=3, record=tmp_path / "run", on_step=lambda report: None)
    with Trajectory(tmp_path / "run") as trajectory:
        assert trajectory.joint_names() == ["pivot"]
