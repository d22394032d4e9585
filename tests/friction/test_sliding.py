"""Sliding in closed form, on belts too, and sticking contacts."""

from itertools import product
from math import atan

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME, follow
from slopes import on_slope

import abd

pytestmark = pytest.mark.device

G = 9.81


def belt(mu: float, degrees: float = 0.0, **solver) -> abd.Scene:
    """A belt of 10 m that runs at 1.5 m/s along its x axis, which rises by an angle."""
    scene = abd.Scene("belt", solver=solver)
    scene.add_material("default", mu=mu)
    tilt = {"axis": (0, 1, 0), "degrees": -degrees}
    scene.add_body("belt", box=(10, 1, 0.1), kind="static", axis_angle=tilt, surface_velocity=(1.5, 0, 0))
    return scene


@pytest.mark.parametrize(
    ("device", "integrator"),
    [(NAME, "generalized_alpha"), (NAME, "bdf1")],
)
def test_a_box_is_accelerated_to_the_speed_of_the_belt(device, integrator):
    scene = belt(0.4, integrator=integrator)
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=(-2, 0, 0.1001))
    sim = abd.run(scene, steps=20, device=device)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(0.4 * G * 0.2, rel=2e-3)
    report = sim.run(steps=40)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(1.5, abs=1e-6)
    energy = report.energy
    assert energy["friction_work"] + energy["integration"] == pytest.approx(energy["kinetic"], rel=1e-3)
    mass = sim.bodies["box"].mass
    assert energy["friction_work"] == pytest.approx(-0.5 * mass * 1.5**2, rel=0.03), "it slips by as much as it moves"


def test_a_rising_belt_carries_a_box_and_spins_a_ball():
    scene, a = belt(0.6, 20.0), np.radians(20.0)
    along, normal = np.array([np.cos(a), 0, np.sin(a)]), np.array([-np.sin(a), 0, np.cos(a)])
    tilt = {"axis": (0, 1, 0), "degrees": -20.0}
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=tuple(0.1003 * normal), axis_angle=tilt)
    scene.add_body("ball", sphere={"radius": 0.1}, position=tuple(0.1503 * normal + along + [0, 0.3, 0]))
    sim = abd.run(scene, steps=100, device=NAME)
    assert sim.bodies["box"].linear_velocity @ along == pytest.approx(1.5, abs=1e-6)
    # it slides at first, and rolls then: momenta about the contact
    rolling = 2 / 7 * 1.5 - 5 / 7 * G * np.sin(a) * sim.time
    assert sim.bodies["ball"].linear_velocity @ along == pytest.approx(rolling, rel=5e-3)


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_a_half_space_may_be_a_belt(device):
    """A crate is accelerated to its speed; another one, held by a spring, dissipates friction times speed at rest."""
    scene = abd.Scene("belt")
    scene.add_material("default", mu=0.4)
    scene.add_body("belt", half_space={}, surface_velocity=(1.5, 0, 0))
    scene.add_body("crate", box=(0.2, 0.2, 0.1), mass=1.0, position=(0, 1, 0.0501))
    scene.add_body("held", box=(0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.0501))
    sim = abd.Simulation(scene, device=device)
    sim.bodies["held"].spring_to((0, 0, 0.05), stiffness=1e5, damping=1e3)
    sim.run(steps=60)
    assert sim.bodies["crate"].linear_velocity[0] == pytest.approx(1.5, abs=1e-6)
    works = [sim.run(steps=10).energy["friction_work"] for _ in range(2)]
    friction = sim.bodies["held"].contact_force[0]
    assert friction > 0.4 * G and (works[1] - works[0]) / 0.1 == pytest.approx(-1.5 * friction, rel=1e-6)


BELT, MOVED = {"surface_velocity": (3, 0, 0)}, {"kind": "kinematic", "motion": {"velocity": (3, 0, 0)}}


@pytest.mark.parametrize(("moving", "dt"), [(BELT, 1e-2), (BELT, 1e-4), (MOVED, 1e-2), (MOVED, 1e-3)])
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


