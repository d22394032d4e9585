"""Restitution of limits, with contacts, rotors and locks."""

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME, follow

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device


def arm(e: float, rate: float = 3.0, integrator: str = "generalized_alpha", dt: float = 0.01, **limits) -> abd.Scene:
    """An arm that turns freely towards its end at 0.1 rad."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "integrator": integrator})
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    keys = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": "exact", "initial_rate": rate}
    theta = {"range": (-1, 0.1), "limit_restitution": e, **limits}
    scene.add_hinge("joint", abd.WORLD, "arm", coordinate={"theta": theta}, **keys)
    return scene


@pytest.mark.parametrize(
    ("e", "integrator", "device"),
    [
        (0.3, "generalized_alpha", NAME), (1.0, "generalized_alpha", NAME), (0.3, "bdf1", NAME), (1.0, "bdf1", NAME),
        (0.3, "generalized_alpha", "numpy"),
    ],
)  # fmt: skip
def test_limit_restitution_is_the_speed_ratio(e, integrator, device):
    sim = abd.run(arm(e, integrator=integrator), steps=8, device=device)
    assert sim.joints["joint"].theta.speed == pytest.approx(-3.0 * e, abs=3.0 * 5e-3)


@pytest.mark.parametrize("e", [0.2, 0.9])
@pytest.mark.parametrize("dt", [1e-3, 1e-4])
def test_limit_restitution_does_not_depend_on_the_step(dt, e):
    """The barrier does not push in the short steps in which the coordinate leaves it."""
    sim = abd.run(arm(e, 4.0, dt=dt), steps=round(0.04 / dt), device=NAME)
    assert sim.joints["joint"].theta.speed == pytest.approx(-4.0 * e, abs=4e-3)


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
    """A box hits a cart at its limit, which returns the impact to the box."""
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


@pytest.mark.parametrize("joint", [{"armature": 0.2}, {"locked": True}])
def test_an_arm_with_a_rotor_is_a_mass_and_a_locked_one_a_wall(joint):
    """After an elastic impact at r a ball and an arm with rotor inertia a separate like it and a mass ``(I + a) / r^2``."""
    r, mass = 0.3, ((0.4**2 + 0.1**2) / 12.0 + 0.2**2 + 0.2) / 0.3**2
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 1e-3})
    scene.add_material("default", restitution=1.0)
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    scene.add_body("ball", sphere={"radius": 0.05}, position=(r, 0, 0.11), mass=1.0, velocity=(0, 0, -1))
    scene.add_hinge("joint", abd.WORLD, "arm", enforcement="exact", anchor=(0, 0, 0), axis=(0, -1, 0), **joint)
    sim = abd.Simulation(scene, device=NAME)
    rates = follow(sim, 25, lambda _: sim.joints["joint"].theta.speed)
    speed = sim.bodies["ball"].linear_velocity[2]
    if "locked" in joint:
        assert np.abs(rates).max() < 1e-3 and speed == pytest.approx(1.0, rel=2e-3)
    else:
        assert speed == pytest.approx(-(1.0 - mass) / (1.0 + mass), rel=5e-3)
        assert rates[-1] == pytest.approx(-2.0 / (1.0 + mass) / r, rel=5e-3)


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
