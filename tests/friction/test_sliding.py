"""Sliding, sticking and resting contact in closed form, on slopes and belts."""

from itertools import product
from math import atan, cos, sin, sqrt, tan

import numpy as np
import pytest
from common_scenes import on_slope
from on_device import NAME, follow

import abd
from abd.potentials.barrier import BARRIERS, barrier

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


H = 0.01
SLOPE = 0.5
"""Angle of the incline [rad]."""
INTEGRATORS = ("generalized_alpha", "bdf1")
ON_PLANE = product(["half-space"], [4e-4], INTEGRATORS, [0.01, 0.1, 1.0])
ON_TRIANGLES = [*product(["box"], [2e-4, 4e-3], INTEGRATORS[:2], [0.01])]


def slide(mu: float, *where, **solver) -> tuple[np.ndarray, abd.Simulation, list]:
    """Downhill speeds (100,) [m/s] of a box, the simulation and its reports."""
    scene, downhill = on_slope(SLOPE, mu, *(where or ("half-space", 4e-4)), solver)
    simulation = abd.Simulation(scene, device=NAME)
    speeds, reports = [], []
    for _ in range(100):
        reports.append(simulation.step())
        speeds.append(simulation.bodies["body"].linear_velocity @ downhill)
    assert np.mean([report.newton_iterations for report in reports]) < 4.0
    return np.array(speeds), simulation, reports


@pytest.mark.parametrize(("floor", "drop", "integrator", "below"), [
    *product(["half-space"], [4e-4], INTEGRATORS[:1], [0.01, 0.05, 0.3]), *ON_TRIANGLES,
])  # fmt: skip
def test_a_box_slides_below_the_threshold(floor, drop, integrator, below):
    """The acceleration is g (sin - mu cos) within 1 %; edges of triangles neither brake nor turn the box."""
    mu = tan(SLOPE) - below
    speeds, simulation, _ = slide(mu, floor, drop, integrator=integrator)
    measured = (speeds[-1] - speeds[40]) / ((len(speeds) - 41) * H)
    assert measured == pytest.approx(G * (sin(SLOPE) - mu * cos(SLOPE)), rel=0.01)
    assert abs(simulation.bodies["body"].linear_velocity[1]) < 1e-4


@pytest.mark.parametrize(("floor", "drop", "integrator", "above"), [*ON_PLANE, *ON_TRIANGLES])
def test_a_box_sticks_above_the_threshold(floor, drop, integrator, above):
    """Its springs stretch by at most eps_v dt, and then it does not move."""
    speeds, _, _ = slide(tan(SLOPE) + above, floor, drop, integrator=integrator)
    assert abs(H * speeds[10:].sum()) < 1e-3 * H
    assert np.abs(speeds[-20:]).max() < 1e-12


@pytest.mark.parametrize("above", [0.01, 0.1, 1.0])
def test_viscous_static_friction_creeps(above):
    """The creep follows from f1(y) = tan/mu: y = eps_v (1 - sqrt(1 - tan/mu)) < 1 mm/s."""
    mu = tan(SLOPE) + above
    speeds, simulation, _ = slide(mu, stick="viscous")
    creep = simulation.model.settings.eps_v * (1.0 - sqrt(1.0 - tan(SLOPE) / mu))
    assert speeds[-1] == pytest.approx(creep, rel=0.02)
    assert np.abs(speeds[-50:]).max() < 1e-3


def test_the_work_of_friction_is_its_force_times_the_path():
    """A sliding box loses mu m g cos(slope) per metre; the other energies follow up to the loss of the integrator."""
    mu = tan(SLOPE) - 0.3
    speeds, simulation, reports = slide(mu)
    kinetic, gravity, work = (
        np.array([report.energy[name] for report in reports[20:]]) for name in ("kinetic", "gravity", "friction_work")
    )
    path = H * 0.5 * (speeds[20:-1] + speeds[21:]).sum()
    weight = simulation.bodies["body"].mass * G
    assert np.all(np.diff(work) < 0.0)
    assert work[-1] - work[0] == pytest.approx(-mu * weight * cos(SLOPE) * path, rel=0.02)
    lost = kinetic[0] + gravity[0] - kinetic[-1] - gravity[-1] + work[-1] - work[0]
    assert 0.0 <= lost < 0.02 * (kinetic[-1] - kinetic[0]), "1/2 h a v of implicit Euler, nothing gained"


@pytest.mark.parametrize("kind", BARRIERS)
@pytest.mark.parametrize("integrator", INTEGRATORS[:2])
def test_the_resting_gap_balances_the_weight(integrator, kind):
    """At the reported gap of four corners on a half-space, ``-4 kappa_c dE/dd = m g`` with E = b(d^2)."""
    scene, _ = on_slope(0.0, 0.0, gap=3e-4, solver={"integrator": integrator, "barrier": kind})
    simulation = abd.Simulation(scene, device=NAME)
    gap = simulation.run(steps=100).min_gap
    law, pair = simulation.backend.pair_law, (np.array([0]), np.array([1]))
    a = law.activation(*pair)
    slope = barrier(kind, np.array([gap**2]), a, 0.0)[1][0]
    force = -4.0 * law.stiffness(*pair, a, np.zeros(1))[0] * slope * 2.0 * gap
    assert 0.0 < gap < a[0]
    assert force == pytest.approx(simulation.bodies["body"].mass * G, rel=1e-6)


@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_friction_acts_in_the_step_of_an_impact(device, speed):
    """The friction impulse in the step of an impact is mu times the normal one."""
    mu, motion = 0.3, {"velocity": (4.0, 0.0, -speed), "fix": ["rx", "ry", "rz"]}
    scene, _ = on_slope(0.0, mu, gap=0.6 * H * speed, solver={"dt": H}, **motion)
    simulation = abd.Simulation(scene, device=device)
    simulation.step()
    velocity = simulation.bodies["body"].linear_velocity
    normal = velocity[2] + speed + G * H
    assert normal > 0.3 * speed, "it hits in the first step"
    assert 4.0 - velocity[0] == pytest.approx(mu * normal, rel=0.02)
    simulation.run(steps=7)
    lost = 4.0 - simulation.bodies["body"].linear_velocity[0]
    assert lost == pytest.approx(mu * (speed + 8 * G * H), rel=0.05)
