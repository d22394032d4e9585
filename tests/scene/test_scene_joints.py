"""Joints, coordinates and couplings of a scene: reading, checking, compiling, saving."""

import re

import numpy as np
import pytest
from joint_scenes import BODIES, box_scene, compiled, placed, read
from scipy.spatial.transform import Rotation

import abd
from abd.errors import SceneError
from abd.joints.rows.build import build_system

EVERYTHING = f"""{BODIES}
[solver]
joint_tolerance = 1e-10
[[joint]]
name = "first.hinge"
type = "hinge"
child = "a"
anchor = [0, 0, 0]
axis = [0, 1, 0]
x_axis = [0, 0, 1]
enforcement = "exact"
initial_deg = 30
range_deg = [-90, inf]
friction = 0.1
armature = 2
break_force = 1e4
active = false
color = [1, 0.5, 0]
draw_frame_c = "arrow"
slot_range = [-1, 1]
[joint.drive]
mode = "pd"
target_deg = "90*sin(t)"
rate = 1
stiffness = 10
damping = 2
effort = 30
[[joint]]
name = "second"
type = "hinge"
parent = "a"
child = "b"
parent_frame = {{ position = [1, 0, 0], euler = {{ order = "x", degrees = [-90] }} }}
child_frame = {{ position = [-1, 0, 0], axis_angle = {{ axis = [1, 0, 0], degrees = -90 }} }}
enforcement = "compliant"
compliance = [1e-6, 1e-6]
critical_damping = 0.5
[joint.coordinate.theta]
range = [-1, 1]
limit = "compliant"
limit_compliance = 1e-3
limit_damping = 4
locked = true
lock_value_deg = 10
stiffness = 2
rest_deg = 5
velocity_limit = 7
effort_limit = 8
[[coupling]]
name = "gears"
coordinate = "first.hinge"
terms = [
  {{ coordinate = "second.theta", table = [[0, 0], [1, 2], [2, 3]] }},
]
scale = -1
enforcement = "exact"
"""


@pytest.mark.parametrize("explicit", [False, True])
def test_everything_is_read_and_written(tmp_path, explicit):
    (tmp_path / "scene.toml").write_text(EVERYTHING)
    scene = abd.load(tmp_path / "scene.toml")
    scene.save(tmp_path / "saved.toml", explicit)
    assert scene.name == "scene" and abd.load(tmp_path / "saved.toml") == scene
    assert "[joint.coordinate.theta]" in (tmp_path / "saved.toml").read_text()


def test_every_value_arrives_in_the_model(tmp_path):
    (tmp_path / "scene.toml").write_text(EVERYTHING)
    model = abd.load(tmp_path / "scene.toml").compile()
    first, second = model.joints
    assert model.settings.joint_tolerance == 1e-10
    assert (first.enforcement, first.active, first.break_force, first.break_torque) == ("exact", False, 1e4, np.inf)
    assert first.drawing == {"color": (1.0, 0.5, 0.0), "draw_frame_c": "arrow", "slot_range": (-1.0, 1.0)}
    (theta,) = first.coordinates
    assert (theta.name, theta.friction, theta.armature, theta.upper) == ("theta", 0.1, 2.0, np.inf)
    np.testing.assert_allclose([theta.initial, theta.lower], np.radians([30, -90]))
    drive = theta.drive
    assert (drive.mode, drive.stiffness, drive.damping, drive.effort, drive.uid) == ("pd", 10, 2, 30, 0)
    assert drive.target(0.5) == pytest.approx(np.radians(90 * np.sin(0.5))) and drive.rate(3.0) == 1.0

    np.testing.assert_allclose(second.compliance, [1e-6, 1e-6, 0, 0, 0])
    np.testing.assert_allclose(second.damping, [np.sqrt(500 / 1e-6)] * 2 + [0] * 3)
    (theta,) = second.coordinates
    assert (theta.limit, theta.limit_compliance, theta.limit_damping, theta.locked) == ("compliant", 1e-3, 4, True)
    np.testing.assert_allclose([theta.lock_value, theta.rest], np.radians([10, 5]))
    assert (theta.stiffness, theta.velocity_limit, theta.effort_limit) == (2, 7, 8)

    (gears,) = model.couplings
    assert (gears.joint, gears.coordinate, gears.scale, gears.enforcement) == (0, "theta", -1, "exact")
    assert gears.terms[0].joint == 1 and gears.terms[0].table.tolist() == [[0, 0], [1, 2], [2, 3]]
    build_system(model)


