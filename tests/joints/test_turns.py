"""Rotations: angles over many turns, and ball joints, whose laws act on the relative rotation in closed form."""

import logging

import numpy as np
import pytest
from on_device import NAME
from scipy.spatial.transform import Rotation

import abd
from abd.joints.measures.combined import rotation_vector
from abd.joints.rows.table import twist_gradient, value_at

pytestmark = pytest.mark.device

devices = pytest.mark.parametrize("device", ["numpy", NAME])


def arm(device=NAME, gravity=(0, 0, 0), dt=0.01, integrator="generalized_alpha", **keys) -> abd.Simulation:
    """A bar of 10 kg that turns about y at one of its ends; gravity along z turns it with 49 N m."""
    scene = abd.Scene(gravity=gravity, solver={"dt": dt, "integrator": integrator})
    scene.add_body("arm", box=(1, 0.1, 0.1), density=1000, position=(0.5, 0, 0))
    scene.add_hinge("j", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), **keys)
    return abd.Simulation(scene, device=device)


@devices
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_a_target_many_turns_away_is_reached_step_by_step(device, enforcement):
    simulation = arm(device, enforcement=enforcement, drive={"mode": "position", "target": -7.0})
    reports = [simulation.step() for _ in range(5)]
    assert max(report.newton_iterations for report in reports) <= 6 and max(report.substeps for report in reports) == 1
    assert simulation.joints["j"].coordinates[0] == pytest.approx(-7.0, abs=1e-2 if enforcement == "penalty" else 1e-8)


DRIVES = [({"mode": "velocity", "target": 400.0}, 12.0), ({"mode": "position", "target": "350 * t"}, 10.5)]


@pytest.mark.parametrize(("drive", "angle"), DRIVES)
def test_rotation_beyond_pi_per_step_is_followed_by_substeps_and_reported(drive, angle, caplog):
    simulation = arm(enforcement="exact", drive=drive)
    with caplog.at_level(logging.WARNING):
        reports = [simulation.step() for _ in range(3)]
    assert simulation.joints["j"].coordinates[0] == pytest.approx(angle, abs=1e-6)
    assert min(report.substeps for report in reports) >= 2
    assert sum("'arm' turns by more than 2.5 rad about a joint" in one.message for one in caplog.records) == 1


def test_a_free_spin_of_more_than_a_turn_per_frame_is_counted():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("wheel", box=(0.2, 0.2, 0.2), angular_velocity=(0, 0, 400.0), kappa=1e12)
    scene.add_hinge("j", abd.WORLD, "wheel", anchor=(0, 0, 0), axis=(0, 0, 1))
    simulation = abd.run(scene, steps=5, device=NAME)
    assert simulation.joints["j"].coordinates[0] == pytest.approx(40.0, abs=0.5)


