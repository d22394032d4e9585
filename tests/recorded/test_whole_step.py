"""Steps in which nothing touches anything are one record: the bits are those of launches one by one, and what the record does not
find in order is left to the direct."""

from unittest.mock import patch

import numpy as np
import pytest
from executors import pair, simulation, step_both

import abd
from abd import backends
from abd.backends.progress import Progress
from abd.backends.recorded import whole_step
from abd.backends.recorded.whole_step import WholeStep

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


@pytest.mark.parametrize("name", ["exact", "limits", "friction", "drives", "bdf1"])
def test_one_record_serves_steps_of_any_length(name):
    direct, recorded = pair(SCENES[name]())
    for _ in range(4):
        step_both(direct, recorded)
    graphs, taken = recorded.backend.iteration.graphs, recorded.backend.whole.taken
    made, generation = graphs.recorded, recorded.backend.device.generation
    for k in range(8):
        for each in (direct, recorded):
            each.stepper.substeps.take(0.01 / (1.0 + 0.3 * k), Progress())
        np.testing.assert_array_equal(recorded.stepper.q, direct.stepper.q)
        np.testing.assert_array_equal(recorded.stepper.qd, direct.stepper.qd)
    assert recorded.backend.whole.taken == taken + 8
    assert (graphs.recorded, recorded.backend.device.generation) == (made, generation)


def test_what_lands_is_left_to_the_host():
    """The steps in which the box comes near the ground; they are tried more and more rarely."""
    direct, recorded = pair(falling())
    taken = []
    for _ in range(60):
        step_both(direct, recorded, within=1e-9)
        taken.append(recorded.backend.whole.taken)
    whole = recorded.backend.whole
    assert taken[20] > 15 and taken[-1] == taken[-20], "once it is near, nothing is taken whole"
    assert 1 <= whole.left <= 8
    assert recorded.contacts() is not None and direct.stepper.figures.contacts == recorded.stepper.figures.contacts > 0


def test_a_step_that_does_not_converge_fails_as_before():
    """The record gives it up; the host says why."""
    scene = links()
    scene.solver.max_newton = 1
    scene.solver.retries = 0
    scene.solver.tolerance = 1e-9
    direct, recorded = pair(scene)
    outcome = step_both(direct, recorded)
    assert outcome[0].reason == "not_converged"
    assert (recorded.backend.whole.taken, recorded.backend.whole.left) == (0, 1)


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


def test_nobody_near_means_no_pair_is_listed():
    """Wherever the record finds nobody near, a list for the same path has no pair; where bodies overlap, it finds them."""
    random, found = np.random.default_rng(3), []
    for _ in range(40):
        scene = abd.Scene(solver={"dt": 0.01})
        for k in range(3):
            place, quaternion = random.uniform(-0.6, 0.6, 3) + np.array([0, 0, 2.0 * k]), random.normal(size=4)
            keys = {"velocity": tuple(random.uniform(-60, 60, 3)), "angular_velocity": tuple(random.uniform(-9, 9, 3))}
            shape = {"box": tuple(random.uniform(0.1, 0.5, 3))}
            scene.add_body(f"b{k}", position=tuple(place), quaternion=tuple(quaternion), **shape, **keys)
        sim = simulation(scene, True)
        whole, before = sim.backend.whole, sim.backend.whole.taken
        with patch.object(whole_step, "MOST_PASSED_OVER", 0):
            sim.step()
        alone = simulation(scene, False)
        alone.step()
        found.append(whole.taken > before)
        if found[-1]:
            assert alone.backend.contacts.candidates.pair_count == 0
            np.testing.assert_array_equal(sim.stepper.q, alone.stepper.q)
    assert 5 < sum(found) < 40


def test_small_scenes_are_recorded_by_default():
    small = abd.Simulation(links(), device="cpu")
    assert isinstance(small.backend.whole, WholeStep) and small.backend.device.threads == 1
    with patch.object(backends, "SMALL", 2):
        assert not abd.Simulation(links(), device="cpu").backend.device.records
