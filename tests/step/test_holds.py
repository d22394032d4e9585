"""Springs of contacts begin as far stretched as what they hold asks."""

from __future__ import annotations

from math import cos, sin, tan

import numpy as np
import pytest
from on_device import NAME

import abd

G, SLOPE = 9.81, 0.5
DOWNHILL = np.array([cos(SLOPE), 0.0, -sin(SLOPE)])
NORMAL = np.array([sin(SLOPE), 0.0, cos(SLOPE)])


def on_slope(mu: float, floor: str = "half-space", velocity: float = 0.0, **body) -> abd.Scene:
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
    push = tuple(velocity * DOWNHILL)
    scene.add_body("body", **shape, position=tuple(0.1004 * NORMAL), velocity=push, material="rough")
    return scene


@pytest.mark.parametrize("floor", ["half-space", "box"])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_a_box_on_a_slope_is_held_from_the_start(device, floor):
    """What moves it is that it leans on its lower edge, within the gap: 3.6e-6 m; springs that begin slack gave 1.1e-5 m."""
    simulation = abd.Simulation(on_slope(tan(SLOPE) / 0.95, floor), device=device)
    held = simulation.stepper.backend.friction.read_anchors()
    wanted = 1.0 - np.sqrt(1.0 - 0.95)  # f1(s) = 0.95
    np.testing.assert_allclose(np.linalg.norm(held.share, axis=1), wanted, rtol=1e-6)
    place = simulation.bodies["body"].position @ DOWNHILL
    moved = []
    for _ in range(20):
        simulation.step()
        moved.append(float(simulation.bodies["body"].position @ DOWNHILL - place))
    assert max(np.abs(moved)) < 4.5e-6 and np.ptp(moved) < 5e-7


def test_a_ball_on_a_slope_rolls_from_the_start():
    simulation = abd.Simulation(on_slope(0.8, sphere={"radius": 0.1}), device=NAME)
    held = simulation.stepper.backend.friction.read_anchors()
    part = 2.0 / 7.0 * tan(SLOPE) / 0.8
    np.testing.assert_allclose(np.linalg.norm(held.share, axis=1), 1.0 - np.sqrt(1.0 - part), rtol=1e-6)
    for _ in range(10):
        simulation.step()
    speed = float(simulation.bodies["body"].linear_velocity @ DOWNHILL)
    assert speed == pytest.approx(5.0 / 7.0 * G * sin(SLOPE) * 0.1, rel=2e-3)


def test_what_slides_is_not_held():
    simulation = abd.Simulation(on_slope(0.6, velocity=0.1), device=NAME)
    assert len(simulation.stepper.backend.friction.read_anchors()) == 0


def test_a_leaning_stack_is_held_together():
    """Of three boxes on a slope, each contact holds all that is above it."""
    scene = on_slope(tan(SLOPE) / 0.8)
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(SLOPE))}
    for k in (1, 2):
        place = tuple((0.1004 + 0.2004 * k) * NORMAL)
        scene.add_body(f"upper{k}", box=(0.2,) * 3, position=place, axis_angle=turn, material="rough")
    simulation = abd.Simulation(scene, device=NAME)
    held = simulation.stepper.backend.friction.read_anchors()
    assert len(held) == 6  # either order of the bodies of three pairs
    np.testing.assert_allclose(np.linalg.norm(held.share, axis=1), 1.0 - np.sqrt(0.2), rtol=1e-3)
