"""The software renderer of tools/picture.py shows what is there, where it is."""

import numpy as np
import pytest
from tool import load_tool

import abd
from abd.errors import AbdError
from abd.io.run import run
from abd.io.trajectory import Trajectory
from abd.scene.compile import compile_scene
from abd.scene.find import scenes_directory

picture = load_tool("picture")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    scene = abd.load(scenes_directory() / "falling_box.toml")
    folder = tmp_path_factory.mktemp("picture") / "run"
    run(scene, compile_scene(scene), folder, device="cpu", steps=1)
    return folder


def test_box_is_in_the_middle_above_its_shadow(folder):
    with Trajectory(folder) as trajectory:
        pixels = picture.draw(trajectory, 0, elevation=10.0, zoom=0.3, size=(160, 90)).astype(int)
    assert pixels.shape == (90, 160, 3)
    red = pixels[..., 0]
    box = pixels[..., 1] > red + 15
    rows, columns = np.nonzero(box)
    assert abs(columns.mean() - 79.5) < 1.0 and abs(rows.mean() - 44.5) < 2.0
    assert 0.3 * 90 * 0.6 < np.ptp(rows) < 0.3 * 90 * 1.2
    shadow = ~box & (pixels.max(axis=2) < 130)
    assert shadow.sum() > 20
    assert np.nonzero(shadow)[0].mean() > rows.mean(), "below the box"
    assert (pixels[0].min(axis=1) > 200).all(), "the sky is bright"


def test_nearer_triangle_hides_the_farther_one():
    camera = picture.looking_at(np.array([[-1.0, -1, -1], [1, 1, 1]]), 0.0, 0.0, 1.0, (40, 40))
    canvas = picture.Canvas(camera)
    square = np.array([[0.0, -1, -1], [0, 1, -1], [0, 1, 1]])
    colors = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    forward = np.array([0.5, 0.0, 0.0])
    canvas.triangles(np.array([square + forward, square - forward]), colors, np.ones(2, dtype=bool))
    red, green = canvas.color[25, 25, :2]
    assert red > 0.2 and green == 0.0


def test_back_side_of_a_closed_surface_is_not_drawn():
    camera = picture.looking_at(np.array([[-1.0, -1, -1], [1, 1, 1]]), 0.0, 0.0, 1.0, (40, 40))
    canvas = picture.Canvas(camera)
    away = np.array([[[0.0, -1, -1], [0, 1, 1], [0, 1, -1]]])
    before = canvas.color.copy()
    canvas.triangles(away, np.array([[1.0, 0, 0]]), np.zeros(1, dtype=bool))
    np.testing.assert_array_equal(canvas.color, before)
    canvas.triangles(away, np.array([[1.0, 0, 0]]), np.ones(1, dtype=bool))
    assert (canvas.color != before).any()


def test_command_line_writes_a_png_or_says_why_not(folder, tmp_path, capsys):
    target = tmp_path / "x.png"
    assert picture.main([str(folder), "-o", str(target), "--size", "64x36"]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    assert picture.main([str(folder), "-o", str(target), "--frame", "7"]) == 1
    assert "frames 0 to 1" in capsys.readouterr().err
    with Trajectory(folder) as trajectory, pytest.raises(AbdError):
        picture.draw(trajectory, 2)
