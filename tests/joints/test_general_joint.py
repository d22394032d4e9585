"""General joints between moving bodies: offsets of held axes that follow time, springs by functions of their coordinates."""

import numpy as np
import pytest
from on_device import DEVICE, NAME

import abd

pytestmark = pytest.mark.device


def pair(**joint) -> abd.Scene:
    """Two boxes in free flight that turn together about z, joined at a point between them."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    own = {"box": (0.2, 0.2, 0.2), "angular_velocity": (0, 0, 1)}
    scene.add_body("one", mass=1.0, **own)
    scene.add_body("two", mass=2.0, position=(0.5, 0, 0), velocity=(0, 0.5, 0), **own)
    scene.add_joint("general", "joint", "one", "two", anchor=(0.5, 0, 0), **joint)
    return scene


def test_an_offset_of_a_held_axis_follows_time():
    """An axis with a position drive is constrained with an offset, as exactly as the joint, on a rotating parent."""
    drive = {"mode": "position", "target": "0.02*sin(3*t)"}
    others = ["y", "z", "rx", "ry", "rz"]
    sim = abd.Simulation(pair(constrained=others, enforcement="exact", coordinate={"x": {"drive": drive}}), device=NAME)
    for _ in range(30):
        report = sim.step()
        assert sim.joints["joint"].coordinate("x").value == pytest.approx(0.02 * np.sin(3 * sim.time), abs=1e-8)
        assert report.max_joint_residual[0] < 1e-8


@pytest.mark.skipif(DEVICE.wide, reason="users' functions are Python, which runs on the processor")
def test_a_bushing_by_functions_of_its_coordinates():
    """Forces by formulas along six free axes equal a bushing of the same stiffness."""
    gains = {"x": 400.0, "y": 300.0, "z": 500.0, "rx": 3.0, "ry": 4.0, "rz": 5.0}
    forces = {name: {"force_formula": f"-{k} * q",} for name, k in gains.items()}
    scenes = [pair(constrained=[], coordinate=forces), abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})]
    scenes[1].spec.body.extend(scenes[0].spec.body)
    scenes[1].add_joint("bushing", "joint", "one", "two", anchor=(0.5, 0, 0), stiffness=list(gains.values()))
    sims = [abd.Simulation(scene, device=NAME) for scene in scenes]
    for _ in range(30):
        for sim in sims:
            sim.step()
    for name in ("one", "two"):
        np.testing.assert_allclose(*(sim.bodies[name].transform for sim in sims), atol=1e-5)
