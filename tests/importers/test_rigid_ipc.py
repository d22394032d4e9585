"""The rigid-ipc importer: the rules of the format on small scenes, and 25 scenes next to the checkout."""

import json

import numpy as np
import pytest
from common_scenes import overlaps
from on_device import NAME
from scipy.spatial.transform import Rotation
from tool import FIXTURES

import abd
from abd.errors import SceneError
from abd.model import Kind

FAMILIES = ("rigid-ipc/scenes/**/*.json", "affine-body-dynamics/scenes/*.json")
SCENES = [path for family in FAMILIES for path in sorted(FIXTURES.glob(family))]


CUBE = """v -0.5 -0.5 -0.5\nv 0.5 -0.5 -0.5\nv 0.5 0.5 -0.5\nv -0.5 0.5 -0.5
v -0.5 -0.5 0.5\nv 0.5 -0.5 0.5\nv 0.5 0.5 0.5\nv -0.5 0.5 0.5
f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"""
PLANE = "v -10 0 -10\nv -10 0 10\nv 10 0 10\nv 10 0 -10\nf 1 2 3\nf 1 3 4\n"
ANGLE = "v 0 0 0\nv 1 0 0\nv 1 2 0\nl 1 2 3\n"
TWO_LINES = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 5 0 0\nv 7 0 0\nv 5 2 0\nl 1 2 3\nl 4 5 6\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meshes" / "sub").mkdir(parents=True)
    (tmp_path / "scenes" / "group").mkdir(parents=True)
    for name, text in (("cube", CUBE), ("plane", PLANE), ("angle", ANGLE), ("pair", TWO_LINES), ("sub/cube", CUBE)):
        (tmp_path / "meshes" / f"{name}.obj").write_text(text)
    return tmp_path


def read(folder, *bodies, problem=None, **top):
    path = folder / "scenes" / "group" / "scene.json"
    path.write_text(json.dumps({"rigid_body_problem": {"rigid_bodies": list(bodies), **(problem or {})}, **top}))
    scene = abd.load(path)
    assert scene.check() == []
    return scene.spec, scene.notes, scene.compile()


def test_defaults_of_the_format(folder):
    spec, notes, model = read(
        folder, {"mesh": "cube.obj"}, {"mesh": "cube.obj", "position": [3, 4, 0]}, max_time=0.3, timestep=0.1
    )
    settings = model.settings
    assert spec.name == "scene" and model.bodies.names == ["cube", "cube_1"] and len(model.meshes) == 1
    assert (settings.gravity == 0).all() and (settings.frames, settings.dt, settings.d_hat) == (3, 0.1, 1e-3)
    assert (settings.max_newton, settings.friction_iterations, settings.eps_v) == (3000, 0, 1e-3)
    np.testing.assert_allclose(model.bodies.mass, 1000.0)
    np.testing.assert_allclose(model.bodies.kappa, 1e9)
    assert notes == []


def test_settings(folder):
    _, notes, model = read(
        folder,
        {"mesh": "cube.obj"},
        problem={"coefficient_friction": 0.3, "gravity": [0, -9.8, 0], "coefficient_restitution": -1},
        ipc_solver={"velocity_conv_tol": 1e-4, "max_iterations": 77},
        distance_barrier_constraint={"initial_barrier_activation_distance": 1e-2, "minimum_separation_distance": 1e-4},
        friction_constraints={"iterations": -1, "static_friction_speed_bound": 1e-5},
        max_iterations=12,
        **{"#note": "a comment"},
    )
    settings = model.settings
    assert (settings.max_newton, settings.frames) == (77, 12)
    assert (settings.d_hat, settings.minimum_separation) == (1e-2, 1e-4)
    assert (settings.friction_iterations, settings.eps_v, model.materials.mu[0, 0]) == (-1, 1e-5, 0.3)
    assert len(notes) == 2 and "velocity_conv_tol" in notes[0] and "contact_set" in notes[1] and settings.contact_set == "ipc"


@pytest.mark.device
def test_bodies_slide_in_spite_of_the_large_default_tolerance_of_the_format(folder):
    floor, cube = {"mesh": "plane.obj", "type": "static"}, {"mesh": "cube.obj", "position": [0, 0.5011, 0]}
    problem = {"coefficient_friction": 0.3, "gravity": [0, -9.81, 0]}
    read(folder, floor, {**cube, "linear_velocity": [2, 0, 0]}, problem=problem, max_time=0.3)
    sim = abd.run(folder / "scenes" / "group" / "scene.json", device=NAME)
    assert sim.bodies["cube"].center_velocity[0] == pytest.approx(2.0 - 0.3 * 9.81 * 0.3, abs=5e-3)


