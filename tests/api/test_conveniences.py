"""Conveniences of the Python interface: meshes in memory, poses, tables, restarts, runs in one call."""

import subprocess
import sys

import numpy as np
import pytest
import trimesh
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.errors import SceneError
from abd.optional import MissingLibrary

ICOSPHERE = trimesh.creation.icosphere(subdivisions=1, radius=0.1)


def falling(mesh, **keys) -> abd.Scene:
    scene = on_ground(0.3)
    scene.add_body("stone", mesh=mesh, **({"position": (0, 0, 0.101)} | keys))
    return scene


@pytest.mark.parametrize("form", ["path", "trimesh", "tuple"])
def test_mesh_can_be_a_file_or_in_memory(form, tmp_path):
    path = tmp_path / "stone.ply"
    ICOSPHERE.export(path, encoding="ascii", vertex_normal=False)
    exact = trimesh.load(path, process=False)
    mesh = {"path": path, "trimesh": exact, "tuple": (exact.vertices, exact.faces)}[form]
    model = falling(mesh).compile()
    assert model.bodies.mass[1] == pytest.approx(1000.0 * ICOSPHERE.volume, rel=1e-5)
    assert model.bodies.q[1] == pytest.approx(falling(str(path)).compile().bodies.q[1], abs=1e-12)


def test_a_scene_with_a_mesh_in_memory_is_saved_and_loaded(tmp_path):
    scene = falling(ICOSPHERE)
    scene.save(tmp_path / "stone.toml")
    assert abd.load(tmp_path / "stone.toml").spec.body == scene.spec.body


def test_pose_can_be_a_matrix():
    turn = trimesh.transformations.rotation_matrix(0.5, (0, 1, 0))
    turn[:3, 3] = 0.1, 0.2, 0.3
    scene = abd.Scene()
    scene.add_body("box", box=(0.1, 0.1, 0.1), transform=turn)
    assert abd.Simulation(scene, device="numpy").bodies["box"].transform == pytest.approx(turn, abs=1e-12)


BOX = {"box": (1, 1, 1)}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"mesh": 3.0}, "float, which is no mesh"),
        ({"mesh": (ICOSPHERE.vertices[:, :2], ICOSPHERE.faces)}, r"vertices.*shape \(42, 2\)"),
        ({"mesh": (ICOSPHERE.vertices, ICOSPHERE.faces + 0.5)}, "faces.*rows of three integers"),
        ({"mesh": (ICOSPHERE.vertices * np.nan, ICOSPHERE.faces)}, "vertices.*rows of three numbers.*finite"),
        ({"mesh": (ICOSPHERE.vertices, ICOSPHERE.faces + 1)}, "index 42 is not one of"),
        ({"mesh": trimesh.Scene(ICOSPHERE)}, r"several objects.*to_mesh"),
        ({**BOX, "transform": np.eye(3)}, "is no pose"),
        ({**BOX, "transform": np.full((4, 4), np.nan)}, "is no pose"),
        ({**BOX, "transform": "here"}, "is no pose"),
        ({**BOX, "transform": np.eye(4), "position": (0, 0, 1)}, "position is given as well"),
        ({**BOX, "transform": np.diag([2.0, 1.0, 1.0, 1.0])}, "is not a rotation"),
        *(({**BOX, "color": color}, "color") for color in ("rred", "#12345g", (1, 2, 3), (0.1, 0.2), 3, "0.5,0.5")),
    ],
)
def test_invalid_meshes_poses_and_colors_are_refused(keys, words):
    with pytest.raises(SceneError, match=f"(?s)body.stone.*{words}"):
        abd.Scene().add_body("stone", **keys)


def test_tables_have_the_values_of_the_arrays():
    pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    sim = abd.Simulation(falling(ICOSPHERE, position=(0, 0, 0.1005)), device=NAME)
    force = sim.add_sensor("force", "contact_force", "stone")
    reports = [sim.step() for _ in range(3)]
    table = force.to_pandas()
    assert list(table.columns) == ["x", "y", "z"] and table.index.name == "time"
    np.testing.assert_array_equal(table.to_numpy(), force.values)
    contacts = sim.contacts()
    points = contacts.to_pandas()
    assert len(points) == len(contacts) > 0
    np.testing.assert_array_equal(points["point.z"], contacts.point[:, 2])
    assert set(points["first"]) | set(points["second"]) == {"stone", "ground"}
    series = reports[-1].to_pandas()
    assert series["energy.kinetic"] == reports[-1].energy["kinetic"]
    assert series["momentum.linear.z"] == reports[-1].momentum["linear"][2]


def test_missing_pandas_is_reported_with_its_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    sim = abd.Simulation(falling(ICOSPHERE), device="numpy")
    row = sim.step().row()
    assert row["step"] == 1 and {"energy.kinetic", "momentum.angular.z", "max_joint_residual.m"} <= row.keys()
    assert all(np.isscalar(value) for value in row.values())
    with pytest.raises(MissingLibrary, match=r"pip install 'abd-solver\[pandas\]'"):
        sim.contacts().to_pandas()


def test_warnings_of_a_run_are_not_lost(tmp_path):
    """A motor whose mechanism cannot move strains its links."""
    scene, exact = abd.Scene(), {"enforcement": "exact"}
    for k, name in enumerate("ab"):
        scene.add_body(name, box=(0.2, 0.02, 0.02), position=(0.1 + 0.2 * k, 0, 0))
    drive = {"mode": "velocity", "target": 3.0}
    scene.add_hinge("motor", abd.WORLD, "a", anchor=(0, 0, 0), axis=(0, 1, 0), drive=drive, **exact)
    scene.add_spherical("middle", "a", "b", anchor=(0.2, 0, 0), **exact)
    scene.add_spherical("end", abd.WORLD, "b", anchor=(0.4, 0, 0), **exact)
    script = f"""
import abd
scene = abd.load({str(tmp_path / "jam.toml")!r})
for folder in (None, {str(tmp_path / "run")!r}):
    abd.Simulation(scene, device="cpu").run(steps=3, record=folder)
"""
    scene.save(tmp_path / "jam.toml")
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert told.count("strains by 0.0009") == 2


def test_an_unknown_argument_of_a_scene_is_refused_with_a_suggestion():
    with pytest.raises(TypeError, match=r"scene\.solver\.dt"):
        abd.Scene(dt=0.01)
