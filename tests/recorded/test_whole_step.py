"""Steps in which nothing touches anything are one record: the bits are those of launches one by one, and what the record does not
find in order is left to the direct."""


import numpy as np
import pytest
from executors import pair, simulation, step_both

import abd

DRIVE = {"mode": "pd", "target": "0.3*sin(5*t)", "stiffness": 200.0, "damping": 5.0, "effort": 30.0}


def links(enforcement: str = "exact", boxes: bool = True, integrator: str = "generalized_alpha", **keys) -> abd.Scene:
    """Three bars of 1 m on hinges about y, level at the start; keys of all hinges."""
    scene = abd.Scene(solver={"dt": 0.01, "integrator": integrator})
    for k in range(3):
        matter = {"box": (1, 0.1, 0.1)} if boxes else {"proxy": True, "inertia": (0.01, 0.1, 0.1)}
        scene.add_body(f"bar{k}", mass=1.0, position=(k + 0.5, 0, 0), **matter)
        parent = f"bar{k - 1}" if k else "world"
        scene.add_hinge(
            f"hinge{k}", parent, f"bar{k}", anchor=(k, 0, 0), axis=(0, 1, 0), enforcement=enforcement, **keys
        )
    return scene


def falling() -> abd.Scene:
    """A box that turns as it falls, and lands after some twenty steps."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.2, 0.3, 0.4), position=(0, 0, 0.5), angular_velocity=(3, 2, 1))
    return scene


SCENES = {
    "exact": links,
    "penalty": lambda: links("penalty"),
    "without surfaces": lambda: links(boxes=False),
    "limits": lambda: links(boxes=False, range=(-0.2, 0.15)),
    "friction": lambda: links(boxes=False, friction=0.5),
    "drives": lambda: links(drive=DRIVE),
    "bdf1": lambda: links(integrator="bdf1"),
    "bdf2": lambda: links(integrator="bdf2"),
    "falling": falling,
}


@pytest.mark.parametrize("name", SCENES)
def test_the_bits_are_those_of_the_host(name):
    direct, recorded = pair(SCENES[name]())
    for _ in range(40):
        ours, theirs = step_both(direct, recorded)
        assert theirs.energy == pytest.approx(ours.energy, rel=1e-12, abs=1e-12)
        assert theirs.tolerance_achieved == pytest.approx(ours.tolerance_achieved, rel=1e-9)
        assert theirs.max_joint_residual == ours.max_joint_residual
        np.testing.assert_array_equal(recorded.coordinates, direct.coordinates)
    whole = recorded.backend.whole
    assert whole.taken > 10, (whole.taken, whole.left)
    assert recorded.backend.iteration.graphs.replayed > 5


def test_it_goes_on_bit_for_bit():
    """From a checkpoint in the middle of whole steps, and after other loads and another gravity."""
    sim = simulation(links(), True)
    for _ in range(15):
        sim.step()
    saved = sim.checkpoint()
    resumed = simulation(links(), True)
    resumed.restore(saved)
    for one in (sim, resumed):
        one.gravity = (1.0, 0.0, -5.0)
        one.bodies["bar2"].apply_force((0.0, 0.0, 3.0))
        for _ in range(15):
            one.step()
    assert sim.backend.whole.taken == 30 and resumed.backend.whole.taken == 15
    np.testing.assert_array_equal(resumed.stepper.q, sim.stepper.q)
    np.testing.assert_array_equal(resumed.stepper.qd, sim.stepper.qd)
