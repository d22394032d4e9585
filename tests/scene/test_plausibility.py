"""Valid values that are probably mistakes have a note; plausible scenes have none."""

import logging

import pytest
import trimesh

import abd

BOX = {"box": (0.2, 0.1, 0.1), "position": (0, 0, 1)}


def ground(**body) -> abd.Scene:
    scene = abd.Scene()
    scene.add_material("default", mu=0.5)
    scene.add_body("ground", half_space={})
    scene.add_body("part", **(body or BOX))
    return scene


def millimetres() -> abd.Scene:
    return ground(mesh=trimesh.creation.box((200, 100, 100)), position=(0, 0, 60))


def inverted() -> abd.Scene:
    mesh = trimesh.creation.box((0.2, 0.1, 0.1))
    mesh.invert()
    return ground(mesh=mesh, position=(0, 0, 1))


def quaternion_xyzw() -> abd.Scene:
    return ground(**BOX, quaternion=(0, 0, 0.6, 0.8))


def degrees() -> abd.Scene:
    scene = ground()
    scene.add_hinge("knee", abd.WORLD, "part", anchor=(0, 0, 1), axis=(0, 1, 0), range=(-90, 90))
    return scene


def servo(**coordinate) -> abd.Scene:
    scene = ground()
    drive = {"mode": "position", "target": 1.0, "effort": 10.0}
    settings = {"theta": {"drive": drive, **coordinate}}
    scene.add_hinge("knee", abd.WORLD, "part", anchor=(0, 0, 1), axis=(0, 1, 0), coordinate=settings)
    return scene


def long_step() -> abd.Scene:
    scene = ground()
    scene.solver.dt = 1.0
    return scene


def without_friction() -> abd.Scene:
    scene = abd.Scene()
    scene.add_body("ground", half_space={})
    scene.add_body("part", **BOX)
    return scene


def grams_per_cubic_centimetre() -> abd.Scene:
    return ground(**BOX, density=7.8)


def target_in_degrees() -> abd.Scene:
    return servo(damping=1.0, drive={"mode": "position", "target": 90.0})


def target_outside_range() -> abd.Scene:
    return servo(damping=1.0, range=(-0.5, 0.5))


def falling() -> abd.Scene:
    scene = abd.Scene()
    scene.add_body("part", **BOX)
    return scene


def far_anchor() -> abd.Scene:
    scene = ground()
    scene.add_hinge("knee", abd.WORLD, "part", anchor=(0, 0, 2), axis=(0, 1, 0))
    return scene


MISTAKES = {
    millimetres: "body 'part' is 245 m in size, 2e+09 kg: lengths are in metres",
    inverted: "its triangles face inwards",
    quaternion_xyzw: "its quaternion (0, 0, 0.6, 0.8) is half a turn; the order of the numbers is w, x, y, z",
    degrees: "joint 'knee': its range of theta reaches 14.3 turns; range is in radians, range_deg in degrees",
    servo: "joint 'knee': the position drive of theta has an effort limit and no damping",
    target_in_degrees: "joint 'knee': the target of its drive of theta is 14.3 turns; target is in radians",
    target_outside_range: "joint 'knee': the target 1 of its drive is outside of its range of theta, [-0.5, 0.5]",
    grams_per_cubic_centimetre: "body 'part' has a density of 7.8 kg/m^3, hence 0.0156 kg",
    long_step: "solver.dt = 1 s is long",
    without_friction: "no material has friction",
    falling: "body 'part' falls for ever",
    far_anchor: "joint 'knee' is 0.95 m outside of body 'part', which is 0.245 m in size",
}


@pytest.mark.parametrize(("make", "note"), MISTAKES.items(), ids=[one.__name__ for one in MISTAKES])
def test_a_probable_mistake_has_a_note(make, note, caplog):
    with caplog.at_level(logging.WARNING):
        sim = abd.Simulation(make(), device="numpy")
    assert len(sim.model.notes) == 1 and note in sim.model.notes[0]
    assert sim.model.notes[0] in caplog.text


def test_equal_bodies_of_worlds_have_one_note():
    assert falling().replicate(3).compile().notes == [
        "body 'w0_part' (and 2 more) falls for ever: no joint, no fixed axis and no static body holds it"
    ]


def test_plausible_scenes_have_no_note():
    scene = ground(**BOX, quaternion=(0, 1, 0, 0))
    scene.add_hinge("winch", abd.WORLD, "part", anchor=(0, 0, 1.3), axis=(0, 1, 0), range_deg=(-700, 700))
    assert scene.compile().notes == [] and servo(damping=1.0).compile().notes == []
    assert ground(**BOX, density=27e3).compile().notes == []  # shipped scenes add mass so
    held = falling()
    held.add_joint("spring", "bungee", abd.WORLD, "part", parent_anchor=(0, 0, 2), child_anchor=(0, 0, 0), stiffness=100.0)
    assert held.compile().notes == []
