"""Springs of contacts begin as far stretched as what they hold asks."""

from math import cos, sin, tan

import numpy as np
import pytest
from on_device import NAME, follow

import abd

G, SLOPE = 9.81, 0.5
DOWNHILL = np.array([cos(SLOPE), 0.0, -sin(SLOPE)])
NORMAL = np.array([sin(SLOPE), 0.0, cos(SLOPE)])


def on_slope(mu: float, floor: str = "half-space", **body) -> abd.Scene:
    """A body, 0.4 mm above a slope at the middle of its side of 0.2 m."""
    scene = abd.Scene()
    scene.add_material("rough", mu=mu)
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(SLOPE))}
    if floor == "half-space":
        scene.add_body("slope", half_space={"normal": tuple(NORMAL)}, material="rough")
    else:
        place = tuple(-0.5 * NORMAL)
        scene.add_body("slope", box=(4, 4, 1), kind="static", position=place, axis_angle=turn, material="rough")
    shape = body or {"box": (0.2, 0.2, 0.2), "axis_angle": turn}
    scene.add_body("body", **shape, position=tuple(0.1004 * NORMAL), material="rough")
    return scene


@pytest.mark.parametrize("floor", ["half-space", "box"])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_a_box_on_a_slope_is_held_from_the_start(device, floor):
    """It settles by 1.2e-5 m, until the springs of sticking friction carry its weight, and stays there."""
    simulation = abd.Simulation(on_slope(tan(SLOPE) / 0.95, floor), device=device)
    place = simulation.bodies["body"].position @ DOWNHILL
    moved = follow(simulation, 20, lambda _: float(simulation.bodies["body"].position @ DOWNHILL - place))
    assert max(np.abs(moved)) < 2e-5 and np.ptp(moved[10:]) < 5e-7


def test_a_ball_on_a_slope_rolls_from_the_start():
    simulation = abd.Simulation(on_slope(0.8, sphere={"radius": 0.1}), device=NAME)
    simulation.run(steps=10)
    speed = float(simulation.bodies["body"].linear_velocity @ DOWNHILL)
    assert speed == pytest.approx(5.0 / 7.0 * G * sin(SLOPE) * 0.1, rel=2e-3)
