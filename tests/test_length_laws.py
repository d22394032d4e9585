"""Connectors whose force is a function of their length or gap, by closed forms and beside springs that are built in."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import DEVICE, NAME

import abd
from abd.errors import SceneError
from abd.joints.relations import FUNCTIONS
from abd.scene.scaled import scaled

pytestmark = pytest.mark.device
on_host = pytest.mark.skipif(DEVICE.wide, reason="users' functions are Python, which runs on the processor")
ENDS = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}


def pulled(law: dict, dt: float = 0.01, gravity: tuple = (0, 0, 0), **solver) -> abd.Scene:
    """A body of 2 kg, a metre from the origin, which it is tied to."""
    scene = abd.Scene(gravity=gravity, solver={"dt": dt, "tolerance": 1e-8, **solver})
    scene.add_body("a", box=(0.1, 0.1, 0.1), mass=2.0, position=(1.0, 0, 0))
    scene.add_spring("tie", abd.WORLD, "a", **law, **ENDS)
    return scene


def place(scene: abd.Scene, steps: int, device: str = NAME) -> tuple[float, float, float]:
    """Place, speed and force after some steps."""
    sim = abd.Simulation(scene, device=device)
    for _ in range(steps):
        sim.step()
    body = sim.bodies["a"]
    return body.position[0], body.linear_velocity[0], sim.joints["tie"].wrench()[0][0]


@on_host
def test_an_attraction_by_the_inverse_square_falls_as_kepler_says():
    """v^2 / 2 = (c / m) (1 / r - 1), and the force is that of the place."""
    x, v, force = place(pulled({"force_formula": "-3 / length**2"}, dt=0.005, spectral_radius=1.0), 130)
    assert x < 0.65 and v == pytest.approx(-np.sqrt(3.0 * (1.0 / x - 1.0)), rel=2e-3)
    assert force == pytest.approx(-3.0 / x**2, rel=1e-6)


@on_host
@pytest.mark.parametrize("device", sorted({NAME, "numpy"}))
@pytest.mark.parametrize("stiffness", [200.0, 1e6])
def test_a_linear_law_is_the_spring_of_the_same_stiffness(device, stiffness):
    """The same steps, however stiff, with a damper beside it."""
    common = {"rest_length": 0.9, "damping": 3.0}
    laws = {"stiffness": stiffness}, {"force_formula": f"-{stiffness} * gap"}
    one, other = (place(pulled(law | common, integrator="bdf1"), 8, device) for law in laws)
    assert other[:2] == pytest.approx(one[:2], abs=2e-8) and other[2] == pytest.approx(one[2], abs=4e-8 * stiffness + 1e-5)


@on_host
def test_a_function_that_only_pulls_carries_where_it_is_taut():
    """A cubic rope: slack it does nothing, and it carries m g where a gap^3 = m g."""
    abd.coupling_function("cubic rope", lambda at: -5e4 * max(0.0, at[1]) ** 3)
    try:
        scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-9, "integrator": "bdf1"})
        scene.add_body("a", box=(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -1), rotary_damping=10.0, linear_damping=50.0)
        scene.add_spring("tie", abd.WORLD, "a", force_function="cubic rope", rest_length=1.1, **ENDS)
        sim = abd.Simulation(scene, device=NAME)
        sim.step()
        assert not sim.joints["tie"].wrench()[0].any()
        sim.run(steps=150)
        assert -sim.bodies["a"].position[2] - 1.1 == pytest.approx((2.0 * 9.81 / 5e4) ** (1.0 / 3.0), rel=1e-4)
        assert sim.joints["tie"].wrench()[0][2] == pytest.approx(2.0 * 9.81, rel=1e-4)
        with pytest.raises(SceneError, match="nothing says how it scales"):
            scaled(scene.spec, 2.0)
    finally:
        del FUNCTIONS["cubic rope"]


@on_host
def test_a_law_is_kept_by_files_and_scales(tmp_path):
    """Lengths ten times as large fall ten times as far in the same time."""
    scene = pulled({"force_formula": "-3 / length**2 - gap", "rest_length": 0.2})
    scene.save(tmp_path / "tie.toml")
    assert place(abd.load(tmp_path / "tie.toml"), 20) == place(scene, 20)
    large = scene.scaled(10.0)
    assert np.array(place(large, 20)) == pytest.approx(10.0 * np.array(place(scene, 20)), rel=1e-6)


@pytest.mark.parametrize(
    "keys, told",
    [
        ({}, "has no stiffness"),
        ({"force_formula": "-3 * legnth"}, "unknown name 'legnth'"),
        ({"force_function": "nobody"}, "there is no function 'nobody'"),
        ({"force_formula": "-gap", "force_function": "nobody"}, "force_formula is given as well"),
    ],
)
def test_what_is_no_law_is_told(keys, told):
    with pytest.raises(SceneError, match=told):
        pulled(keys)


def test_other_joints_say_where_it_belongs():
    scene = abd.Scene()
    scene.add_body("a", box=(0.1, 0.1, 0.1))
    with pytest.raises(SceneError, match=r"belongs to .*spring.*, or to \[joint.coordinate.NAME\]"):
        scene.add_hinge("h", abd.WORLD, "a", anchor=(0, 0, 0), axis=(0, 1, 0), force_formula="-q")