def test_a_gear_of_a_hundred_counts_all_turns():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.05})
    for k in range(2):
        scene.add_body(f"wheel{k}", box=(0.2, 0.2, 0.2), position=(0, 0, k), kappa=1e12)
        drive = {"drive": {"mode": "velocity", "target": 1.0}} if k == 0 else {}
        scene.add_hinge(f"j{k}", abd.WORLD, f"wheel{k}", anchor=(0, 0, k), axis=(0, 0, 1), enforcement="exact", **drive)
    scene.add_gear("gear", "j0", "j1", ratio=100.0, enforcement="exact")
    simulation = abd.run(scene, steps=4, device=NAME)
    assert simulation.joints["j0"].coordinates[0] == pytest.approx(0.2, abs=1e-6)
    assert simulation.joints["j1"].coordinates[0] == pytest.approx(20.0, abs=1e-4)


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
@pytest.mark.parametrize(
    "keys",
    [
        {"friction": 1000.0},
        {"friction": 70.0},
        {"friction": 55.0},
        {"drive": {"mode": "brake", "effort": 55.0}},
        {"drive": {"mode": "position", "target": -1.0, "effort": 60.0}},
        {"drive": {"mode": "pd", "target": -1.0, "stiffness": 1e6, "damping": 1e3, "effort": 60.0}},
        {"friction": 20.0, "drive": {"mode": "pd", "target": -1.0, "stiffness": 1e6, "damping": 1e3, "effort": 60.0}},
    ],
    ids=["holds", "sticks", "near its edge", "brake", "position", "pd", "pd with friction"],
)
def test_sticking_and_saturated_efforts_take_few_iterations(keys, integrator):
    """Efforts near and beyond the limit of 49 N m take few iterations in all steps."""
    simulation = arm(gravity=(0, 0, -9.81), integrator=integrator, **keys)
    counts = [simulation.step().newton_iterations for _ in range(25)]
    assert max(counts) <= 4 and sum(counts) <= 75


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
@pytest.mark.parametrize("friction", [40.0, 20.0])
def test_friction_that_slips_takes_few_iterations(friction, integrator):
    """The first sliding step takes up to five iterations, later ones three."""
    simulation = arm(gravity=(0, 0, -9.81), integrator=integrator, friction=friction)
    counts = [simulation.step().newton_iterations for _ in range(25)]
    assert counts[0] <= 5 and max(counts[1:]) <= 3
    turned = 0.5 * 3.0 / 2.0 * (1.0 - friction / 49.05) * 9.81 * 0.25**2
    assert simulation.joints["j"].coordinates[0] == pytest.approx(turned, rel=0.06)


def test_deflection_of_a_compliant_tilt_limit():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "integrator": "bdf1"})
    scene.add_body("a", box=(0.2, 0.2, 0.2), mass=1.0, torque=(0, 0.2, 0))
    limits = {"max_tilt": 0.1, "limit_compliance": 0.05, "limit_damping": -1.0}
    scene.add_spherical("j", abd.WORLD, "a", anchor=(0, 0, 0), **limits)
    simulation = abd.run(scene, steps=60, device=NAME)
    assert simulation.joints["j"].gaps["tilt"].value == pytest.approx(-0.2 * 0.05, rel=1e-3)
    assert simulation.joints["j"].gaps["tilt"].force == pytest.approx(0.2, rel=1e-3)


@pytest.mark.parametrize(
    ("integrator", "dt", "phase"),
    [
        ("generalized_alpha", 1e-2, 0.13), ("generalized_alpha", 1e-3, 0.5), ("generalized_alpha", 1e-4, 0.9),
        ("generalized_alpha", 1e-2, 0.9), ("bdf1", 1e-2, 0.5), ("bdf1", 1e-3, 0.9), ("bdf1", 1e-4, 0.13),
    ],
)  # fmt: skip
def test_undamped_limit_has_no_rebound(integrator, dt, phase):
    """At 5 rad/s and without damping, less than 1 % returns, for any step and phase."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "integrator": integrator})
    upper = 0.02 + 5.0 * (20 + phase) * dt
    spin = {"angular_velocity": (0, 0, 5), "velocity": (0, 2.5, 0)}
    scene.add_body("arm", box=(1, 0.1, 0.1), density=1000, position=(0.5, 0, 0), **spin)
    scene.add_hinge("j", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), range=(-1.0, upper))
    simulation = abd.Simulation(scene, device=NAME)
    rates = [(simulation.step(), simulation.joints["j"].rates[0])[1] for _ in range(50 + int(8e-3 / dt))]
    assert max(rates[:15]) == pytest.approx(5.0, rel=1e-2)
    assert min(rates) > -0.01 * 5.0
    assert abs(rates[-1]) < 0.01 * 5.0
    assert upper - 0.01 < simulation.joints["j"].coordinates[0] < upper


STEPS = [0.01, 0.002]
INERTIA, AXIS = 0.02, np.array([2.0, -3.0, 6.0]) / 7.0


def ball(dt: float, start: np.ndarray, spin: np.ndarray, carried: bool = False, **keys) -> abd.Simulation:
    """A body of equal inertias that starts turned by a rotation vector from the joint's frame, or carried by a heavy body."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.solver.dt = dt
    x, y, z, w = Rotation.from_rotvec(start).as_quat()
    matter = {"proxy": True, "mass": 1.0}
    scene.add_body("body", **matter, inertia=(INERTIA,) * 3, quaternion=(w, x, y, z), angular_velocity=spin)
    if carried:
        scene.add_body("base", **matter, inertia=(10.0 * INERTIA,) * 3)
    frames = {"parent_frame": {}, "child_frame": {}}
    scene.add_joint("spherical", "ball", "base" if carried else abd.WORLD, "body", enforcement="exact", **frames, **keys)
    return abd.Simulation(scene, device="cpu")