def test_overrides_reach_coordinates_drives_and_couplings(tmp_path):
    (tmp_path / "scene.toml").write_text(EVERYTHING)
    texts = ["joint.second.coordinate.theta.range=[-2,2]", "joint.first.hinge.drive.effort=5", "coupling.gears.scale=3"]
    scene = abd.load(tmp_path / "scene.toml").override(texts)
    assert scene.joint("second").coordinate["theta"].range == (-2, 2)
    assert scene.joint("first.hinge").drive.effort == 5 and scene.coupling("gears").scale == 3


@pytest.mark.parametrize("degrees", [0, 40, -130, 400])
def test_a_hinge_starts_at_its_initial_angle(degrees):
    scene = box_scene()
    scene.add_hinge("j", "a", "b", anchor=(1, 2, 3), axis=(1, 2, 2), x_axis=(0, 0, 5), initial_deg=degrees)
    model, joint = compiled(scene)
    D, C = placed(model, joint)
    np.testing.assert_allclose(D[:3, 2], np.array([1, 2, 2]) / 3, atol=1e-15)
    np.testing.assert_allclose(D[:3, 0], np.array([-2, -4, 5]) / np.sqrt(45), atol=1e-15)
    np.testing.assert_allclose(C[:3, 3], (1, 2, 3), atol=1e-14)
    turn = (read(model, joint)["theta"] - np.radians(degrees) + np.pi) % (2 * np.pi) - np.pi
    assert turn == pytest.approx(0, abs=1e-14)
    assert joint.coordinates[0].initial == pytest.approx(np.radians(degrees))


def test_all_forms_of_placement_give_equal_frames():
    """Forms are world and body features, frames in the world and on bodies, and matrices."""
    turn = Rotation.from_euler("xyz", (10, 20, 30), degrees=True).as_matrix()
    D = np.eye(4)
    D[:3, :3], D[:3, 3] = Rotation.from_rotvec((0.3, 0.5, -0.2)).as_matrix(), (1, 0.2, 0.3)
    in_b = np.eye(4)
    in_b[:3, :3], in_b[:3, 3] = turn.T @ D[:3, :3], turn.T @ (D[:3, 3] - (2, 0, 0))
    table = {"position": D[:3, 3], "quaternion": Rotation.from_matrix(D[:3, :3]).as_quat()[[3, 0, 1, 2]]}
    forms = {
        "features": {"anchor": D[:3, 3], "axis": 3 * D[:3, 2], "x_axis": D[:3, 0] + 5 * D[:3, 2]},
        "locals": {
            f"{end}_{what}": frame[:3, column]
            for end, frame in (("parent", D), ("child", in_b)) for what, column in (("anchor", 3), ("axis", 2), ("x_axis", 0))
        },
        "world": {"world_frame": D},
        "both in the world": {"world_frame": table, "child_world_frame": D},
        "in the bodies": {"parent_frame": table, "child_frame": in_b},
        "in the parent": {"parent_frame": D},
    }  # fmt: skip
    for name, keys in forms.items():
        scene = box_scene()
        scene.add_hinge("j", "a", "b", **keys)
        model, joint = compiled(scene)
        for frame in placed(model, joint):
            np.testing.assert_allclose(frame, D, atol=1e-14, err_msg=name)


def test_a_frame_with_its_position_in_the_last_row_is_refused():
    frame = np.eye(4)
    frame[3, :3] = 0.5, 0.0, 0.0
    with pytest.raises(SceneError, match=r"joint\.j\.world_frame: is no pose -> give a \(4, 4\) matrix"):
        box_scene().add_joint("hinge", "j", "a", "b", world_frame=frame)


