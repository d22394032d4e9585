"""Retries stay within the parts of a scene that failed: the others notice nothing, nothing passes, and the order is kept."""

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device

DT = 0.01
MAKES = {NAME: lambda scene: abd.Simulation(scene, device=NAME), "numpy": lambda scene: abd.Simulation(scene, device="numpy")}


def two_places(thrown: bool = True, apart: bool = True, speed: float = 60.0, **solver) -> abd.Scene:
    """A box that would pass a plate within a step, and far from it a double pendulum, a body that flies and one that slides."""
    scene = abd.Scene(solver={"dt": DT, **solver})
    scene.add_body("ground", half_space={})
    if thrown:
        scene.add_body(
            "plate", box=(0.02, 1.0, 1.0), position=(0, 0, 2), kind="static", axis_angle={"axis": (0, 1, 0), "degrees": 10},
        )
        moves = {"velocity": (speed, 0, 0), "angular_velocity": (30, 50, 10)}
        scene.add_body("thrown", box=(0.2,) * 3, position=(-0.8, 0.05, 2), **moves)
    if apart:
        exact = {"axis": (0, 1, 0), "enforcement": "exact"}
        scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(50.2, 0, 3))
        scene.add_body("hand", box=(0.4, 0.05, 0.05), position=(50.6, 0, 3))
        friction = {"theta": {"friction": 0.1, "range": (-2.0, 2.0)}}
        scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(50, 0, 3), coordinate=friction, **exact)
        scene.add_hinge("elbow", "arm", "hand", anchor=(50.4, 0, 3), **exact)
        scene.add_body("flying", box=(0.1, 0.2, 0.3), position=(55, 0, 4), angular_velocity=(3, 5, 2))
        scene.add_body("slider", box=(0.2,) * 3, position=(60, 0, 0.1), velocity=(2, 0, 0))
    return scene


def test_a_run_in_which_some_retry_resumes_bit_for_bit():
    first = MAKES[NAME](two_places())
    for _ in range(10):
        report = first.step()
        if report.rejected_paths:
            break
    assert report.rejected_paths > 0
    second = MAKES[NAME](two_places())
    second.restore(first.checkpoint())
    for _ in range(3):
        first.step(), second.step()
        np.testing.assert_array_equal(second.stepper.q, first.stepper.q)
        np.testing.assert_array_equal(second.stepper.qd, first.stepper.qd)
