"""`abd check` reports exactly the problems of a scene in one pass; probable mistakes have a note."""

import json
import logging

import pytest
import trimesh
from common_scenes import on_ground

import abd
from abd.cli import main
from abd.commands.check import summary

SCENE = """\
gravty = [0, 0, -9.81]                                  #! unknown key
[solver]
dt = -0.01                                              #! greater than 0
[output]
frames = 10
duration = 1.0                                          #! frames is given as well
[camera]
follow = "nobody"                                       #! no body 'nobody'
[[material]]
name = "ice"
mu = -0.1                                               #! greater than or equal to 0
[[material_pair]]
between = ["ice", "tar"]                                #! no material 'tar'
[[body]]
name = "ground"
half_space = { normal = [0, 0, 0] }                     #! other than zero
[[body]]                                                #! intersects 'light'
name = "heavy"
box = [1, 1, 1]
position = [0, 0, 10]
[[body]]
name = "light"
box = [1, 1, 1]
position = [0.5, 0, 10]
[[body]]
name = "sheet"
mesh = "broken.obj"                                     # told with the mesh file's own name, below
position = [0, 0, 20]
[[body]]
name = "cam"
box = [1, 1, 1]
position = [0, 0, 70]
kind = "kinematic"
motion = { formulas = { x = "sinn(t)" } }               #! unknown name 'sinn'
[[body]]
name = "light"                                          #! earlier body
box = [1, 1, 1]
[[body]]
name = "arm"
box = [1, 0.1, 0.1]
position = [0.5, 0, 100]
[[body]]
name = "crank"
box = [1, 0.1, 0.1]
position = [0.5, 0, 120]
[[contact_filter]]
bodies = ["arm", "nobody"]                              #! no body 'nobody'
[[joint]]
name = "pivot"
type = "hing"                                           #! 'hinge'
child = "arm"
[[joint]]
name = "range"
type = "hinge"
child = "crank"
anchor = [0, 0, 120]
axis = [0, 1, 0]
range = [1, 2]                                          #! must start inside its range
[[coupling]]
name = "gear"
coordinate = "range.theta"
terms = [{ coordinate = "nothing.theta", factor = 2 }]  #! no joint 'nothing'
[recorder]                                              #! unknown key
"""
"""Mistakes in every table and found at every stage; each kind of mistake is in `test_scene_errors.py`."""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(SCENE)
    (tmp_path / "broken.obj").write_text("v 0 0 0\nv 1 0 0\nf 1 2 9\n")
    return path


def expected():
    lines = enumerate(SCENE.splitlines(), 1)
    return [(number, text.split("#!")[1].strip()) for number, text in lines if "#!" in text]


def test_a_scene_with_many_different_mistakes(scene, capsys):
    """One pass reports exactly the errors of all tables and stages, from unknown keys to overlaps."""
    assert main(["check", str(scene), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["summary"] == [] and all(one["key"] for one in found["problems"])
    here = [one for one in found["problems"] if one["file"] == str(scene)]
    told = [(one["line"], one["message"] + one["remedy"]) for one in here]
    missing = [(line, words) for line, words in expected() if not any(line == at and words in text for at, text in told)]
    assert not missing, told
    assert len(told) == len(expected()), [one for one in told if one[0] not in dict(expected())]
    (mesh,) = (one for one in found["problems"] if one not in here)
    assert mesh["file"].endswith("broken.obj") and mesh["key"] == "body.sheet.mesh" and "'sheet'" in mesh["message"]


def test_valid_scenes_have_a_summary(scene, capsys):
    assert main(["check", "falling_box", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == [] and any("bodies" in line for line in found["summary"])
    assert main(["check", "falling_box", "-o", "solver.dt=0", "--json"]) == 2
    (one,) = json.loads(capsys.readouterr().out)["problems"]
    assert one["file"] == "-o" and one["key"] == "solver.dt" and one["value"] == 0
    assert main(["check", str(scene), "-o", "solver.max_newton=0", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["problems"]
    assert [one["key"] for one in found if one["file"] == "-o"] == ["solver.max_newton"]


def test_consequences_of_an_error_are_not_reported(tmp_path, capsys):
    """Overlaps, couplings and filters that depend on a wrong body or joint are not reported as well."""
    path = tmp_path / "wrong.toml"
    path.write_text(
        '[[body]]\nname = "a"\nbox = [1, 1, 1]\npositon = [9, 0, 0]\n'  # its place is not given
        '[[body]]\nname = "b"\nbox = [1, 1, 1]\n'
        '[[body]]\nname = "c"\nbox = [1, 1, 1]\nposition = [0.9, 0, 0]\n'
        '[[joint]]\nname = "j"\ntype = "hinge"\nchild = "a"\nanchor = [0, 0, 0]\naxis = [0, 1, 0]\n'
        '[[joint]]\nname = "k"\ntype = "hinge"\nparent = "b"\nchild = "c"\nanchor = [0.5, 0, 0]\naxis = [0, 1]\n'
        '[[coupling]]\nname = "g"\ncoordinate = "j"\nterms = [{ coordinate = "k" }]\n'
        '[[contact_filter]]\nbodies = ["a", "b"]\n'
    )
    assert main(["check", str(path), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["problems"]
    assert [one["key"] for one in found] == ["body.a.positon", "joint.k.axis"]


@pytest.mark.parametrize(
    ("count", "lines"),
    [
        (1, ["1 body (1 dynamic)", "mass: 10 kg (bar)", "mechanism: 1 body, 1 joint, 5 rows, mobility 1"]),
        (3, ["3 bodies (3 dynamic)", "30 kg in total, 10 kg each", "3 mechanisms, each: 1 body, 1 joint, 5 rows"]),
    ],
)
def test_the_summary_lists_equal_bodies_and_mechanisms_once(count, lines):
    pendulum = abd.load("pendulum")
    scene = pendulum if count == 1 else pendulum.replicate(count)
    told = "\n".join(summary(scene.compile()))
    assert [line for line in lines if line not in told] == [] and len(told.splitlines()) == 7


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


MISTAKES = {
    "millimetres": (ground(mesh=trimesh.creation.box((200, 100, 100)), position=(0, 0, 60)),
        "body 'part' is 245 m in size, 2e+09 kg: lengths are in metres"),
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
