"""Prescribed bodies that a program moves while a simulation runs."""

import numpy as np
import pytest

import abd

DT = 0.01


def carrier() -> abd.Simulation:
    """A plate that carries a box."""
    scene = abd.Scene(solver={"dt": DT})
    scene.add_material("default", mu=0.6)
    scene.add_body("plate", box=(0.6, 0.6, 0.1), kind="kinematic", motion={"velocity": (0, 0, 0)})
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.1, 0, 0.102))
    return abd.Simulation(scene, device="cpu")


def turned(angle: float) -> tuple[float, ...]:
    return np.cos(0.5 * angle), 0.0, 0.0, np.sin(0.5 * angle)


def test_kinematic_body_reaches_its_target_in_each_step():
    sim = carrier()
    plate, box = sim.bodies["plate"], sim.bodies["box"]
    for k in range(1, 41):
        plate.move_to(position=(0.0, 0.0, 0.001 * k), quaternion=turned(0.005 * k))
        assert sim.step().converged
        np.testing.assert_allclose(plate.position, [0, 0, 0.001 * k], atol=1e-12)
        np.testing.assert_allclose(plate.quaternion, turned(0.005 * k), atol=1e-12)
    assert plate.linear_velocity == pytest.approx([0, 0, 0.1], abs=1e-9)
    assert box.linear_velocity[2] == pytest.approx(0.1, abs=2e-3), "it is carried"
    assert box.angular_velocity[2] == pytest.approx(0.5, abs=0.02), "and turns with the plate"


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
def test_a_prescribed_body_has_its_velocity_from_the_first_step_on(integrator):
    scene = abd.Scene(solver={"dt": DT, "integrator": integrator})
    motion = {"velocity": (0.5, 0, 0), "angular_velocity": (0, 0, 0.8)}
    scene.add_body("plate", box=(0.6, 0.6, 0.1), kind="kinematic", motion=motion)
    sim = abd.Simulation(scene, device="cpu")
    for _ in range(3):
        sim.step()
        np.testing.assert_allclose(sim.bodies["plate"].linear_velocity, [0.5, 0, 0], atol=1e-9)
        np.testing.assert_allclose(sim.bodies["plate"].angular_velocity, [0, 0, 0.8], atol=1e-4)


def test_a_slow_move_arrives_and_stays():
    sim = carrier()
    plate = sim.bodies["plate"]
    plate.move_to(position=(0.05, 0, 0), duration=0.1)
    sim.run(steps=5)
    assert plate.position == pytest.approx([0.025, 0, 0])
    sim.run(steps=8)
    assert plate.position == pytest.approx([0.05, 0, 0]) and plate.linear_velocity == pytest.approx([0, 0, 0], abs=1e-12)


def test_a_move_goes_on_after_a_change_of_the_scene_and_ends_with_a_reset():
    sim = carrier()
    sim.bodies["plate"].move_to(position=(0.05, 0, 0), duration=0.1)
    sim.run(steps=7)
    goes_on = sim.recompiled()
    goes_on.step()
    assert goes_on.bodies["plate"].position == pytest.approx([0.04, 0, 0])
    sim.reset()
    sim.step()
    assert sim.bodies["plate"].position == pytest.approx([0, 0, 0], abs=1e-15)
