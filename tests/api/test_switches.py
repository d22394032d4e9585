"""Bodies, joints and pairs that are switched off and on in a running simulation, and pairs of broken joints."""

import copy
import logging

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device


def shelf(**solver) -> abd.Scene:
    """A box on a plank on posts over the ground, a pendulum, and a plate that is moved to and fro."""
    scene = on_ground(0.5, "shelf", **solver)
    scene.add_body("plank", box=(1, 1, 0.1), position=(0, 0, 1), fix=("x", "y", "z", "rx", "ry", "rz"))
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 0, 1.151))
    scene.add_body("bob", box=(0.5, 0.1, 0.1), position=(5.25, 0, 2))
    scene.add_hinge("pivot", abd.WORLD, "bob", anchor=(5, 0, 2), axis=(0, 1, 0), enforcement="exact")
    scene.add_body("far", box=(0.2, 0.2, 0.2), position=(9, 0, 3), angular_velocity=(1, 2, 3))
    return scene


def z(sim: abd.Simulation, name: str) -> float:
    return float(sim.bodies[name].position[2])


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_disabled_body_is_static_without_contact_until_it_is_enabled_without_overlap(device):
    sim, other = abd.Simulation(shelf(), device=device), abd.Simulation(shelf(), device=device)
    for _ in range(4):
        sim.step(), other.step()
    sim.bodies["plank"].enabled = False
    assert not sim.bodies["plank"].enabled and sim.bodies["plank"].touches == ()
    assert not np.any(sim.bodies["plank"].linear_velocity)
    placed = sim.bodies["plank"].transform
    for _ in range(10):
        sim.step(), other.step()
    np.testing.assert_array_equal(sim.bodies["plank"].transform, placed)
    assert z(sim, "box") == pytest.approx(z(other, "box") - 0.5 * 9.81 * 0.1**2, abs=6e-3)
    assert z(other, "box") > 1.14
    np.testing.assert_allclose(sim.bodies["far"].transform, other.bodies["far"].transform, atol=1e-9)
    with pytest.raises(SceneError, match=r"'plank' .* 'box' when it is enabled"):
        sim.bodies["plank"].enabled = True
    assert not sim.bodies["plank"].enabled
    sim.bodies["box"].position = (0, 0, 1.1502)
    sim.bodies["box"].linear_velocity = (0, 0, 0)
    sim.bodies["plank"].enabled = True
    for _ in range(10):
        sim.step()
        assert np.linalg.norm(sim.bodies["box"].linear_velocity) < 2e-3
    assert sim.bodies["box"].touches == ("plank",)
    weight = 9.81 * sim.bodies["box"].mass
    np.testing.assert_allclose(sim.bodies["box"].contact_force, (0, 0, weight), atol=1e-3 * weight)


def test_joints_of_a_disabled_body_are_inactive():
    sim = abd.run(shelf(), steps=5, device=NAME)
    angle = sim.joints["pivot"].coordinates[0]
    sim.bodies["bob"].enabled = False
    assert not sim.joints["pivot"].active
    sim.run(steps=5)
    assert sim.joints["pivot"].coordinates[0] == pytest.approx(angle, abs=1e-12)
    with pytest.raises(ValueError, match="cannot act on a disabled body"):
        sim.joints["pivot"].active = True
    sim.bodies["bob"].enabled = True
    assert sim.joints["pivot"].active and not np.any(sim.joints["pivot"].rates)
    sim.run(steps=5)
    assert abs(sim.joints["pivot"].coordinates[0]) > abs(angle) + 0.01
    assert max(sim.joints["pivot"].residual) < 1e-7


@pytest.mark.parametrize("continued", [lambda sim: sim, copy.deepcopy, abd.Simulation.recompiled], ids=("same", "copy", "new"))
def test_changes_of_joints_and_springs_of_a_disabled_body_stay(continued):
    sim = abd.Simulation(shelf(), device=NAME)
    far, bob = sim.bodies["far"], sim.bodies["bob"]
    removed, _ = (far.spring_to((9, 0, 4), stiffness=5.0) for _ in range(2))
    sim.step()
    far.enabled = bob.enabled = False
    removed.remove()
    sim.joints["pivot"].active = False
    with pytest.raises(ValueError, match="cannot act on a disabled body"):
        sim.joints["pivot"].active = True
    assert not np.any(far.spring_to((9, 0, 4), stiffness=5.0).force)
    sim = continued(sim)
    sim.step()
    assert not any(joint.active for joint in sim.model.joints)
    sim.bodies["far"].enabled = sim.bodies["bob"].enabled = True
    assert [joint.active for joint in sim.model.joints] == [False, False, True, True]


