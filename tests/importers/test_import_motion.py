"""Imported robots move as MuJoCo moves them, and run to the same bits from the TOML file that they are converted to."""

from pathlib import Path

import beside_mujoco as robots
import numpy as np
import pytest
from robot_samples import SAMPLES, write_sample

import abd
from abd.cli import main

pytest.importorskip("mujoco")

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"
ROBOTS = {
    # file: seed of the start; the balls of the cube have friction and hold their weight
    "urdf/Acrobot.urdf": 1,
    "urdf/Acrobot_with_limits.urdf": 1,
    "urdf/planar_slider.urdf": 1,
    "mjcf/slider_crank.xml": 1,
    "mjcf/humanoid.xml": 1,
    "mjcf/cube_3x3x3.xml": None,
}
SECONDS = 0.1


def fixture(name: str) -> Path:
    path = FIXTURES / name
    if not path.is_file():
        pytest.skip("no folder shared/fixtures beside the checkout")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_move_as_in_mujoco(name, tmp_path):
    _, _, seed, keyframe = SAMPLES[name]
    found = robots.difference(write_sample(name, tmp_path), SECONDS, seed=seed, keyframe=keyframe)
    # MuJoCo integrates activations to first order
    assert found["difference"] < (3e-4 if name == "actuated" else 1e-4), found
    assert found["of"], "nothing moved"


@pytest.mark.parametrize("name", [name for name in ROBOTS if "cube" not in name])
def test_robots_move_as_in_mujoco(name):
    found = robots.difference(fixture(name), SECONDS, seed=ROBOTS[name])
    assert found["difference"] < 5e-5, found


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf2"])
@pytest.mark.parametrize("name", ROBOTS)
def test_robots_move_as_in_mujoco_for_a_second(name, integrator):
    found = robots.difference(fixture(name), 1.0, integrator, seed=ROBOTS[name])
    assert found["difference"] < 1e-3, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_robots_run_two_seconds_with_contact(name):
    found = robots.contact_run(fixture(name), 2.0)
    assert found["certified"] and not found["failure"] and found["converged"] == found["steps"], found


@pytest.mark.slow
def test_atlas_runs_with_boxes():
    found = robots.contact_run(fixture("urdf/atlas.urdf"), 2.0, allow_overlaps=True, missing_meshes="boxes")
    assert found["certified"] and not found["failure"] and found["converged"] == found["steps"] == 200, found
    assert found["newton_iterations"] < 8.0, found


@pytest.mark.parametrize("name", [*SAMPLES, "contacts"])
def test_a_converted_scene_runs_to_the_same_bits(name, tmp_path, capsys):
    path = write_sample(name, tmp_path) if name in SAMPLES else contacts(tmp_path)
    # the bars of one plane pass through one another
    over = name == "four_bar"
    assert main(["convert", str(path), str(tmp_path / "out.toml"), *(["--allow-overlaps"] if over else [])]) == 0
    assert "written to" in capsys.readouterr().out
    states = []
    for source in (path, tmp_path / "out.toml"):
        simulation = abd.Simulation(abd.load(source, allow_overlaps=over), device="cpu")
        for _ in range(10):
            simulation.step()
        states.append(np.array(simulation.state.q))
    assert states[0].tobytes() == states[1].tobytes()


def contacts(folder: Path) -> Path:
    """A robot on the ground whose scene has shapes of several kinds, materials, filters and a mesh file."""
    (folder / "wedge.obj").write_text("v 0 0 0\nv 0.3 0 0\nv 0 0.3 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    path = folder / "contacts.xml"
    path.write_text(
        '<mujoco><asset><mesh name="wedge" file="wedge.obj"/></asset><worldbody><geom type="plane" size="1 1 1"/>'
        '<body name="cart" pos="0 0 0.11"><freejoint/><geom type="box" size="0.3 0.2 0.05" friction="0.8"/>'
        '<geom type="capsule" size="0.05" fromto="0 -0.2 -0.05 0 0.2 -0.05" friction="0.8"/>'
        '<body name="arm" pos="0 0 0.1"><joint axis="0 1 0" range="-90 90" limited="true"/>'
        '<geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0.2"/></body></body>'
        '<body name="wedge" pos="1 0 0.02" euler="1 2 3"><freejoint/><geom type="mesh" mesh="wedge" condim="1"/></body>'
        "</worldbody></mujoco>"
    )
    return path