def spin_of(simulation: abd.Simulation, name: str = "body") -> np.ndarray:
    return simulation.bodies[name].angular_velocity


@pytest.mark.parametrize(
    ("damping", "speed", "dt"),
    [(1e-6, 8.0, 0.01), (0.02, 0.5, 0.002), (0.02, 8.0, 0.01), (0.2, 0.5, 0.01), (0.2, 8.0, 0.01), (0.2, 8.0, 0.0005)],
)
def test_damping_slows_a_ball_exponentially(damping, speed, dt):
    simulation = ball(dt, 2.5 * AXIS, speed * AXIS, rotary_damping=damping)
    simulation.run(duration=0.5)
    rate = damping / INERTIA
    right = speed * np.exp(-0.5 * rate) * AXIS
    assert np.linalg.norm(spin_of(simulation) - right) < speed * (0.5 * (rate * dt) ** 2 + 0.5 * (speed * dt) ** 2 + 1e-6)


@pytest.mark.parametrize("dt", STEPS)
def test_damping_acts_on_the_relative_velocity(dt):
    """The total angular momentum of two bodies is constant, and the velocity difference decays."""
    simulation = ball(dt, 0.4 * AXIS, (0.0, 3.0, 0.0), carried=True, rotary_damping=0.04)
    simulation.run(duration=0.5)
    apart = 3.0 * np.exp(-0.5 * 0.04 * (1.0 / INERTIA + 0.1 / INERTIA))
    body, base = spin_of(simulation), spin_of(simulation, "base")
    assert body + 10.0 * base == pytest.approx([0.0, 3.0, 0.0], abs=1e-6)
    assert body - base == pytest.approx([0.0, apart, 0.0], abs=3.0 * ((2.2 * dt) ** 2 + (3.0 * dt) ** 2) + 1e-6)


@pytest.mark.parametrize(
    ("angle", "dt"), [(0.0, 0.01), (1e-8, 0.01), (0.3, 0.01), (1.5, 0.01), (3.0, 0.01), (0.0, 0.0005), (3.0, 0.002)]
)
def test_ball_with_stiffness_is_a_torsion_pendulum(angle, dt):
    """This holds from rest at any angle, and from zero with an initial velocity."""
    stiffness, speed = 0.5, 2.0 if angle < 1e-3 else 0.0
    simulation = ball(dt, angle * AXIS, speed * AXIS, rotary_stiffness=stiffness)
    simulation.run(duration=0.6)
    frequency = np.sqrt(stiffness / INERTIA)
    right = angle * np.cos(frequency * 0.6) + speed / frequency * np.sin(frequency * 0.6)
    found = Rotation.from_matrix(simulation.bodies["body"].transform[:3, :3]).as_rotvec()
    scale = max(angle, speed / frequency)
    assert found == pytest.approx(right * AXIS, abs=scale * (3.0 * (frequency * dt) ** 2 + 1e-5))