def test_misspelt_keys_leave_the_default_and_are_noted(folder):
    misspelt = {"distance_barrier_constraints": {"initial_barrier_activation_distance": 1}}
    _, (note,), model = read(folder, {"mesh": "cube.obj"}, max_time=1, **misspelt)
    assert model.settings.d_hat == 1e-3
    assert "unknown key 'distance_barrier_constraints'" in note and "'distance_barrier_constraint'?" in note


def test_pose_and_loads(folder):
    place = {"scale": [1, 2, 3], "rotation": [10, 20, 30], "position": [1, 2, 3]}
    rates = {"linear_velocity": [1, 0, 0], "angular_velocity": [0, 0, 180]}
    loads = {"force": [5, 0, 0], "torque": [0, 0, 180]}
    body = {"mesh": "sub/cube.obj", "density": 10, "group_id": 4, **place, **rates, **loads}
    _, notes, model = read(folder, body, max_time=1)
    bodies = model.bodies
    rx, ry, rz = (Rotation.from_rotvec(np.radians(angle) * axis) for angle, axis in zip((10, 20, 30), np.eye(3)))
    transform = model.user_transform(bodies.q)[0]
    np.testing.assert_allclose(transform[:3, :3], (rz * ry * rx).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(transform[:3, 3], [1, 2, 3])
    assert bodies.mass[0] == pytest.approx(60) and bodies.group[0] == 4
    np.testing.assert_allclose(bodies.torque[0], [0, 0, np.pi])
    assert any("pi/180" in note for note in notes)
    # the rate of the axes is [w]x A with w = pi about z
    rate, axes = bodies.qd[0, 3:].reshape(3, 3), bodies.q[0, 3:].reshape(3, 3)
    np.testing.assert_allclose(rate, np.pi * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]]) @ axes, atol=1e-14)


def test_dimensions_override_the_scale(folder):
    sheet = {"mesh": "plane.obj", "dimensions": [100, 0, 50], "scale": 7, "type": "static"}
    cube = {"mesh": "cube.obj", "dimensions": [1, 2, 3], "position": [0, 5, 0]}
    spec, _, _ = read(folder, sheet, cube, max_time=1)
    assert [body.scale for body in spec.body] == [(5.0, 1.0, 2.5), (1.0, 2.0, 3.0)]


@pytest.mark.parametrize(
    ("fixed", "translation", "rotation", "axis"),
    [
        ([True, True, True, True, True, False], [False] * 3, 1, [0, 0, 1]),
        ([True, False, True, True, True, True], [False, True, False], 0, [0, 0, 0]),
        ([False, False, True, True, True, False], [True, True, False], 1, [0, 0, 1]),
        ([True, True, True, False, False, False], [False] * 3, 3, [0, 0, 0]),
        (False, [True] * 3, 3, [0, 0, 0]),
    ],
)
def test_patterns_of_fixed_axes(folder, fixed, translation, rotation, axis):
    body = {"mesh": "cube.obj", "is_dof_fixed": fixed, "linear_velocity": [1, 1, 1], "angular_velocity": [90, 90, 90]}
    _, notes, model = read(folder, body, max_time=1)
    bodies = model.bodies
    assert bodies.kind[0] == Kind.DYNAMIC and bodies.free_translation[0].tolist() == translation
    assert bodies.free_rotation[0] == rotation
    np.testing.assert_allclose(bodies.rotation_axis[0], axis)
    np.testing.assert_allclose(bodies.qd[0, :3], np.array(translation, dtype=float))
    assert notes == [] and model.notes == []


def test_static_and_disabled_bodies(folder):
    fixed = {"mesh": "plane.obj", "is_dof_fixed": True}
    static = {"mesh": "plane.obj", "type": "static", "position": [0, 1, 0], "linear_velocity": [1, 0, 0]}
    disabled, free = {"mesh": "gone.obj", "enabled": False}, {"mesh": "cube.obj", "position": [0, 5, 0]}
    _, _, model = read(folder, fixed, static, disabled, free, max_time=1)
    assert model.bodies.kind.tolist() == [Kind.STATIC, Kind.STATIC, Kind.DYNAMIC]
    assert (model.bodies.qd == 0).all()