def test_contact_of_a_pair_can_be_disabled_and_enabled():
    sim = abd.Simulation(shelf(), device=NAME)
    pair = sim.pair("box", "plank")
    assert (pair.enabled and pair.bodies == ("plank", "box")) or pair.bodies == ("box", "plank")
    sim.step()
    pair.enabled = False
    assert not pair.enabled and sim.bodies["box"].touches == ()
    sim.run(steps=16)
    assert z(sim, "box") < 1.1
    with pytest.raises(SceneError, match="when it is enabled"):
        pair.enabled = True
    assert not pair.enabled
    sim.bodies["box"].position = (0, 0, 1.3)
    pair.enabled = True
    sim.run(steps=40)
    assert z(sim, "box") > 1.14


def test_pair_without_contact_reports_the_reason():
    scene = shelf()
    scene.add_body("wall", box=(0.1, 1, 1), position=(-9, 0, 1), kind="static")
    scene.add_body("left", box=(0.1, 0.1, 0.1), position=(-5, 0, 1), group=1)
    scene.add_body("right", box=(0.1, 0.1, 0.1), position=(-4, 0, 1), group=1)
    scene.add_body("arm", box=(0.1, 0.1, 0.1), position=(-3, 0, 1))
    scene.add_body("hand", box=(0.1, 0.1, 0.1), position=(-2.8, 0, 1))
    scene.add_hinge("elbow", "arm", "hand", anchor=(-2.9, 0, 1), axis=(0, 1, 0))
    scene.add_contact_filter("arm", "far")
    sim = abd.Simulation(scene, device="numpy")
    for names, why in ((("wall", "ground"), "neither body is dynamic"), (("left", "right"), "group 1")):
        with pytest.raises(ValueError, match=why):
            sim.pair(*names).enabled = True
        assert not sim.pair(*names).enabled
        sim.pair(*names).enabled = False
    for names in (("arm", "hand"), ("far", "arm")):  # a joint and a filter can be overruled
        assert not sim.pair(*names).enabled
        sim.pair(*names).enabled = True
        assert sim.pair(*names).enabled


def test_a_checkpoint_with_overlapping_bodies_changes_no_switch():
    sim, other = abd.Simulation(shelf(), device=NAME), abd.Simulation(shelf(), device=NAME)
    other.bodies["bob"].enabled = False
    other.pair("box", "far").enabled = False
    saved = other.checkpoint()
    saved["q"][sim.bodies["box"].index, 2] -= 0.1
    with pytest.raises(SceneError, match="intersects"):
        sim.restore(saved)
    assert sim.bodies["bob"].enabled and sim.joints["pivot"].active and sim.pair("box", "far").enabled
    sim.step()
    assert np.any(sim.bodies["bob"].linear_velocity)


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


def test_weight_with_broken_joint_rests_on_its_former_parent_until_it_is_joined_again():
    sim = abd.Simulation(hung(), device=NAME)
    report = sim.step()
    assert report.broken == ("thread",)
    sim.run(steps=40)
    assert sim.pair("plate", "weight").enabled
    assert 0.15 < sim.bodies["weight"].position[2] < 0.1525
    assert sim.bodies["plate"].touches == ("weight",)
    sim.joints["thread"].active = True
    assert not sim.pair("plate", "weight").enabled and sim.joints["thread"].broken_at is None
    sim.reset()
    assert not sim.pair("plate", "weight").enabled and sim.joints["thread"].active


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
    sim = abd.run(scene, steps=30, device=NAME)
    assert sim.joints["thread"].broken_at is not None
    assert not sim.pair("plate", "weight").enabled
    assert sim.bodies["weight"].position[2] < 0.1, "it slides through the plate on its rail"

    filtered = hung()
    filtered.add_contact_filter("plate", "weight")
    sim = abd.run(filtered, steps=3, device=NAME)
    assert not sim.pair("plate", "weight").enabled
