"""Laws of coordinates by known loads: limits and their restitution, locks, drives, springs, friction, armature, couplings.

An arm of 1 kg on a hinge about z without gravity, loaded by a constant torque; its inertia about the axis is known.
"""

import math

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME, follow
from scipy.interpolate import CubicSpline

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device

MASS, LENGTH = 1.0, 0.4
INERTIA = MASS * (LENGTH**2 / 3.0 + 0.1**2 / 12.0)
"""About the hinge at the arm's end [kg m^2]."""
devices = pytest.mark.parametrize("device", ["numpy", NAME])


def arms(
    device: str, torque=0.0, spin=0.0, dt=0.01, enforcement="exact", coupling: dict | None = None, **settings
) -> abd.Simulation:
    """An arm on a hinge about z under a torque, with settings of its coordinate, and another one if it is coupled."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "tolerance": 1e-7, "integrator": "bdf1"})
    motion = {"torque": (0, 0, torque), "angular_velocity": (0, 0, spin), "velocity": (0, spin * LENGTH / 2, 0)}
    for k, (moves, own) in enumerate([(motion, settings), ({}, {})][: 1 + bool(coupling)]):
        scene.add_body(f"arm{k}", box=(LENGTH, 0.1, 0.1), mass=MASS, position=(LENGTH / 2, 0, k), kappa=1e10, **moves)
        keys = {"anchor": (0, 0, k), "axis": (0, 0, 1), "length": 0.5, "enforcement": enforcement}
        scene.add_hinge(f"hinge{k}", abd.WORLD, f"arm{k}", coordinate={"theta": own}, **keys)
    if coupling:
        scene.add_coupling("coupling", "hinge0", **coupling)
    return abd.Simulation(scene, device=device)


def angles(simulation: abd.Simulation, steps: int) -> np.ndarray:
    """(steps, k) angles [rad]."""
    joints = simulation.joints.values()
    return np.array(follow(simulation, steps, lambda _: [joint.coordinates[0] for joint in joints]))


@devices
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_a_lock_holds_against_a_torque(device, enforcement):
    simulation = arms(device, torque=0.5, locked=True, enforcement=enforcement)
    angle, joint = angles(simulation, 20)[-1, 0], simulation.model.joints[0]
    assert simulation.joints["hinge0"].theta.lock_force == pytest.approx(-0.5, rel=1e-3)
    if enforcement == "exact":
        assert abs(angle) < 1e-8
    else:
        K = joint.strength_ratio * joint.stiffness_mass * joint.length**2
        assert angle == pytest.approx(1e-4 * 0.5 / K, rel=1e-3)


@pytest.mark.parametrize("keys", [{}, {"damping": 1e4}], ids=["stiff", "gain"])
def test_a_velocity_drive_turns_at_its_speed(keys):
    found = angles(arms(NAME, torque=0.5, drive={"mode": "velocity", "target": 2.0, **keys}), 30)[:, 0]
    assert np.diff(found)[5:] == pytest.approx(0.02, rel=1e-3)


SLIPS = 1e-4 * 210 / INERTIA
"""Angle per torque after 20 steps of implicit Euler from rest [rad/(N m)]."""
COMPLIANT = {"range": (-1.0, 0.1), "limit": "compliant", "limit_compliance": 0.02, "limit_damping": 3.0}
CUBIC = {"range": (-0.1, 0.1), "limit": "cubic", "limit_strength": 0.02, "damping": 0.5}
PD = {"mode": "pd", "target": 0.4, "stiffness": 20.0, "damping": 1.0}
SERVO = {"mode": "position", "target": 1.0, "effort": 0.4}
WEAK = {"mode": "pd", "target": -1.0, "stiffness": 1e3, "damping": 0.0, "effort": 0.3}
ENDS = {
    # name: keys of `arms`, steps, angle at the end [rad], tolerance [rad]
    "compliant limit": ({"torque": 0.5, **COMPLIANT}, 300, 0.1 + 0.5 * 0.02, 1e-5),
    # 3 s v^2 / w^3 = h^2 torque, with v = x - upper, w = upper - lower
    "cubic limit": ({"torque": 0.5, **CUBIC}, 800, 0.1 + math.sqrt(4e-7 / 0.06), 2.5e-6),
    "pd drive": ({"torque": 0.5, "drive": PD}, 150, 0.425, 4e-5),
    "pd drive at its effort": ({"torque": 0.5, "drive": WEAK}, 20, 0.2 * SLIPS, 2e-4 * SLIPS),
    "position drive at its effort": ({"drive": SERVO}, 10, 0.4 / INERTIA * 1e-4 * 55, 4e-4 / INERTIA * 1e-4 * 55),
    "force drive": ({"drive": {"mode": "force", "target": 0.2}}, 20, 0.2 * SLIPS, 2e-4 * SLIPS),
    "friction that slips": ({"torque": 0.5, "friction": 0.2}, 20, 0.3 * SLIPS, 6e-3 * SLIPS),
    "armature": ({"torque": 0.2, "armature": 0.1}, 20, 0.2 * SLIPS * INERTIA / (INERTIA + 0.1), 7e-5 * SLIPS),
    "damping": (
        {"spin": 1.0, "damping": 0.4, "dt": 1e-3}, 200, INERTIA / 0.4 * (1.0 - math.exp(-0.08 / INERTIA)), 5e-4
    ),
}  # fmt: skip
AT_REST = {
    "friction": {"torque": 0.19, "friction": 0.2},
    "brake": {"torque": 0.5, "drive": {"mode": "brake", "effort": 0.6}},
    "brake without limit": {"torque": 0.5, "drive": {"mode": "brake"}},
}


@pytest.mark.parametrize("name", ENDS)
def test_equilibrium_of_arms_with_laws(name):
    keys, steps, angle, tolerance = ENDS[name]
    assert angles(arms(NAME, **keys), steps)[-1, 0] == pytest.approx(angle, abs=tolerance)


@pytest.mark.parametrize("name", AT_REST)
def test_friction_and_brakes_hold_below_their_torque(name):
    found = angles(arms(NAME, **AT_REST[name]), 50)
    assert abs(found[-1, 0] - found[-2, 0]) <= 1e-3 * 0.01


@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_a_gear_turns_the_other_arm(enforcement):
    """With theta_0 = 3 theta_1 the torque acts on I + I/9."""
    gear = {"terms": [{"coordinate": "hinge1"}], "scale": 3.0, "enforcement": enforcement}
    one, other = angles(arms(NAME, torque=0.2, coupling=gear), 20)[-1]
    assert one == pytest.approx(3.0 * other, abs=1e-8 if enforcement == "exact" else 1e-4)
    assert one == pytest.approx(0.2 / (INERTIA * (1 + 1 / 9)) * 1e-4 * 210, rel=2e-3)


def test_a_table_couples_along_its_spline():
    table = [(-1.0, -1.0), (0.0, 0.0), (0.5, 0.8), (1.0, 0.9)]
    cam = {"terms": [{"coordinate": "hinge1", "table": table}], "enforcement": "exact"}
    one, other = angles(arms(NAME, coupling=cam, drive={"mode": "position", "target": "2 * t"}), 30)[-1]
    assert one == pytest.approx(0.6, abs=1e-7)
    assert float(CubicSpline(*zip(*table), bc_type="natural")(other)) == pytest.approx(0.6, abs=1e-7)


def test_friction_grows_with_the_load_of_its_joint():
    """A block of 2 kg on a slider has the friction mu m g: 5 N does not move it, 12 N does."""
    moved = []
    for push in (5.0, 12.0):
        scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf1"})
        scene.add_body("block", box=(0.2, 0.2, 0.2), mass=2.0, force=(push, 0, 0))
        friction = {"z": {"friction_load": 0.4}}
        scene.add_slider("j", abd.WORLD, "block", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", coordinate=friction)
        simulation = abd.run(scene, steps=12, device=NAME)
        first = simulation.joints["j"].rates[0]
        simulation.run(steps=10)
        moved.append((simulation.joints["j"].rates[0] - first) / 0.1)
    assert abs(moved[0]) < 1e-2
    assert moved[1] == pytest.approx((12.0 - 0.4 * 2.0 * 9.81) / 2.0, rel=1e-3)


def test_bearing_friction_uses_its_radius_and_resumes_from_checkpoints():
    """The torque is mu r m g under gravity; a checkpoint continues bit for bit."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("wheel", box=(0.2, 0.2, 0.2), mass=3.0, angular_velocity=(0, 10.0, 0))
    scene.add_hinge("j", abd.WORLD, "wheel", anchor=(0, 0, 0), axis=(0, 1, 0), coordinate={"theta": {"friction_load": 2e-3}})
    simulation = abd.Simulation(scene, device=NAME)
    rates = []
    for k in range(30):
        simulation.step()
        rates.append(simulation.joints["j"].rates[0])
        if k == 19:
            saved = simulation.checkpoint()
    slowing = (rates[9] - rates[29]) / 0.2
    assert slowing == pytest.approx(2e-3 * 3.0 * 9.81 / (3.0 * 0.04 / 6.0), rel=2e-2)
    simulation.restore(saved)
    simulation.run(steps=10)
    assert simulation.joints["j"].rates[0] == rates[29]


