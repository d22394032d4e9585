"""Files with excessive demands are rejected at once, with the key of the bound."""

import numpy as np
import pytest

import abd
from abd.errors import SceneError

BODY = '[[body]]\nname = "b"\nbox = [1, 1, 1]\n'
POSES = BODY + 'kind = "kinematic"\nmotion = {file = "poses.npz"}\n'
ROBOT = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{}<link name="a"/></robot>'
REPLICATE = '<mujoco><worldbody><replicate count="{}"><body><freejoint/><geom size="1"/></body></replicate></worldbody></mujoco>'
CASES = {
    # name: file, its text, words of the message
    "dotted key": ("s.toml", ".".join(["a"] * 100_000) + " = 1\n", "ABD_MOST_KEY_PARTS"),
    "dotted table": ("s.toml", "[" + ".".join(["a"] * 100_000) + "]\n", "ABD_MOST_KEY_PARTS"),
    "repeat": ("s.toml", BODY + "repeat = {count = [1000, 1000, 10], step = [2, 2, 2]}\n", "ABD_MOST_COPIES"),
    "replicate": ("s.xml", REPLICATE.format(100_000), "ABD_MOST_REPLICAS"),
    "arrays": ("s.toml", POSES, "ABD_MOST_NPZ_BYTES"),
    "yaml": ("s.xacro", ROBOT.format("<xacro:property name='p' value=\"${xacro.load_yaml('x.yaml')}\"/>"), "--allow-code"),
    "environment": ("s.xacro", ROBOT.format('<xacro:property name="p" value="$(env HOME)"/>'), "--allow-code"),
    "optional environment": ("s.xacro", ROBOT.format('<xacro:property name="p" value="$(optenv HOME x)"/>'), "--allow-code"),
    "powers": ("s.xacro", ROBOT.format('<xacro:property name="p" value="${9**9**9}"/>'), "--allow-code"),
    "included": ("s.xacro", ROBOT.format('<xacro:include filename="inner.xacro"/>'), "--allow-code"),
}


@pytest.mark.parametrize("name", CASES)
def test_files_beyond_bounds_are_refused(name, tmp_path):
    file, text, words = CASES[name]
    if file.endswith(".xml"):
        pytest.importorskip("mujoco")
    (tmp_path / file).write_text(text)
    (tmp_path / "inner.xacro").write_text(ROBOT.format('<xacro:property name="p" value="$(env HOME)"/>'))
    if name == "arrays":
        np.savez_compressed(tmp_path / "poses.npz", **{key: np.zeros(12 << 20) for key in ("time", "x", "y", "z")})
    with pytest.raises(SceneError, match=words):
        abd.load(tmp_path / file).compile()


def test_a_bound_can_be_raised(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(BODY + "repeat = {count = [4, 1, 1], step = [2, 2, 2]}\n")
    monkeypatch.setenv("ABD_MOST_COPIES", "3")
    with pytest.raises(SceneError, match="ABD_MOST_COPIES"):
        abd.load(tmp_path / "s.toml")
    monkeypatch.setenv("ABD_MOST_COPIES", "4")
    assert abd.load(tmp_path / "s.toml").spec.body[0].repeat.count == (4, 1, 1)


NUMBERS = {
    "dt too small": "[solver]\ndt = 1e-300\n" + BODY,
    "dt too large": "[solver]\ndt = 1e300\n" + BODY,
    "box": BODY.replace("[1, 1, 1]", "[1e100, 1, 1]"),
    "radius": BODY.replace("box = [1, 1, 1]", "sphere = {radius = 1e-300}"),
    "mass": BODY + "mass = 1e200\n",
    "position": BODY + "position = [0, 0, 1e80]\n",
    "mesh": BODY.replace("box = [1, 1, 1]", "mass = 1\nsurface = { vertices = [[1e160, 0, 0], [1, 0, 0]], edges = [[0, 1]] }"),
    "integer": BODY + f"mass = 1{'0' * 400}\n",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_excessive_numbers_are_refused(name, tmp_path):
    (tmp_path / "s.toml").write_text(NUMBERS[name])
    with pytest.raises(SceneError):
        abd.load(tmp_path / "s.toml").compile()


def test_threads_step_a_simulation_in_turn():
    from concurrent.futures import ThreadPoolExecutor

    def made():
        scene = abd.Scene()
        scene.add_body("floor", half_space={})
        scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0, 0, 0.051))
        return abd.Simulation(scene, device="cpu")

    shared, alone = made(), made()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: shared.step(), range(20)))
    alone.run(steps=20)
    np.testing.assert_array_equal(shared.stepper.q, alone.stepper.q)
