"""Files that ask for more than there is are refused at once, with the way to raise the bound."""

from __future__ import annotations

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
def test_what_is_beyond_bounds_is_refused(name, tmp_path):
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
    monkeypatch.setenv("ABD_MOST_COPIES", "20000000")
    (tmp_path / "s.toml").write_text(CASES["repeat"][1])
    assert abd.load(tmp_path / "s.toml").spec.body[0].repeat.count == (1000, 1000, 10)