@pytest.mark.parametrize(
    ("device", "d_hat", "gap"), [("cpu", 1e-5, 1.2), ("cpu", 1e-7, 1.2), ("cpu", None, 0), ("numpy", None, 0)]
)
def test_sliding_distance_depends_neither_on_contact_stiffness_nor_on_the_initial_gap(device, d_hat, gap):
    """The ground carries the weight in every step; the distance of implicit Euler is v^2 / (2 mu g) - v dt / 2."""
    speed, mu, dt = 2.0, 0.8, 0.01
    scene = abd.Scene(solver={"dt": dt} | ({"d_hat": d_hat} if d_hat else {}))
    scene.add_material("default", mu=mu)
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.1, 0.1, 0.05), position=(0, 0, 0.025 + gap * (d_hat or 0)), velocity=(speed, 0, 0))
    simulation = abd.Simulation(scene, device=device)
    box = simulation.bodies["box"]
    forces = follow(simulation, round(1.1 * speed / (mu * G) / dt), lambda _: box.contact_force[2])
    assert box.position[0] == pytest.approx(speed**2 / (2 * mu * G) - 0.5 * speed * dt, rel=0.02)
    np.testing.assert_allclose(forces[1:] if gap else forces, box.mass * G, rtol=0.05)


MU = 0.5
SLIDING = {"velocity": (0.3, 0.2, 0.0), "angular_velocity": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize(("device", "floor", "contact_set"), [
    *product([NAME], ["half-space", "box", 7], ["minima", "ipc"]),
    *product(["numpy"], ["half-space", "box"], ["minima"]),
])  # fmt: skip
def test_a_box_near_the_angle_of_friction_is_held_from_the_start(device, floor, contact_set):
    """It settles until springs carry its weight, and stays; contacts with edges of the floor change meanwhile."""
    scene, downhill = on_slope(0.95 * atan(MU), MU, floor, solver={"contact_set": contact_set})
    simulation = abd.Simulation(scene, device=device)
    body = simulation.bodies["body"]
    start = body.position @ downhill
    moved = np.array(follow(simulation, 30 if device == "numpy" else 150, lambda _: body.position @ downhill - start))
    assert np.abs(moved).max() < 2e-5 and np.ptp(moved[20:]) < 1e-7


def test_anchors_of_kernels_equal_the_definition():
    """A box slides, rotates and comes to rest on triangles, compared in each step from the same state."""
    scene, _ = on_slope(0.5 * atan(MU), MU, 3, **SLIDING)
    defined, device = abd.Simulation(scene, device="numpy"), abd.Simulation(scene, device=NAME)
    some = 0
    for _ in range(12):
        defined.restore(device.checkpoint())
        defined.step()
        device.step()
        one, other = (each.stepper.backend.friction.read_anchors() for each in (defined, device))
        assert len(one) == len(other)
        some += len(one)
        order, same = (np.lexsort((*each.point.T.round(7), each.key)) for each in (one, other))
        np.testing.assert_array_equal(one.key[order], other.key[same])
        np.testing.assert_allclose(one.point[order], other.point[same], atol=1e-7)
        np.testing.assert_allclose(one.share[order], other.share[same], atol=1e-2)
    assert some > 20


def test_friction_at_the_start_does_not_depend_on_rounding():
    """The activation of a pair equals its gap then, so that rounding decides whether there is contact."""
    scene, _ = on_slope(0.5 * atan(MU), MU, 3, **SLIDING)
    velocities = []
    for rounding in (-1e-14, 1e-14):
        simulation = abd.Simulation(scene, device=NAME)
        start = simulation.checkpoint()
        pairs = start["tables"]["pairs"]
        for name in ("activation", "home"):
            pairs[name] = np.asarray(pairs[name]) * (1.0 + rounding)
        simulation.restore(start)
        simulation.step()
        velocities.append(simulation.stepper.qd[1, :3].copy())
    np.testing.assert_allclose(*velocities, atol=1e-3)


def test_restored_run_sticks_as_the_original():
    scene, _ = on_slope(0.9 * atan(MU), MU)
    went_on, continued = abd.Simulation(scene, device=NAME), abd.Simulation(scene, device=NAME)
    went_on.run(steps=6)
    assert len(went_on.stepper.backend.friction.read_anchors()) >= 4
    assert_goes_on(went_on, continued, 4)
