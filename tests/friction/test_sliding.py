"""Sliding in closed form: conveyor belts, whose material moves, and contacts so stiff that forces vary within the tolerance."""

import numpy as np
import pytest
from on_device import NAME, follow

import abd

G = 9.81


def belt(mu: float, degrees: float = 0.0, **solver) -> abd.Scene:
    """A belt of 10 m that runs at 1.5 m/s along its x axis, which rises by an angle."""
    scene = abd.Scene("belt", solver=solver)
    scene.add_material("default", mu=mu)
    tilt = {"axis": (0, 1, 0), "degrees": -degrees}
    scene.add_body("belt", box=(10, 1, 0.1), kind="static", axis_angle=tilt, surface_velocity=(1.5, 0, 0))
    return scene


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
@pytest.mark.parametrize("device", ["numpy", NAME])
def test_a_box_is_accelerated_to_the_speed_of_the_belt(device, integrator):
    scene = belt(0.4, integrator=integrator)
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=(-2, 0, 0.1001))
    sim = abd.run(scene, steps=20, device=device)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(0.4 * G * 0.2, rel=2e-3)
    report = sim.run(steps=40)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(1.5, abs=1e-6)
    energy = report.energy
    assert energy["friction_work"] + energy["integration"] == pytest.approx(energy["kinetic"], rel=1e-3)


@pytest.mark.parametrize("device", ["numpy", NAME])
def test_a_rising_belt_carries_a_box_and_spins_a_ball(device):
    scene, a = belt(0.6, 20.0), np.radians(20.0)
    along, normal = np.array([np.cos(a), 0, np.sin(a)]), np.array([-np.sin(a), 0, np.cos(a)])
    tilt = {"axis": (0, 1, 0), "degrees": -20.0}
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=tuple(0.1003 * normal), axis_angle=tilt)
    scene.add_body("ball", sphere={"radius": 0.1}, position=tuple(0.1503 * normal + along + [0, 0.3, 0]))
    sim = abd.run(scene, steps=100, device=device)
    assert sim.bodies["box"].linear_velocity @ along == pytest.approx(1.5, abs=1e-6)
    # it slides at first, and rolls then: momenta about the contact
    rolling = 2 / 7 * 1.5 - 5 / 7 * G * np.sin(a) * sim.time
    assert sim.bodies["ball"].linear_velocity @ along == pytest.approx(rolling, rel=5e-3)


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("moving", [{"surface_velocity": (3, 0, 0)}, {"kind": "kinematic", "motion": {"velocity": (3, 0, 0)}}])
def test_an_impact_on_a_moving_surface_has_coulombs_friction(moving, dt):
    scene = abd.Scene("drop", solver={"dt": dt})
    scene.add_material("default", mu=0.3)
    scene.add_body("belt", box=(20, 1, 0.1), position=(0, 0, -0.05), **{"kind": "static"} | moving)
    scene.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 0.3), velocity=(0, 0, -3), fix=["rx", "ry", "rz"])
    sim = abd.run(scene, duration=0.1, device=NAME)
    speed = np.sqrt(9 + 2 * G * 0.2)
    since = 0.1 - (speed - 3) / G
    assert sim.bodies["ball"].linear_velocity[0] == pytest.approx(0.3 * (speed + G * since), rel=5e-3)


def test_units_and_turned_scenes_keep_the_belt():
    scene = belt(0.4)
    assert scene.scaled(1000.0).spec.body[0].surface_velocity == pytest.approx((1500, 0, 0))
    turned = scene.transformed(np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    turned.add_body("box", box=(0.2, 0.2, 0.1), position=(0, -2, 0.1001))
    sim = abd.run(turned, steps=20, device=NAME)
    assert sim.bodies["box"].linear_velocity == pytest.approx((0, 0.4 * G * 0.2, 0), abs=2e-3)


SPEED, MU, GRAVITY, DT = 2.0, 0.8, 9.81, 0.01
BOX = (0.1, 0.1, 0.05)
STOPS = SPEED**2 / (2.0 * MU * GRAVITY) - 0.5 * SPEED * DT
"""Separation of a box that friction stops [m], by steps of implicit Euler."""


def slide(gap: float, device: str, **solver) -> tuple[float, np.ndarray]:
    """How far a box slides that is set down at a gap [m], and the ground's force on it over its weight in every step."""
    scene = abd.Scene(solver={"dt": DT, **solver})
    scene.add_material("default", mu=MU)
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=BOX, position=(0.0, 0.0, 0.5 * BOX[2] + gap), velocity=(SPEED, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=device)
    box = simulation.bodies["box"]
    forces = follow(simulation, round(1.1 * SPEED / (MU * GRAVITY) / DT), lambda _: box.contact_force[2])
    return float(box.position[0]), np.array(forces) / (1000.0 * np.prod(BOX) * GRAVITY)


@pytest.mark.parametrize("d_hat", [1e-5, 1e-7])
def test_sliding_distance_does_not_depend_on_contact_stiffness(d_hat, device):
    way, forces = slide(1.2 * d_hat, device, d_hat=d_hat)
    assert way == pytest.approx(STOPS, rel=0.02)
    np.testing.assert_allclose(forces[1:], 1.0, rtol=0.05)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_sliding_distance_does_not_depend_on_the_initial_gap(device):
    way, forces = slide(0.0, device)
    assert way == pytest.approx(STOPS, rel=0.02)
    np.testing.assert_allclose(forces, 1.0, rtol=0.05)