def test_open_meshes_are_sheets_and_lines(folder):
    sheet = {"mesh": "plane.obj", "scale": 0.1, "density": 5}
    _, notes, model = read(folder, sheet, {"mesh": "angle.obj", "position": [0, 3, 0]}, max_time=1)
    np.testing.assert_allclose(model.bodies.mass, [5 * 4, 3000])
    np.testing.assert_allclose(model.bodies.moment[0], [20 * 4 / 12, 0, 20 * 4 / 12], atol=1e-12)
    np.testing.assert_allclose(model.bodies.radius, 0)
    np.testing.assert_allclose(model.bodies.volume, [4, 3])
    assert len(notes) == 2 and "a sheet of 5 kg/m^2" in notes[0] and "lines of 1000 kg/m" in notes[1]


def test_components_are_bodies(folder):
    body = {"mesh": "pair.obj", "split_components": True, "position": [9, 0, 0], "linear_velocity": [0, 1, 0]}
    spec, _, model = read(folder, {"mesh": "cube.obj"}, body, max_time=1)
    assert model.bodies.names == ["cube", "pair_0", "pair_1"]
    np.testing.assert_allclose(model.bodies.mass[1:], 1000 * (1 + np.sqrt(2)) * np.array([1, 2]))
    np.testing.assert_allclose(model.bodies.qd[:, 1], [0, 1, 1])
    assert spec.body[2].position == (9, 0, 0) and model.bodies.q[2, 0] > 14


def test_kinematic_body_turns_about_its_centre_of_mass(folder):
    (folder / "meshes" / "beside.obj").write_text(CUBE.replace("v -0.5", "v 1.5").replace("v 0.5", "v 2.5"))
    rates = {"angular_velocity": [0, 0, 90], "linear_velocity": [9, 0, 0], "is_dof_fixed": [True] * 5 + [False]}
    _, _, model = read(folder, {"mesh": "beside.obj", "type": "kinematic", "kinematic_max_time": 1.0, **rates}, max_time=1)
    motion = model.motions[0]
    for t, turn in ((0.0, 0.0), (0.5, 45.0), (1.0, 90.0), (7.0, 90.0)):
        pose = motion(t)
        np.testing.assert_allclose(pose[:3, :3] @ [2, 0, 0] + pose[:3, 3], [2, 0, 0], atol=1e-14)
        np.testing.assert_allclose(pose[:2, 0], [np.cos(np.radians(turn)), np.sin(np.radians(turn))], atol=1e-14)


def test_kinematic_poses_are_those_of_the_principal_frame(folder):
    poses = [{"position": [0, 1, 0]}, {"position": [0, 2, 0], "rotation": [0, 0, np.pi / 2]}]
    motion = {"type": "kinematic", "kinematic_poses": poses, "linear_velocity": [0, 5, 0]}
    body = {"mesh": "cube.obj", "scale": [3, 1, 2], "rotation": [0, 0, 90], **motion}
    _, _, model = read(folder, body, max_time=1, timestep=0.1)
    motion, points = model.motions[0], np.array([[1.5, 0, 0], [0, 0.5, 0], [0, 0, 1.0]])
    first, second, later = motion(0.1), motion(0.2), motion(0.4)
    # upstream's axes by growing inertia: the long one (3), then 2, then 1; without rotation these lie along x, y, z
    for pose, expected in ((first, [[1.5, 0, 0], [0, 0, 0.5], [0, 1, 0]]), (second, [[0, 1.5, 0], [0, 0, 0.5], [1, 0, 0]])):
        np.testing.assert_allclose(np.abs(points @ pose[:3, :3].T), expected, atol=1e-14)
    places = [pose[:3, 3] for pose in (first, second, later)]
    np.testing.assert_allclose(places, [[0, 1, 0], [0, 2, 0], [0, 3, 0]], atol=1e-14)
    np.testing.assert_allclose(later[:3, :3], second[:3, :3], atol=1e-14)


def test_inline_meshes_and_saved_simulations(folder):
    path = folder / "scenes" / "saved.json"
    faces, edges = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], [[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]]
    body = {"vertices": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "faces": faces, "edges": edges}
    path.write_text(json.dumps({"args": {"rigid_body_problem": {"rigid_bodies": [body]}, "max_time": 1}}))
    scene = abd.load(path)
    assert any("saved simulation" in note for note in scene.notes)
    model = scene.compile()
    assert model.bodies.mass[0] == pytest.approx(1000 / 6) and len(model.meshes[0].codim_edges) == 0


