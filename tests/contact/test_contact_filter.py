"""`[[contact_filter]]` excludes contact of its bodies and of no others."""

import numpy as np
import pytest

import abd
from abd.certificate.certificate import certify
from abd.cli import main
from abd.errors import SceneError

SCENE = """
gravity = [0, 0, 0]
[solver]
dt = 0.01
[output]
frames = 20
[[body]]
name = "box"
box = [0.1, 0.1, 0.1]
repeat = { count = [3, 1, 1], step = [0.05, 0, 0] }
[[body]]
name = "ball"
sphere = { radius = 0.05 }
position = [-0.2, 0, 0]
velocity = [2, 0, 0]
[[contact_filter]]
bodies = ["box_0_0_0", "box_1_0_0", "box_2_0_0"]
[[contact_filter]]
bodies = ["ball", "box_0_0_0"]
"""


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_filtered_pairs_have_no_contact(tmp_path, device):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    scene = abd.load(path)
    scene.save(tmp_path / "saved.toml")
    assert abd.load(tmp_path / "saved.toml") == scene
    simulation = abd.Simulation(scene, device=device)
    simulation.run(steps=20)
    x = {name: simulation.bodies[name].position[0] for name in ("box_0_0_0", "box_1_0_0", "box_2_0_0", "ball")}
    assert abs(x["box_0_0_0"]) < 1e-12, "the ball went through"
    assert x["box_1_0_0"] > 0.051, "the ball hit it"
    assert x["ball"] < x["box_1_0_0"] - 0.1


def test_a_run_is_certified_with_its_filters(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    assert main(["run", str(path), "--quiet", "--device", "cpu", "--out", str(tmp_path / "run")]) == 0
    assert certify(tmp_path / "run").ok


def test_overlapping_bodies_are_filtered_on_request(tmp_path):
    scene = abd.Scene(gravity=(0, 0, 0), output={"frames": 2})
    for name, x in (("left", -1.0), ("right", 1.0)):
        scene.add_body(name, box=(1, 1, 1), position=(x, 0, 0), kind="static")
    scene.add_body("wedged", box=(1, 1, 1))
    scene.add_body("apart", box=(1, 1, 1), position=(0, 5, 0))
    scene.add_body("inside", box=(1, 1, 1), position=(0, 5.5, 0.2))
    scene.add_body("ground", half_space={"offset": -0.4}, material="soft")
    scene.add_material("soft")
    scene.save(tmp_path / "scene.toml")
    with pytest.raises(SceneError, match="'ground'"):
        abd.load(tmp_path / "scene.toml", allow_overlaps=True).started()
    scene.spec.body.pop()
    scene.save(tmp_path / "scene.toml")
    with pytest.raises(SceneError, match="'inside'"):
        abd.load(tmp_path / "scene.toml").started()
    loaded = abd.load(tmp_path / "scene.toml", allow_overlaps=True)
    pairs = {tuple(sorted(one.bodies)) for one in loaded.spec.contact_filter}
    assert pairs == {("left", "wedged"), ("right", "wedged"), ("apart", "inside")}
    assert any("initial overlaps" in note and "'inside'" in note for note in loaded.notes)
    assert not any("moved" in note for note in loaded.started().notes)


def test_wrong_filters_are_refused():
    scene = abd.Scene()
    scene.add_body("a", box=(1, 1, 1))
    with pytest.raises(SceneError, match="bodies"):
        scene.add_contact_filter("a")
    scene.add_contact_filter("a", "b", "a")
    found = [str(problem) for problem in scene.check()]
    assert len(found) == 2 and "no body 'b'" in found[0] and "twice" in found[1]


def test_components_and_disabled_bodies():
    scene = abd.Scene()
    cubes = {
        "vertices": [(x + d, y, z) for x in (0, 2) for d, y, z in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))],
        "triangles": [tuple(4 * k + i for i in t) for k in (0, 1) for t in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))],
    }
    scene.add_body("two", surface=cubes, split_components=True)
    scene.add_body("off", box=(1, 1, 1), enabled=False)
    scene.add_contact_filter("two_1", "off", "two_0")
    np.testing.assert_array_equal(scene.compile().filtered, [[0, 1]])
    scene.add_contact_filter("two_0", "two_7")
    with pytest.raises(SceneError, match="no body 'two_7'"):
        scene.compile()