@pytest.mark.parametrize(("axis", "dt"), [*zip(np.eye(3), (0.01, 0.002, 0.0005))])
def test_friction_decelerates_a_ball_uniformly_to_rest(axis, dt):
    friction, speed = 0.04, 0.7
    simulation = ball(dt, 0.0 * AXIS, speed * axis, rotary_friction=friction)
    simulation.run(duration=0.2)
    assert spin_of(simulation) == pytest.approx((speed - 0.2 * friction / INERTIA) * axis, abs=2.0 * dt * friction / INERTIA)
    simulation.run(duration=0.3)
    assert np.linalg.norm(spin_of(simulation)) < 5e-3
    simulation.bodies["body"].apply_torque(0.9 * friction * axis)
    simulation.run(duration=0.1)
    assert np.linalg.norm(spin_of(simulation)) < 5e-3


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("carried", [False, True])
def test_a_rotor_adds_its_inertia(carried, dt):
    simulation = ball(dt, 0.5 * AXIS, np.zeros(3), carried, rotary_armature=0.03)
    simulation.bodies["body"].apply_torque(0.1 * AXIS)
    simulation.run(duration=0.2)
    inverse = np.linalg.inv([[INERTIA + 0.03, -0.03], [-0.03, 10.0 * INERTIA + 0.03]]) if carried else None
    rate = 0.1 * inverse[0, 0] if carried else 0.1 / (INERTIA + 0.03)
    assert spin_of(simulation) == pytest.approx(0.2 * rate * AXIS, rel=5e-3)


@pytest.mark.parametrize(("largest", "dt"), [(0.5, 0.01), (5.0, 0.01), (90.0, 0.002), (0.5, 0.0005)])
def test_a_ball_keeps_within_its_range(largest, dt):
    simulation = ball(dt, 0.0 * AXIS, 5.0 * AXIS, max_rotation_deg=(largest,) * 3, rotary_damping=0.05)
    for _ in range(round(0.3 / dt)):
        simulation.step()
        turned = Rotation.from_matrix(simulation.bodies["body"].transform[:3, :3]).magnitude()
        assert np.degrees(turned) <= largest


@pytest.mark.parametrize("keys", [{"rotary_damping": 0.01}, {"rotary_stiffness": 0.4, "rotary_damping": 0.01}])
def test_a_ball_turns_freely_beyond_any_angle(keys):
    """Rotation about changing axes passes the singularities of all sets of three angles."""
    scene = abd.Scene()
    scene.add_body("bar", box=(0.3, 0.06, 0.04), position=(0.15, 0, 0), mass=0.5, angular_velocity=(7.0, -12.0, 3.0))
    scene.add_joint("spherical", "ball", abd.WORLD, "bar", anchor=(0, 0, 0), enforcement="exact", **keys)
    simulation = abd.Simulation(scene, device="cpu")
    reports = []
    simulation.run(duration=2.0, on_step=reports.append)
    assert all(report.converged for report in reports)


@pytest.mark.parametrize("angle", [0.0, 1e-14, 1e-9, 1e-4, 0.03, 0.032, 0.5, 1.57, 2.0, 3.1, np.pi - 1e-7])
def test_the_rotation_vector_is_that_of_the_pose(angle):
    """Its derivative by a small rotation is correct on both sides of the series."""
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(angle * AXIS).as_matrix()
    measures = [rotation_vector(k) for k in range(3)]
    assert value_at(measures, T) == pytest.approx(angle * AXIS, abs=1e-8)
    if angle < 3.0:
        half = 0.5 * angle
        along, across = np.outer(AXIS, AXIS), np.eye(3) - np.outer(AXIS, AXIS)
        turn = half * np.cross(np.eye(3), AXIS).T
        right = along + (half / np.tan(half) if angle else 1.0) * across
        found = twist_gradient(measures, T)[:, 3:]
        assert min(np.abs(found - (right + sign * turn)).max() for sign in (1.0, -1.0)) < 1e-8
