"""The scene schema: reading, building in code, saving, overriding, expanding, documenting."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tool import load_tool

import abd
from abd.errors import SceneError
from abd.scene.files.overrides import apply_overrides
from abd.scene.files.reader import read_scene
from abd.scene.schema.documentation import schema_json, schema_markdown
from abd.scene.schema.schema import BodySpec

EVERYTHING = """
name = "everything"
gravity = [0, -9.81, 0]
[solver]
dt = 0.005
integrator = "bdf1"
contact_stiffness = 1e9
tolerance_relative = 1e-3
[output]
duration = 2.5
[[material]]
name = "ice"
mu = 0.02
[[material_pair]]
between = ["ice", "default"]
enabled = false
[[body]]
name = "ground"
half_space = { normal = [0, 1, 0], offset = -2.5 }
material = "ice"
[[body]]
name = "crate"
box = [1, 2, 3]
scale = [1, 1, 0.5]
euler = { order = "ZX", degrees = [30, 1e-3] }
repeat = { count = [2, 1, 2], step = [1.5, 0, 4] }
fix = ["z", "rx", "ry"]
[[body]]
name = "link"
mesh = "meshes/link.obj"
mass = 2
center_of_mass = [0, 0, 0.1]
inertia = [[2, 0.1, 0], [0.1, 2, 0], [0, 0, 3]]
angular_velocity_deg = [0, 90, 0]
force = [1, 2, 3]
kappa = 1e8
elasticity = "arap"
[[body]]
name = "a \\"quoted\\" näme"
proxy = true
mass = 1
inertia = [1, 1, 1]
[[body]]
name = "cam"
kind = "kinematic"
cylinder = { radius = 0.5, length = 2 }
position = [10, 0, 0]
[body.motion]
keyframes = [{ time = 0, position = [10, 0, 0] }, { time = 1, axis_angle = { axis = [0, 0, 1], degrees = 90 } }]
after = "continue"
angular_velocity = [0, 0, 1]
[[body]]
name = "shaker"
kind = "kinematic"
capsule = { radius = 0.5, length = 2, segments = 8 }
motion = { formulas = { x = "0.1*sin(2*pi*t)" }, until = 3 }
[[body]]
name = "wire"
radius = 0.01
[body.surface]
vertices = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
edges = [[0, 1]]
points = [2]
"""


@pytest.fixture
def everything(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "link.obj").write_text("v 0 0 0\n")
    path = tmp_path / "everything.toml"
    path.write_text(EVERYTHING.lstrip(), encoding="utf-8")
    return path


def test_reading_a_scene(everything):
    spec = read_scene(everything)
    assert spec.gravity == (0.0, -9.81, 0.0)
    assert [body.kind for body in spec.body[:2]] == ["static", "dynamic"]
    assert spec.body[1].scale == (1.0, 1.0, 0.5) and spec.body[1].density == 1000.0
    assert spec.body[2].mesh == str(everything.parent / "meshes" / "link.obj")
    assert spec.body[2].inertia == ((2.0, 0.1, 0.0), (0.1, 2.0, 0.0), (0.0, 0.0, 3.0))
    assert spec.body[3].name == 'a "quoted" näme'
    assert spec.body[4].motion.keyframes[1].axis_angle.degrees == 90.0
    path = everything.with_suffix(".json")
    path.write_text(json.dumps(tomllib.loads(everything.read_text(encoding="utf-8"))))
    assert abd.load(path) == abd.load(everything), "JSON is read like TOML"


@pytest.mark.parametrize("explicit", [False, True])
def test_round_trip_from_another_folder(everything, tmp_path, explicit):
    scene = abd.load(everything)
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "copy.toml"
    scene.save(path, explicit=explicit)
    assert abd.load(path) == scene
    assert abd.load(path).to_toml(path.parent, explicit) == path.read_text(encoding="utf-8")
    assert 'mesh = "../meshes/link.obj"' in path.read_text(encoding="utf-8")
    assert ("linear_tolerance = 0.0001" in path.read_text(encoding="utf-8")) == explicit


def test_building_in_code_equals_reading(tmp_path):
    scene = abd.Scene("built", gravity=np.array([0, 0, -1]), output={"frames": 3})
    scene.solver.dt = np.float64(0.02)
    scene.add_material("rubber", mu=0.8)
    scene.add_material_pair("rubber", "default", mu=0.5)
    base = scene.add_body("base", half_space={}, material="rubber")
    crank = scene.add_body(
        "crank", surface={"vertices": np.eye(4)[:, :3], "triangles": np.array([[0, 1, 2], [3, 1, 0]])}, thickness=0.1,
        inertia=None, group=np.int64(2), velocity=np.ones(3),
    )
    (tmp_path / "rod.obj").write_text("v 0 0 0\n")
    rod = scene.add_body("rod", mesh=tmp_path / "rod.obj")
    scene.add_hinge("pivot", abd.WORLD, crank, anchor=(0, 0, 1), axis=(0, 1, 0))
    scene.add_spherical("ball", base, rod, anchor=np.zeros(3))
    scene.add_fixed("weld", "world", crank, parent_anchor=(0, 0, 0), child_anchor=(1, 0, 0), strength_ratio=5)
    assert (base, crank) == ("base", "crank") and scene.check() == []
    assert scene.body("crank").group == 2 and scene.joint("pivot").parent == "world"
    scene.save(tmp_path / "built.toml")
    assert abd.load(tmp_path / "built.toml") == scene
    assert scene != abd.Scene("built")


def test_errors_in_code_are_raised_at_the_call():
    scene = abd.Scene()
    scene.add_body("a", box=(1, 1, 1))
    for words, mistake in {
        "body.b.densty: unknown key -> did you mean 'density'?": lambda: scene.add_body("b", box=(1, 1, 1), densty=1),
        "body.b: has no surface": lambda: scene.add_body("b"),
        "body.a.name: there is already a body 'a'": lambda: scene.add_body("a", box=(1, 1, 1)),
        "contact_filter.bodies: should be a list of at least 2 entries": lambda: scene.add_contact_filter("a"),
        "joint.j: has no axis": lambda: scene.add_hinge("j", "world", "a", anchor=(0, 0, 0)),
        "toleranse: unknown key -> did you mean 'tolerance'?": lambda: setattr(scene.solver, "toleranse", 1),
        "dt: should be greater than 0, not -1": lambda: setattr(scene.solver, "dt", -1),
        "gravity: should be three numbers": lambda: abd.Scene(gravity=-9.81),
        "solver.dtt: unknown key": lambda: abd.Scene(solver={"dtt": 1}),
        "solver: should be a table, not 3 -> keys of this table: dt": lambda: abd.Scene(solver=3),
        "there is no body 'A' -> did you mean 'a'?": lambda: scene.body("A"),
    }.items():
        with pytest.raises(SceneError, match=re.escape(words)):
            mistake()
    assert len(scene.spec.body) == 1 and not scene.spec.joint and scene.solver.dt == 0.01
    scene.add_spherical("j", "world", "later", anchor=(0, 0, 0))
    assert [problem.key for problem in scene.check()] == ["joint.j.child"]
    scene.add_body("later", sphere={"radius": 1})
    assert scene.check() == []


def test_resolved_scene_has_the_values_that_follow_from_the_geometry(tmp_path):
    scene = abd.Scene(solver={"tolerance_relative": 1e-3}, output={"duration": 0.1})
    scene.add_body("a", box=(3, 4, 12))
    scene.resolved(scene.compile().settings).save(tmp_path / "scene.toml", explicit=True)
    table = tomllib.loads((tmp_path / "scene.toml").read_text())
    assert "d_hat" not in table["solver"], "it goes by pairs"
    assert table["solver"]["tolerance"] == pytest.approx(0.013) and "tolerance_relative" not in table["solver"]
    assert table["output"] == {"frames": 10, "every": 1, "contacts": False, "certificate": False}
    assert table["body"][0]["kappa"] == "auto"
    assert abd.load(tmp_path / "scene.toml").check() == []


def test_overrides(everything):
    scene = abd.load(everything)
    before = scene.spec.model_copy(deep=True)
    texts = ["solver.dt = 0.1", "solver.integrator=bdf1", "solver.tolerance=1e-4", "output.frames=7", "gravity=[0, 0, 1]"]
    texts += ["body.link.force=[0, 0, 0]", "body.shaker.capsule.radius=.7", "material.default.mu=0.3", "name=other"]
    spec = scene.override(texts).spec
    assert scene.spec == before
    assert (spec.solver.dt, spec.solver.integrator, spec.name) == (0.1, "bdf1", "other")
    assert (spec.solver.tolerance, spec.solver.tolerance_relative) == (1e-4, None)
    assert (spec.output.frames, spec.output.duration) == (7, None)
    assert spec.body[2].force == (0.0, 0.0, 0.0) and spec.body[5].capsule.radius == 0.7
    assert [(material.name, material.mu) for material in spec.material] == [("ice", 0.02), ("default", 0.3)]
    assert abd.load(everything, ["solver.dt=0.1"]).solver.dt == 0.1
    assert apply_overrides(spec, [], everything.parent) == spec


def test_paths_of_overrides_are_relative_to_the_scene_file(everything, monkeypatch):
    home, elsewhere = everything.parent, everything.parent / "meshes"
    for folder in (home, elsewhere):
        (folder / "a.obj").write_text("v 0 0 0\n")
        (folder / "a.csv").write_text("time,x,y,z\n0,0,0,0\n1,0,0,0\n")
    monkeypatch.chdir(elsewhere)
    types = "joint_type=[{name = 't', file = 'a.py', function = 'f'}]"
    spec = abd.load(everything, ["body.link.mesh=a.obj", "body.cam.motion={file = 'a.csv'}", types]).spec
    found = spec.body[2].mesh, spec.body[4].motion.file, spec.joint_type[0].file
    assert found == tuple(str(home / name) for name in ("a.obj", "a.csv", "a.py"))
    unnamed = abd.Scene.from_spec(spec).override(["body.link.mesh=a.obj"])
    assert unnamed.body("link").mesh == str(elsewhere / "a.obj")


@pytest.mark.parametrize(
    "text, words",
    {
        "solver.dtt=1": "solver.dtt: unknown key -> did you mean 'dt'?",
        "solver.dt=0": "solver.dt: should be greater than 0, not 0",
        "solver.integrator=bdf3": "should be 'generalized_alpha', 'bdf1' or 'bdf2', not 'bdf3'",
        "solver.dt": "write key=value",
        "body.lnk.kappa=1": "there is no body 'lnk' -> did you mean 'link'?",
        "body.link=1": "not the key of a value",
        "gravity.x=1": "'gravity' in 'gravity.x' is not a table",
        "body.link.material=iec": "there is no material 'iec' -> did you mean 'ice'?",
    }.items(),
)
def test_wrong_overrides(everything, text, words):
    with pytest.raises(SceneError, match=re.escape(words)) as error:
        abd.load(everything, [text])
    assert str(error.value).startswith("-o: ")


def test_documented_example_is_a_scene(tmp_path):
    path = tmp_path / "example.toml"
    path.write_text(re.search(r"```toml\n(.*?)```", schema_markdown(), re.DOTALL)[1])
    assert [body.name for body in read_scene(path).body] == ["ground", "box"]


def test_json_schema_describes_the_models():
    schema = json.loads(schema_json())
    assert schema["additionalProperties"] is False
    body = schema["$defs"]["BodySpec"]["properties"]
    assert set(body) == set(BodySpec.model_fields)
    dt = schema["$defs"]["SolverSpec"]["properties"]["dt"]
    assert dt["unit"] == "s" and dt["exclusiveMinimum"] == 0 and body["kappa"]["unit"] == "Pa"
    assert {"type": "number", "exclusiveMinimum": 0} in body["kappa"]["anyOf"]


ROOT = Path(__file__).parents[2]


def test_typed_keys_of_bodies_and_joints_are_those_of_the_schema():
    """`python tools/make/typed_keys.py` writes them."""
    typed_keys = load_tool("make/typed_keys")
    assert typed_keys.FILE.read_text(encoding="utf-8") == typed_keys.text()


def test_code_of_users_passes_mypy():
    pytest.importorskip("mypy")
    examples = sorted((ROOT / "docs" / "examples").glob("*.py"))
    if importlib.util.find_spec("torch") is None:
        examples = [one for one in examples if "import torch" not in one.read_text()]
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--allow-untyped-calls"]
    command = [sys.executable, "-m", "mypy", *options, *map(str, [*examples, ROOT / "tests" / "typed" / "user.py"])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"MYPYPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
