"""Velocities at t = 0: requested rates of coordinates, and velocities that violate joints."""

import numpy as np
import pytest

import abd
from abd.errors import SceneError


def chain(**first) -> abd.Scene:
    """Two bars of 1 m, hinged to the world at the origin and to one another, along x."""
    scene = abd.Scene(gravity=(0, 0, 0))
    for k in range(2):
        scene.add_body(f"bar{k}", box=(1.0, 0.1, 0.1), position=(0.5 + k, 0, 0))
    scene.add_hinge("root", abd.WORLD, "bar0", anchor=(0, 0, 0), axis=(0, 1, 0), **first)
    scene.add_hinge("elbow", "bar0", "bar1", anchor=(1, 0, 0), axis=(0, 1, 0))
    return scene


@pytest.mark.parametrize("key", [{"initial_rate": 3.0}, {"initial_rate_deg": 540.0 / np.pi}])
def test_coordinate_has_its_initial_rate(key):
    sim = abd.Simulation(chain(**key), device="numpy")
    assert sim.joints["root"].coordinate().speed == pytest.approx(3.0, abs=1e-9)
    bars = [sim.bodies[f"bar{k}"] for k in range(2)]
    np.testing.assert_allclose(bars[0].angular_velocity, (0.0, 3.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(bars[0].linear_velocity, (0.0, 0.0, -1.5), atol=1e-9)
    # the elbow is free: its end of the first bar has -3 m/s, and the impulse there turns the second one
    elbow = bars[1].linear_velocity[2] - 0.5 * -bars[1].angular_velocity[1]
    assert elbow == pytest.approx(-3.0, abs=1e-9)
    moment = float(sim.bodies["bar1"].mass) * (1.0 + 0.1**2) / 12.0
    impulse = float(sim.bodies["bar1"].mass) * bars[1].linear_velocity[2]
    assert moment * bars[1].angular_velocity[1] == pytest.approx(0.5 * impulse, rel=1e-9)


@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
@pytest.mark.parametrize("center", [(0, 0, 0), (1, 0, 0), (1, 2, 0), (1, 2, 3), (1e3, 0.1, 0.3)])
@pytest.mark.parametrize(
    "kind, coordinate", [("hinge", "theta"), ("slider", "z"), ("cylindrical", "theta"), ("universal", "roll")]
)
def test_joint_through_the_centre_of_mass_has_its_initial_rate(kind, coordinate, center, enforcement):
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body(
        "wheel", cylinder={"radius": 0.2, "length": 0.05}, position=center, euler={"order": "xyz", "degrees": (20, 30, 40)},
    )
    rate = {"coordinate": {coordinate: {"initial_rate": 5.0}}} | ({} if kind == "universal" else {"axis": (0.3, -0.2, 0.8)})
    scene.add_joint(kind, "axle", abd.WORLD, "wheel", anchor=center, enforcement=enforcement, **rate)
    sim = abd.Simulation(scene, device="numpy")
    assert sim.joints["axle"].coordinate(coordinate).speed == pytest.approx(5.0, abs=1e-9)


def test_inconsistent_velocities_are_projected_with_a_note():
    """A bar on a hinge at its end keeps (L^2/12) / (L^2/3) = 1/4 of a spin of 6 rad/s about its centre."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("bar", box=(1.0, 0.01, 0.01), position=(0.5, 0, 0), angular_velocity=(0, 6.0, 0))
    scene.add_hinge("root", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0))
    sim = abd.Simulation(scene, device="numpy")
    assert sim.bodies["bar"].angular_velocity[1] == pytest.approx(1.5, rel=1e-3)
    assert any("bar" in note for note in sim.model.notes)


def test_contradictory_rates_are_refused():
    scene = chain(initial_rate=3.0)
    scene.add_hinge("again", abd.WORLD, "bar0", anchor=(0, 0, 0), axis=(0, 1, 0), initial_rate=-1.0)
    with pytest.raises(SceneError, match="rate"):
        abd.Simulation(scene, device="numpy")