def arm(e: float, rate: float = 3.0, integrator: str = "generalized_alpha", dt: float = 0.01, **limits) -> abd.Scene:
    """An arm that turns freely towards its end at 0.1 rad."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "integrator": integrator})
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    keys = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": "exact", "initial_rate": rate}
    theta = {"range": (-1, 0.1), "limit_restitution": e, **limits}
    scene.add_hinge("joint", abd.WORLD, "arm", coordinate={"theta": theta}, **keys)
    return scene


@pytest.mark.parametrize(
    ("e", "integrator", "device", "dt", "within"),
    [
        *((e, integrator, NAME, 0.01, 0.015) for e in (0.3, 1.0) for integrator in ("generalized_alpha", "bdf1")),
        (0.3, "generalized_alpha", "numpy", 0.01, 0.015),
        *((e, "generalized_alpha", NAME, dt, 3e-3) for e in (0.2, 0.9) for dt in (1e-3, 1e-4)),
    ],
)
def test_limit_restitution_is_the_speed_ratio(e, integrator, device, dt, within):
    """The barrier does not push in the short steps in which the coordinate leaves it."""
    sim = abd.run(arm(e, integrator=integrator, dt=dt), steps=round(0.08 / dt), device=device)
    assert sim.joints["joint"].theta.speed == pytest.approx(-3.0 * e, abs=within)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_slider_between_free_bodies_keeps_their_momentum(dt):
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("base", box=(0.4, 0.1, 0.1), mass=3.0, velocity=(0.2, 0.3, 0))
    scene.add_body("cart", box=(0.1, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0), velocity=(0.2, 0.3, 0))
    ends = {"z": {"range": (-1, 0.05), "limit_restitution": 0.8}}
    frames = {"anchor": (0.2, 0, 0), "axis": (1, 0, 0)}
    scene.add_joint("slider", "joint", "base", "cart", enforcement="exact", initial_rate=1.5, coordinate=ends, **frames)
    sim = abd.Simulation(scene, device=NAME)
    begin = sim.model.bodies.mass @ sim.stepper.qd[:, :3]
    sim.run(steps=int(0.08 / dt))
    assert sim.joints["joint"].coordinate("z").speed == pytest.approx(-0.8 * 1.5, rel=1e-3)
    np.testing.assert_allclose(sim.model.bodies.mass @ sim.stepper.qd[:, :3], begin, atol=1e-6)


def test_weight_comes_to_rest_at_its_limit():
    scene = arm(0.7, rate=0.0)
    scene.gravity = (0, 0, -9.81)
    sim = abd.Simulation(scene, device=NAME)
    theta = sim.joints["joint"].coordinate("theta")
    speeds, values = np.array(follow(sim, 300, lambda _: (theta.speed, theta.value))).T
    assert values.max() < 0.1
    assert np.sum(np.diff(np.sign(speeds[:200])) != 0) > 3, "it bounces more than once"
    assert np.abs(speeds[-20:]).max() < 1e-3, "the barrier widens slowly again"


def test_impact_is_transmitted_through_a_cart_to_its_limit():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 1e-3})
    scene.add_material("default", restitution=1.0)
    scene.add_body("cart", box=(0.1, 0.1, 0.1), mass=1.0)
    scene.add_body("box", box=(0.1, 0.1, 0.1), mass=1.0, position=(-0.12, 0, 0), velocity=(1, 0, 0))
    z = {"range": (-1, 1e-4), "limit_restitution": 1.0, "drive": {"mode": "force", "target": 1.0}}
    rail = {"axis": (1, 0, 0), "anchor": (0, 0, 0), "enforcement": "exact"}
    scene.add_slider("joint", abd.WORLD, "cart", coordinate={"z": z}, **rail)
    sim = abd.run(scene, steps=40, device=NAME)
    assert sim.bodies["box"].velocity[0, 3] == pytest.approx(-1.0, rel=1e-2)
    assert abs(sim.joints["joint"].coordinate("z").speed) < 0.05


def test_a_locked_arm_is_a_wall():
    """For a ball with an elastic impact; `step/test_restitution.py` has the arm with a rotor."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 1e-3})
    scene.add_material("default", restitution=1.0)
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    scene.add_body("ball", sphere={"radius": 0.05}, position=(0.3, 0, 0.11), mass=1.0, velocity=(0, 0, -1))
    scene.add_hinge("joint", abd.WORLD, "arm", enforcement="exact", anchor=(0, 0, 0), axis=(0, -1, 0), locked=True)
    sim = abd.Simulation(scene, device=NAME)
    assert np.abs(follow(sim, 25, lambda _: sim.joints["joint"].theta.speed)).max() < 1e-3
    assert sim.bodies["ball"].linear_velocity[2] == pytest.approx(1.0, rel=2e-3)