def test_constraints_of_the_affine_family(folder):
    base = {"mesh": "sub\\cube.obj", "name": "base", "is_dof_fixed": True}
    arm = {"mesh": "sub//cube.obj", "name": "arm", "position": [2, 0, 0], "rotation": [0, 0, 1.57], "scale": 0.5}
    pins = [
        *({"type": "pin_world", "body_name": "base", "body_point": point} for point in np.eye(3).tolist()),
        {"type": "pin_joint", "bodyA_name": "base", "bodyA_point": [1, 0, 0], "bodyB_name": "arm"},
        {"type": "pin_world", "body_name": "arm", "body_point": [1, 0, 0]},
    ]
    problem = {"orthogonality_stiffness": 5e9, "linear_constraints": pins}
    spec, notes, model = read(folder, base, arm, problem=problem, max_time=1)
    assert [body.kind for body in spec.body] == ["static", "dynamic"]
    np.testing.assert_allclose(model.bodies.kappa, 5e9)
    assert any("'base' is static: it has 3 pins" in note for note in notes) and any("is_dof_fixed" in note for note in notes)
    first, second = model.joints
    assert (first.type, first.parent, first.child, first.collide) == ("pin", 0, 1, True)
    assert (second.parent, second.child) == (-1, 1)
    np.testing.assert_allclose(second.parent_frame[:3, 3], [2 + 0.5 * np.cos(1.57), 0.5 * np.sin(1.57), 0])
    axis = model.user_transform(model.bodies.q)[1][:3, 0]
    np.testing.assert_allclose(axis, [np.cos(1.57), np.sin(1.57), 0], atol=1e-14)


def test_pins_in_line_hold_a_hinge_not_a_body(folder):
    points = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    pins = [{"type": "pin_world", "body_name": "cube", "body_point": point} for point in points]
    spec, _, model = read(folder, {"mesh": "cube.obj"}, problem={"linear_constraints": pins}, max_time=1)
    assert spec.body[0].kind == "dynamic" and len(model.joints) == 3


def test_all_problems_at_once(folder):
    wrong = ({"position": [1, 2]}, {"is_dof_fixed": [True]}, {"density": -1}, {"type": "statik"})
    bodies = [{"mesh": "gone.obj"}, {"mesh": "gone.obj"}, *({"mesh": "cube.obj", **keys} for keys in wrong)]
    with pytest.raises(SceneError) as error:
        read(folder, *bodies, timestep="fast", problem={"coefficient_friction": -1})
    text = [str(problem) for problem in error.value.problems]
    assert len(text) == 7 and all("scene.json" in line for line in text)
    assert "scene.json: rigid_body_problem.rigid_bodies[0].mesh: mesh file 'gone.obj' not found" in "\n".join(text)
    pin = {"type": "pin_world", "body_name": "cuve", "body_point": [0, 0, 0]}
    with pytest.raises(SceneError, match="did you mean 'cube'"):
        read(folder, {"mesh": "cube.obj"}, problem={"linear_constraints": [pin]})


def test_entries_that_are_no_objects_are_reported_with_the_problems_of_others(folder):
    cube = {"mesh": "cube.obj"}
    bodies = [{**cube, "density": -1}, 5, {**cube, "density": -2}, {**cube, "kinematic_poses": [3, {"position": 2}]}]
    with pytest.raises(SceneError) as error:
        read(folder, *bodies)
    places = {f"rigid_body_problem.rigid_bodies[{place}" for place in ("0].density", "1]", "2].density", "3].kinematic_poses[0]")}
    text = [str(problem) for problem in error.value.problems]
    assert all(any(f"{place}: should be" in line for line in text) for place in places)


def test_broken_json_names_the_line(folder):
    path = folder / "scenes" / "broken.json"
    path.write_text('{\n"timestep": 0.1,\n}')
    with pytest.raises(SceneError) as error:
        abd.load(path)
    assert error.value.problems[0].line == 3


@pytest.mark.skipif(not SCENES, reason="no folder shared/fixtures beside the checkout")
@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_fixture_scenes_load_without_problems_and_round_trip(path, tmp_path):
    scene = abd.load(path)
    assert scene.name == path.stem and scene.check() == []
    scene.save(tmp_path / "copy.toml")
    assert abd.load(tmp_path / "copy.toml") == scene
    assert not any("unknown key" in note for note in scene.notes)
    model = scene.compile()
    assert overlaps(model) == []
    bodies = model.bodies
    assert (bodies.mass[bodies.kind == Kind.DYNAMIC] > 0).all()
    assert np.isfinite(bodies.q).all() and len(model.meshes) <= len(bodies)
    rotation = bodies.q[:, 3:].reshape(-1, 3, 3)
    assert np.abs(rotation @ rotation.transpose(0, 2, 1) - np.eye(3)).max() <= 1e-13
