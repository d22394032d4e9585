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


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_a_prescribed_body_has_its_velocity_from_the_first_step_on(integrator):
    scene = abd.Scene(solver={"dt": DT, "integrator": integrator})
    motion = {"velocity": (0.5, 0, 0), "angular_velocity": (0, 0, 0.8)}
    scene.add_body("plate", box=(0.6, 0.6, 0.1), kind="kinematic", motion=motion)
    sim = abd.Simulation(scene, device="cpu")
    for _ in range(3):
        sim.step()
        np.testing.assert_allclose(sim.bodies["plate"].linear_velocity, [0.5, 0, 0], atol=1e-9)
        np.testing.assert_allclose(sim.bodies["plate"].angular_velocity, [0, 0, 0.8], atol=1e-4)


@pytest.mark.parametrize("speed", [20.0, 60.0])
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_a_fast_shaft_and_the_joint_on_it_report_their_rates(integrator, speed):
    """A damper of 0.2 N m s/rad accelerates a rotor of 0.1 kg m^2."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.005, "integrator": integrator})
    shaft = {"kind": "kinematic", "mass": 1, "inertia": (1, 1, 1), "motion": {"angular_velocity": (0, 0, speed)}}
    scene.add_body("shaft", box=(0.2, 0.2, 0.2), **shaft)
    scene.add_body("rotor", proxy=True, mass=1, inertia=(0.1,) * 3)
    damped = {"enforcement": "exact", "coordinate": {"theta": {"damping": 0.2}}}
    scene.add_joint("hinge", "h", "shaft", "rotor", anchor=(0, 0, 0), axis=(0, 0, 1), **damped)
    sim = abd.run(scene, duration=0.5, device="cpu")
    assert sim.bodies["shaft"].angular_velocity == pytest.approx((0, 0, speed), abs=1e-6 * speed)
    assert sim.joints["h"].theta.speed == pytest.approx(-speed * np.exp(-1.0), rel=1e-3 if integrator != "bdf1" else 1e-2)


def test_a_prescribed_body_that_stops_reports_no_velocity():
    scene = abd.Scene(solver={"dt": DT})
    keyframes = [{"time": 0.0}, {"time": 0.05, "position": (0.1, 0, 0)}]
    scene.add_body("slide", box=(0.1, 0.1, 0.1), kind="kinematic", motion={"keyframes": keyframes})
    sim, speeds = abd.Simulation(scene, device="cpu"), []
    for _ in range(7):
        sim.step()
        speeds.append(sim.bodies["slide"].linear_velocity[0])
    assert speeds == pytest.approx([2.0] * 5 + [0.0] * 2, abs=1e-9)


def test_a_slow_move_arrives_and_stays():
    sim = carrier()
    plate = sim.bodies["plate"]
    plate.move_to(position=(0.05, 0, 0), duration=0.1)
    sim.run(steps=5)
    assert plate.position == pytest.approx([0.025, 0, 0])
    sim.run(steps=8)
    assert plate.position == pytest.approx([0.05, 0, 0]) and plate.linear_velocity == pytest.approx([0, 0, 0], abs=1e-12)
