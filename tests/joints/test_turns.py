"""Angles over many turns: drives to targets far away, turns within a step, friction and drives at their limit."""

import logging

import pytest
from on_device import NAME

import abd
from abd.backends.recorded import small as small_scenes

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


def test_rotation_beyond_pi_per_step_is_reported_and_substepped(caplog):
    simulation = arm(enforcement="exact", drive={"mode": "velocity", "target": 400.0})
    with caplog.at_level(logging.WARNING):
        reports = [simulation.step() for _ in range(3)]
    assert simulation.joints["j"].coordinates[0] == pytest.approx(12.0, abs=1e-6)
    assert min(report.substeps for report in reports) >= 2
    assert sum("'arm' turns by more than 2.5 rad about a joint" in one.message for one in caplog.records) == 1


def test_a_free_spin_of_more_than_a_turn_per_frame_is_counted():
    """A free hinge without drive counts its turns."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("wheel", box=(0.2, 0.2, 0.2), angular_velocity=(0, 0, 400.0), kappa=1e12)
    scene.add_hinge("j", abd.WORLD, "wheel", anchor=(0, 0, 0), axis=(0, 0, 1))
    simulation = abd.run(scene, steps=5, device=NAME)
    assert simulation.joints["j"].coordinates[0] == pytest.approx(40.0, abs=0.5)


@pytest.mark.parametrize(("device", "small"), [("numpy", 0), (NAME, 0), (NAME, 64)])
def test_free_angle_keeps_turning(device, small, monkeypatch):
    """A step fails for rotation within it, not for rotation since the start."""
    monkeypatch.setattr(small_scenes, "SMALL", small)
    simulation = arm(device, gravity=(0, 0, -9.81), dt=0.02, enforcement="exact", initial=0.5)
    reports = [simulation.step() for _ in range(45)]
    assert simulation.joints["j"].coordinates[0] > 0.5 + 2.6
    assert max(report.substeps for report in reports) == 1


def test_a_target_that_moves_by_more_than_pi_in_a_step_is_followed():
    simulation = arm(enforcement="exact", drive={"mode": "position", "target": "350 * t"})
    simulation.run(steps=3)
    assert simulation.joints["j"].coordinates[0] == pytest.approx(350 * 0.03, abs=1e-6)


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


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
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
    assert max(counts) <= 3


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
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


@pytest.mark.parametrize("phase", [0.13, 0.5, 0.9])
@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
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