def test_limit_restitution_can_be_set_in_scenes_and_at_run_time():
    sim = abd.Simulation(arm(0.0), device=NAME)
    theta = sim.joints["joint"].coordinate("theta")
    assert theta.limit_restitution == 0.0
    theta.set_limit(restitution=0.4)
    assert_goes_on(sim, abd.Simulation(arm(0.0), device=NAME), 12)
    assert theta.limit_restitution == 0.4 and theta.speed == pytest.approx(-0.4 * 3.0, rel=1e-2)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        theta.set_limit(restitution=1.5)
    theta.set_limit(compliance=1e-3)
    assert theta.limit_restitution == 0.0
    with pytest.raises(ValueError, match="needs barriers"):
        theta.set_limit(restitution=0.5)
    with pytest.raises(SceneError, match="has no effect on a compliant limit"):
        arm(0.5, limit="compliant", limit_compliance=1e-3)
    with pytest.raises(SceneError, match="limit_restitution"):
        arm(1.5)


@pytest.mark.parametrize(
    ("dt", "enforcement"), [(1e-2, "exact"), (1e-2, "penalty"), (2e-3, "exact"), (5e-4, "penalty"), (1e-4, "exact")]
)
def test_limit_carries_the_load_after_an_impact(dt, enforcement):
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("bar", box=(1, 0.05, 0.05), mass=1, position=(0.5, 0, 0))
    pivot = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "range": (-3, 0.3), "enforcement": enforcement}
    scene.add_hinge("pivot", abd.WORLD, "bar", **pivot)
    sim = abd.Simulation(scene, device=NAME)
    sim.run(duration=0.3)  # it hits after 0.2 s
    theta, lowest = sim.joints["pivot"].coordinate("theta"), 0.0
    for _ in range(max(2, round(0.02 / dt))):
        sim.step()
        assert -theta.limit_force == pytest.approx(9.81 * 0.5 * np.cos(theta.value), rel=0.01)
        lowest = min(lowest, theta.speed)
    assert lowest > -0.01 * 2.7, "no rebound"
