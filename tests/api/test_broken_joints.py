"""Bodies of a broken joint have contact again."""

import logging

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device


def hung(**joint) -> abd.Scene:
    """A weight that a joint much too weak for it holds above a plate."""
    scene = abd.Scene()
    scene.add_body("plate", box=(1, 1, 0.1), fix=("x", "y", "z", "rx", "ry", "rz"))
    scene.add_body("weight", box=(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.17))
    frames = {"anchor": (0, 0, 0.1), "break_force": 1.0, **joint}
    scene.add_joint("fixed", "thread", "plate", "weight", **frames)
    return scene


def hooked() -> abd.Scene:
    """Two links that reach into one another fly apart, from a joint that breaks at once, against a wall that sends one back."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_material("steel", restitution=1.0)
    own = {"box": (0.4, 0.1, 0.1), "mass": 1.0, "material": "steel"}
    scene.add_body("wall", half_space={"normal": (-1, 0, 0), "offset": -0.9}, material="steel")
    scene.add_body("left", **own)
    scene.add_body("right", position=(0.35, 0, 0), force=(5, 0, 0), **own)
    scene.add_joint("spherical", "hook", "left", "right", anchor=(0.175, 0, 0), break_force=1.0)
    return scene


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_weight_with_broken_joint_rests_on_its_former_parent(device):
    sim = abd.Simulation(hung(), device=device)
    report = sim.step()
    assert report.broken == ("thread",)
    sim.run(steps=40)
    assert sim.pair("plate", "weight").enabled
    assert 0.15 < sim.bodies["weight"].position[2] < 0.1525
    assert sim.bodies["plate"].touches == ("weight",)


def test_overlapping_links_have_no_contact_until_separated(caplog):
    sim = abd.Simulation(hooked(), device=NAME)
    pair = sim.pair("left", "right")
    apart = None
    with caplog.at_level(logging.WARNING):
        for k in range(60):
            sim.step()
            ends = sim.bodies["left"].position[0] + 0.2, sim.bodies["right"].position[0] - 0.2
            if pair.enabled and apart is None:
                apart = k
                assert ends[1] > ends[0]
            if k == 10:
                assert not pair.enabled and sim.joints["hook"].broken_at is not None
                kept, before = sim.checkpoint(), None
            if k == 30:
                before = sim.stepper.q.copy()
    assert apart is not None and apart > 10
    assert sum("pass through each other" in record.message for record in caplog.records) == 1
    sim.restore(kept)
    assert not pair.enabled
    sim.run(steps=20)
    np.testing.assert_array_equal(sim.stepper.q, before)


def test_other_contact_exclusions_stay_after_a_joint_breaks():
    scene = hung()
    scene.add_joint("slider", "rail", "plate", "weight", anchor=(0, 0, 0.1), axis=(0, 0, 1))
    sim = abd.Simulation(scene, device=NAME)
    sim.run(steps=30)
    assert sim.joints["thread"].broken_at is not None
    assert not sim.pair("plate", "weight").enabled
    assert sim.bodies["weight"].position[2] < 0.1, "it slides through the plate on its rail"

    filtered = hung()
    filtered.add_contact_filter("plate", "weight")
    sim = abd.Simulation(filtered, device=NAME)
    sim.run(steps=3)
    assert not sim.pair("plate", "weight").enabled


def test_reactivated_joint_excludes_contact_of_its_bodies():
    sim = abd.Simulation(hung(), device=NAME)
    sim.step()
    sim.step()
    assert sim.pair("plate", "weight").enabled
    sim.joints["thread"].active = True
    assert not sim.pair("plate", "weight").enabled
    assert sim.joints["thread"].broken_at is None
    sim.reset()
    assert not sim.pair("plate", "weight").enabled and sim.joints["thread"].active
