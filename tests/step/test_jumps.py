"""What begins or ends at once, and forces of joints from the first step on: the integrator does not smear them."""

from __future__ import annotations

import numpy as np
import peer_mechanisms as mechanisms
import peer_programs as programs
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device

H = 0.01


def free_body(**keys) -> abd.Simulation:
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": H})
    scene.add_body("box", box=(0.1, 0.2, 0.3), mass=2.0, **keys)
    return abd.Simulation(scene, device=NAME)


def steps(simulation: abd.Simulation, count: int) -> None:
    for _ in range(count):
        simulation.step()


def test_a_force_that_is_put_on_and_taken_off_gives_its_impulse():
    simulation = free_body()
    body = simulation.bodies["box"]
    steps(simulation, 3)
    body.apply_force((10.0, 0, 0))
    steps(simulation, 5)
    assert body.linear_velocity[0] == pytest.approx(10.0 / 2.0 * 5 * H, rel=1e-9)
    body.clear_loads()
    steps(simulation, 4)
    assert body.linear_velocity[0] == pytest.approx(10.0 / 2.0 * 5 * H, rel=1e-9)


def test_a_function_that_jumps_counts_from_its_step_on():
    simulation = free_body()
    body = simulation.bodies["box"]
    body.apply_force(lambda time, _: (0.0, 6.0 if time > 3.5 * H else 0.0, 0.0))
    steps(simulation, 8)
    assert body.linear_velocity[1] == pytest.approx(6.0 / 2.0 * 5 * H, rel=1e-9)


def test_a_smooth_function_is_integrated_as_one():
    simulation = free_body()
    simulation.bodies["box"].apply_force(lambda time, _: (1.0 + np.sin(2.0 * time), 0.0, 0.0))
    steps(simulation, 20)
    t = 20 * H
    assert simulation.bodies["box"].linear_velocity[0] == pytest.approx(0.5 * (t + np.sin(t) ** 2), rel=5e-3)


@pytest.mark.parametrize("before", [1, 5])
def test_gravity_that_is_switched_off_ends_the_fall(before):
    """After the first step too."""
    simulation = free_body()
    steps(simulation, before)
    simulation.gravity = (0, 0, 0)
    steps(simulation, 5)
    assert simulation.bodies["box"].linear_velocity[2] == pytest.approx(-9.81 * before * H, rel=1e-9)


def test_a_force_on_a_coordinate_gives_its_impulse():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": H})
    scene.add_body("cart", box=(0.1, 0.1, 0.1), mass=2.0)
    scene.add_joint("slider", "rail", "world", "cart", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    rail = simulation.joints["rail"].coordinate()
    steps(simulation, 2)
    for force in (4.0, -6.0):
        rail.apply_force(force)
        steps(simulation, 3)
    assert rail.speed == pytest.approx((4.0 - 6.0) / 2.0 * 3 * H, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["spatial slider", "four-bar in space", "planar seven", "spherical chain", "governor", "top of 150 "]
)
@pytest.mark.parametrize("share", [1.0, 0.125])
def test_forces_of_joints_are_right_from_the_first_step_on(name, share):
    """Within 10 % of what steps eight times finer say, at every one of the first eight."""
    mechanism = next(one for one in mechanisms.mechanisms() if one.name.startswith(name))
    h = share * mechanism.step

    def forces(step: float, every: int) -> np.ndarray:
        simulation = abd.Simulation(programs.our_scene(mechanism, step, tolerance=1e-6), device=NAME)
        rows = []
        for _ in range(8):
            steps(simulation, every)
            rows.append(np.concatenate([joint.wrench()[0] for joint in simulation.joints.values()]))
        return np.array(rows)

    found, known = forces(h, 1), forces(0.125 * h, 8)
    assert np.abs(found - known).max() < 0.1 * np.abs(known).max()