def test_measured_initial_values_count_turns_and_refuse_contradictions():
    frame = np.eye(4)
    frame[:3, :3] = Rotation.from_rotvec((0, 0, 0.7)).as_matrix()
    for given, start in ((None, 0.7), (0.7 + 4 * np.pi, 0.7 + 4 * np.pi)):
        scene = box_scene()
        keys = {"world_frame": np.eye(4), "child_world_frame": frame, "friction": 1}
        scene.add_hinge("j", "world", "a", initial=given, **keys)
        assert compiled(scene)[1].coordinates[0].initial == pytest.approx(start, abs=1e-14)
    scene = box_scene()
    scene.add_hinge("j", "world", "a", initial=0.1, **keys)
    with pytest.raises(SceneError, match=re.escape("theta must be 0.7 by the frames of the bodies, not 0.1")):
        scene.compile()


def test_uniform_compliance_or_stiffness_has_critical_or_given_damping():
    """The damping uses the reduced mass of both ends, and the reduced inertia about the axis through the joint's point."""
    scene = box_scene()
    scene.add_body("light", box=(1, 1, 1), density=10, position=(0, 5, 0))
    place = {"anchor": (1, 0, 0), "axis": (0, 0, 1), "enforcement": "compliant"}
    scene.add_hinge("j", "a", "b", linear_compliance=1e-6, rotary_compliance=1e-5, **place)
    scene.add_hinge("w", "world", "light", rotary_compliance=1e-5, damping=(1, 2), **place)
    scene.add_hinge("s", "a", "light", stiffness=1e6, damping=3, **place)
    model = scene.compile()
    inertias = 1000 * np.array([1 / 6, 1 / 6 + 1])  # of a cube about axes through a point 1 m along x from its centre
    linear, rotary = 2 * np.sqrt(500 / 1e-6), 2 * np.sqrt(inertias / 2 / 1e-5)
    np.testing.assert_allclose(model.joints[0].compliance, [1e-6] * 3 + [1e-5] * 2)
    np.testing.assert_allclose(model.joints[0].damping, [linear] * 3 + rotary.tolist())
    np.testing.assert_allclose(model.joints[1].compliance, [0] * 3 + [1e-5] * 2)
    np.testing.assert_allclose(model.joints[1].damping, [1, 2, 0, 0, 0])
    np.testing.assert_allclose([model.joints[2].compliance, model.joints[2].damping], [[1e-6] * 5, [3.0] * 5])


def test_lengths_default_to_the_radius_of_gyration():
    scene = box_scene()
    scene.add_body("beam", box=(1, 2, 3), position=(9, 0, 0))
    scene.add_spherical("s", "world", "a", anchor=(0, 0, 0))
    scene.add_spherical("t", "a", "beam", anchor=(0, 0, 0))
    scene.add_spherical("u", "a", "beam", anchor=(0, 0, 0), length=0.3)
    scene.add_hinge("h", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    cube, beam = np.sqrt(1 / 6), np.sqrt(2 * (1 + 4 + 9) / 36)
    lengths = [joint.length for joint in scene.compile().joints]
    np.testing.assert_allclose(lengths, [cube, (cube + beam) / 2, 0.3, 0.5])


def test_couplings_by_name():
    scene = box_scene()
    for name, child in (("p", "a"), ("q", "b")):
        scene.add_hinge(name, "world", child, anchor=(0, 0, 0), axis=(0, 0, 1))
    scene.add_gear("gear", "p", "q.theta", ratio=-2)
    scene.add_mimic("mimic", "q", "p", multiplier=3, offset=0.5, enforcement="compliant", compliance=1e-4)
    scene.add_rack("rack", "q", "p", radius=0.2)
    polynomials = [coupling.terms[0].polynomial for coupling in scene.compile().couplings]
    assert polynomials == [(0.0, -2.0), (0.5, 3.0), (0.0, 0.2)]
    notes = scene.compile().notes
    assert notes == ["coupling 'mimic' has an initial residual of -0.5 rad"]
    with pytest.raises(SceneError, match="there is already a coupling 'gear'"):
        scene.add_gear("gear", "p", "q", ratio=1)
