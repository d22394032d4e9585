"""Colours of bodies and materials: allowed values, and storage in scenes and runs."""

import h5py
import numpy as np

import abd
from abd.cli import main
from abd.io.fingerprint import model_digest


def scene() -> abd.Scene:
    scene = abd.Scene(gravity=(0, 0, 0), output={"frames": 1})
    scene.add_material("red", color="#ff0000")
    keys = {"box": (0.1, 0.1, 0.1)}
    scene.add_body("own", color=(0.25, 0.5, 1.0), material="red", **keys)
    scene.add_body("glass", color=(0, 0, 0, 0.5), position=(1, 0, 0), **keys)
    scene.add_body("of_material", material="red", position=(2, 0, 0), repeat={"count": (2, 1, 1), "step": (1, 0, 0)}, **keys)
    scene.add_body("none", position=(5, 0, 0), **keys)
    scene.add_body("named", color="SteelBlue", position=(6, 0, 0), **keys)
    return scene


EXPECTED = [(0.25, 0.5, 1, 1), (0, 0, 0, 0.5), (1, 0, 0, 1), (1, 0, 0, 1), (np.nan,) * 4, (70 / 255, 130 / 255, 180 / 255, 1)]


def test_a_run_stores_the_color_of_every_body(tmp_path):
    scene().save(tmp_path / "colors.toml")
    assert (main(["run", str(tmp_path / "colors.toml"), "--quiet", "--device", "cpu", "--out", str(tmp_path / "run")]) == 0)
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        np.testing.assert_allclose(file["/bodies/color"][:], EXPECTED, rtol=0, atol=1e-15)


def test_colors_survive_saving_and_do_not_change_the_digest(tmp_path):
    one = scene()
    one.save(tmp_path / "scene.toml")
    again = abd.load(tmp_path / "scene.toml")
    assert [body.color for body in again.spec.body] == [body.color for body in one.spec.body]
    digest = model_digest(again.compile())
    again.body("own").color = "black"
    assert model_digest(again.compile()) == digest
