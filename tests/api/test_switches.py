"""Bodies, joints and pairs that are switched off and on in a running simulation."""

import copy

import numpy as np
import pytest
from checkpoints import assert_same
from on_device import NAME

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device

DEVICES = ["numpy", NAME]


def shelf(**solver) -> abd.Scene:
    """A box on a plank on posts over the ground, a pendulum, and a plate that is moved to and fro."""
    scene = abd.Scene("shelf", solver=solver)
    scene.add_material("default", mu=0.5)
    scene.add_body("ground", half_space={})
    scene.add_body("plank", box=(1, 1, 0.1), position=(0, 0, 1), fix=("x", "y", "z", "rx", "ry", "rz"))
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 0, 1.151))
    scene.add_body("bob", box=(0.5, 0.1, 0.1), position=(5.25, 0, 2))
    scene.add_hinge("pivot", abd.WORLD, "bob", anchor=(5, 0, 2), axis=(0, 1, 0), enforcement="exact")
    scene.add_body("far", box=(0.2, 0.2, 0.2), position=(9, 0, 3), angular_velocity=(1, 2, 3))
    return scene


def z(sim: abd.Simulation, name: str) -> float:
    return float(sim.bodies[name].position[2])


@pytest.mark.parametrize("device", DEVICES)
def test_disabled_body_is_static_and_has_no_contact(device):
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


@pytest.mark.parametrize("device", DEVICES)
def test_enabled_body_must_not_overlap_and_starts_in_equilibrium(device):
    sim = abd.Simulation(shelf(), device=device)
    sim.run(steps=3)
    sim.bodies["plank"].enabled = False
    sim.run(steps=20)
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


@pytest.mark.parametrize("device", DEVICES)
def test_joints_of_a_disabled_body_are_inactive(device):
    sim = abd.Simulation(shelf(), device=device)
    sim.run(steps=5)
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


@pytest.mark.parametrize("device", DEVICES)
def test_contact_of_a_pair_can_be_disabled_and_enabled(device):
    sim = abd.Simulation(shelf(), device=device)
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
    with pytest.raises(ValueError, match="two different bodies"):
        sim.pair("far", "far")
    for names in (("arm", "hand"), ("far", "arm")):  # a joint and a filter can be overruled
        assert not sim.pair(*names).enabled
        sim.pair(*names).enabled = True
        assert sim.pair(*names).enabled


@pytest.mark.parametrize("device", DEVICES)
def test_a_checkpoint_with_overlapping_bodies_changes_no_switch(device):
    sim, other = abd.Simulation(shelf(), device=device), abd.Simulation(shelf(), device=device)
    other.bodies["bob"].enabled = False
    other.pair("box", "far").enabled = False
    saved = other.checkpoint()
    saved["q"][sim.bodies["box"].index, 2] -= 0.1
    with pytest.raises(SceneError, match="intersects"):
        sim.restore(saved)
    assert sim.bodies["bob"].enabled and sim.joints["pivot"].active and sim.pair("box", "far").enabled
    sim.step()
    assert np.any(sim.bodies["bob"].linear_velocity)


@pytest.mark.parametrize("device", DEVICES)
def test_switches_are_part_of_checkpoints_and_reset(device):
    sim = abd.Simulation(shelf(), device=device)
    sim.step()
    sim.bodies["bob"].enabled = False
    sim.pair("box", "plank").enabled = False
    sim.step()
    other = copy.deepcopy(sim)
    assert not other.bodies["bob"].enabled and not other.pair("box", "plank").enabled
    for one in (sim, other):
        one.run(steps=3)
    assert_same(sim, other)
    other.bodies["bob"].enabled = True
    assert other.joints["pivot"].active
    sim.reset()
    assert sim.bodies["bob"].enabled and sim.pair("box", "plank").enabled and sim.joints["pivot"].active
    fresh = abd.Simulation(shelf(), device=device)
    for one in (sim, fresh):
        one.run(steps=3)
    np.testing.assert_array_equal(sim.stepper.q, fresh.stepper.q)
