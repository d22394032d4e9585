"""Valid values that are probably mistakes have a note; plausible scenes have none."""

import logging

import pytest
import trimesh
from common_scenes import on_ground

import abd

DRIVE = {"mode": "position", "target": 1.0}
BOX = {"box": (0.2, 0.1, 0.1), "position": (0, 0, 1)}


def ground(dt: float = 0.01, **body) -> abd.Scene:
    scene = on_ground(0.5, dt=dt)
    scene.add_body("part", **(body or BOX))
    return scene


def hinged(anchor: float = 1.0, **keys) -> abd.Scene:
    scene = ground()
    scene.add_hinge("knee", abd.WORLD, "part", anchor=(0, 0, anchor), axis=(0, 1, 0), **keys)
    return scene


def alone(floor: bool = True) -> abd.Scene:
    scene = on_ground() if floor else abd.Scene()
    scene.add_body("part", **BOX)
    return scene


def inverted() -> trimesh.Trimesh:
    mesh = trimesh.creation.box((0.2, 0.1, 0.1))
    mesh.invert()
    return mesh


MISTAKES = {
    "millimetres": (ground(mesh=trimesh.creation.box((200, 100, 100)), position=(0, 0, 60)),
        "body 'part' is 245 m in size, 2e+09 kg: lengths are in metres"),
    "inverted": (ground(mesh=inverted(), position=(0, 0, 1)), "12 triangles was reversed: they faced inwards"),
    "quaternion x, y, z, w": (ground(**BOX, quaternion=(0, 0, 0.6, 0.8)),
        "its quaternion (0, 0, 0.6, 0.8) is half a turn; the order of the numbers is w, x, y, z"),
    "range in degrees": (hinged(range=(-90, 90)),
        "its range of theta reaches 14.3 turns; range is in radians, range_deg in degrees"),
    "servo": (hinged(drive=DRIVE | {"effort": 10.0}), "the position drive of theta has an effort limit and no damping"),
    "target in degrees": (hinged(drive=DRIVE | {"target": 90.0}),
        "the target of its drive of theta is 14.3 turns; target is in radians"),
    "target outside": (hinged(drive=DRIVE, range=(-0.5, 0.5)),
        "the target 1 of its drive is outside of its range of theta, [-0.5, 0.5]"),
    "grams": (ground(**BOX, density=7.8), "body 'part' has a density of 7.8 kg/m^3, hence 0.0156 kg"),
    "long step": (ground(dt=1.0, **BOX), "solver.dt = 1 s is long"),
    "no friction": (alone(), "no material has friction"),
    "falling": (alone(floor=False), "body 'part' falls for ever"),
    "far anchor": (hinged(2.0), "joint 'knee' is 0.95 m outside of body 'part', which is 0.245 m in size"),
}


@pytest.mark.parametrize(("scene", "note"), MISTAKES.values(), ids=MISTAKES)
def test_a_probable_mistake_has_a_note(scene, note, caplog):
    with caplog.at_level(logging.WARNING):
        sim = abd.Simulation(scene, device="numpy")
    assert len(sim.model.notes) == 1 and note in sim.model.notes[0]
    assert sim.model.notes[0] in caplog.text


def test_equal_bodies_of_worlds_have_one_note():
    assert alone(floor=False).replicate(3).compile().notes == [
        "body 'w0_part' (and 2 more) falls for ever: no joint, no fixed axis and no static body holds it"
    ]


def test_plausible_scenes_have_no_note():
    scene = ground(**BOX, quaternion=(0, 1, 0, 0))
    scene.add_hinge("winch", abd.WORLD, "part", anchor=(0, 0, 1.3), axis=(0, 1, 0), range_deg=(-700, 700))
    held = alone(floor=False)
    held.add_joint("spring", "bungee", abd.WORLD, "part", parent_anchor=(0, 0, 2), child_anchor=(0, 0, 0), stiffness=100.0)
    on_table = alone(floor=False)
    on_table.add_body("table", box=(1, 1, 0.1), position=(0, 0, 0.5))
    on_table.add_slider("lift", abd.WORLD, "table", anchor=(0, 0, 0.5), axis=(0, 0, 1), locked=True)
    on_table.add_material("default", mu=0.5)
    dense = ground(**BOX, density=27e3)  # shipped scenes add mass so
    damped = hinged(coordinate={"theta": {"drive": DRIVE | {"effort": 10.0}, "damping": 1.0}})
    assert [one.compile().notes for one in (scene, held, on_table, dense, damped)] == [[]] * 5
