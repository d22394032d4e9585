"""Prescribed motions: velocities, keyframes, files and formulas against closed forms."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.scene.compile.motion import prescribed_motion, read_poses
from abd.scene.geometry.frames import frame_pose, rotation_matrix
from abd.scene.schema.fields import Orientation, TimeFunction
from abd.scene.schema.formula import FormulaError
from abd.scene.schema.schema import BodySpec, MotionSpec

START = frame_pose(BodySpec(name="b", box=(1, 1, 1), position=(1, 2, 3), axis_angle={"axis": (1, 2, 2), "degrees": 40}))


def motion(start=START, center=None, **keys):
    return prescribed_motion(MotionSpec(**keys), start, center)


def turned(rotation_vector):
    return Rotation.from_rotvec(rotation_vector).as_matrix()


@pytest.mark.parametrize(
    "text, value",
    {
        "1 + 2*3 - 4/8": 6.5,
        "-t**2": -9.0,
        "2**-1": 0.5,
        "2**3**2": 512.0,
        "(-2)**3": -8.0,
        "--t": 3.0,
        "1.5e-1*.5": 0.075,
        "0.1*sin(2*pi*t/12)": 0.1,
        "cos(0) + tan(0) + exp(0) + log(1)": 2.0,
        "sqrt(abs(-4))": 2.0,
        "min(t, 2, 5) + max(t, 2)": 5.0,
        "step(t-3) + step(t-3.01)": 1.0,
        "smoothstep(2, 6, t)": 0.25**2 * 2.5,
        "smoothstep(0, 1, t) + smoothstep(4, 5, t)": 1.0,
        "+".join("t" * 500): 1500.0,
    }.items(),
)
def test_formula(text, value):
    assert TimeFunction(text)(3.0) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text, column, words",
    [
        ("", None, "cannot be read"),
        ("2 *", None, "cannot be read"),
        ("2 * ) + 1", None, "')'"),
        ("(1 + 2", None, "never closed"),
        ("1 2", None, "cannot be read"),
        ("t ^ 2", 1, "'t ^ 2'"),
        ("3 + sinn(t)", 5, "unknown name 'sinn'"),
        ("sin(t, 2)", 1, "takes 1"),
        ("min(t)", 1, "at least 2"),
        ("1 + sin", 8, "expected '('"),
        ("__import__('os').getcwd()", 1, "found '__import__('os').getcwd()'"),
        ("  t.real", 3, "found 't.real'"),
        ("t if t else 1", 1, "found"),
        ("1 + 2j", 5, "found '2j'"),
        ("t # comment", None, "cannot be read"),
        ("-" * 200 + "t", 66, "nested"),
        ("t+" * 600, 1000, "1200 characters"),
        ("9" * 400, 1, "too large"),
    ],
)
def test_wrong_formula_points_at_the_column(text, column, words):
    with pytest.raises(FormulaError) as error:
        TimeFunction(text)
    assert 1 <= error.value.column <= len(text) + 1
    assert column is None or error.value.column == column  # Python's own parser places errors of syntax
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text",
    ["1/t", "log(t)", "sqrt(t-1)", "(t-2)**0.5", "abs((t-2)**0.5)", "max(1, (t-2)**0.5)", "exp(1000)", "9**9**9**9", "t**-1"],
)
def test_formula_without_a_value(text):
    with pytest.raises(FormulaError, match="at t = 0"):
        TimeFunction(text)(0.0)


def test_constant_velocities_about_the_mesh_origin():
    spin = np.array([0.3, -1.0, 2.0])
    pose = motion(velocity=(1, 0, -2), angular_velocity=spin, until=1.5)
    np.testing.assert_allclose(pose(0.0), START, atol=1e-15)
    np.testing.assert_allclose(pose(0.7)[:3, 3], START[:3, 3] + 0.7 * np.array([1, 0, -2]))
    np.testing.assert_allclose(pose(0.7)[:3, :3], turned(0.7 * spin) @ START[:3, :3], atol=1e-15)
    np.testing.assert_array_equal(pose(9.0), pose(1.5))
    in_degrees = motion(velocity=(1, 0, -2), angular_velocity_deg=np.degrees(spin))
    np.testing.assert_allclose(in_degrees(1.1), pose(1.1), atol=1e-14)


def test_velocities_of_the_centre_of_mass_move_it_straight():
    center = np.array([0.5, -1.0, 2.0])
    pose = motion(center=center, velocity=(0, 3, 0), angular_velocity=(0, 0, 5), frame="center_of_mass")
    start = START[:3, :3] @ center + START[:3, 3]
    for t in (0.0, 0.4, 2.0):
        np.testing.assert_allclose(pose(t)[:3, :3] @ center + pose(t)[:3, 3], start + np.array([0, 3 * t, 0]), atol=1e-14)
        np.testing.assert_allclose(pose(t)[:3, :3], turned((0, 0, 5 * t)) @ START[:3, :3], atol=1e-14)
    with pytest.raises(SceneError, match="centre of mass"):
        motion(frame="center_of_mass", velocity=(1, 0, 0))


KEYFRAMES = [
    {"time": 1.0, "position": (0, 0, 0), "quaternion": (1, 0, 0, 0)},
    {"time": 3.0, "position": (4, 0, 0), "axis_angle": {"axis": (0, 0, 1), "degrees": 90}},
    {"time": 4.0},
]


def test_keyframes():
    pose = motion(keyframes=KEYFRAMES)
    np.testing.assert_allclose(pose(0.0), START, atol=1e-15)  # approached from the initial pose
    np.testing.assert_allclose(pose(0.5)[:3, 3], START[:3, 3] / 2)
    np.testing.assert_allclose(pose(1.0), np.eye(4), atol=1e-15)
    np.testing.assert_allclose(pose(1.5)[:3, 3], (1, 0, 0))
    np.testing.assert_allclose(pose(1.5)[:3, :3], turned((0, 0, math.pi / 8)), atol=1e-15)
    np.testing.assert_allclose(pose(4.0), START, atol=1e-15)  # what a keyframe leaves out is that of the start
    np.testing.assert_array_equal(pose(99.0), pose(4.0))
    for t in (1.0, 3.0, 4.0):
        np.testing.assert_allclose(pose(t - 1e-9), pose(t + 1e-9), atol=1e-7)
    # rotations take the shortest arc
    frames = [{"time": 0, "quaternion": (1, 0, 0, 0)}, {"time": 1, "axis_angle": {"axis": (0, 0, 1), "degrees": 270}}]
    np.testing.assert_allclose(motion(keyframes=frames)(0.5)[:3, :3], turned((0, 0, -math.pi / 4)), atol=1e-15)


def test_after_the_last_keyframe():
    frames = KEYFRAMES[:2]
    pose = motion(keyframes=frames, after="continue")
    np.testing.assert_allclose(pose(5.0)[:3, 3], (8, 0, 0))
    np.testing.assert_allclose(pose(5.0)[:3, :3], turned((0, 0, math.pi)), atol=1e-15)
    pose = motion(keyframes=frames, after="continue", velocity=(0, 1, 0))  # velocities given: those, not the last ones
    np.testing.assert_allclose(pose(5.0)[:3, 3], (4, 2, 0))
    np.testing.assert_allclose(pose(5.0)[:3, :3], turned((0, 0, math.pi / 2)), atol=1e-15)
    np.testing.assert_array_equal(motion(keyframes=frames)(5.0), motion(keyframes=frames)(3.0))
    single = motion(keyframes=[{"time": 0, "position": (0, 0, 1)}], after="continue")
    np.testing.assert_allclose(single(2.0)[:3, 3], (0, 0, 1))


def test_formulas_displace_the_initial_pose():
    pose = motion(formulas={"x": "0.1*sin(2*pi*t)", "z": "t**2", "ry": "pi*t"})
    np.testing.assert_allclose(pose(0.0), START, atol=1e-15)
    np.testing.assert_allclose(pose(0.25)[:3, 3], START[:3, 3] + (0.1, 0, 0.0625))
    np.testing.assert_allclose(pose(0.25)[:3, :3], turned((0, math.pi / 4, 0)) @ START[:3, :3], atol=1e-15)
    with pytest.raises(FormulaError, match=r"motion.formulas.y: .*no value at t = 2: .*min or max"):
        motion(formulas={"y": "1/(t-2)"})(2.0)


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_files_of_poses(tmp_path, kind):
    path = tmp_path / f"poses.{kind}"
    half = math.sqrt(0.5)
    table = np.array([[0.0, 0, 0, 1, 1, 0, 0, 0], [2.0, 0, 4, 1, 2 * half, 0, 0, 2 * half]])
    names = ["time", "x", "y", "z", "qw", "qx", "qy", "qz"]
    if kind == "csv":
        rows = [",".join(repr(float(value)) for value in row) for row in table]
        path.write_text("\ufeff# made by hand\n" + ", ".join(names) + "\n\n" + "\r\n".join(rows) + "\n", encoding="utf-8")
    else:
        np.savez(path, **dict(zip(names, table.T)))
    pose = motion(file=str(path))
    np.testing.assert_allclose(pose(1.0)[:3, 3], (0, 2, 1))
    np.testing.assert_allclose(pose(1.0)[:3, :3], turned((0, 0, math.pi / 4)), atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(read_poses(path)[2], axis=1), 1.0)


def test_file_without_rotations_keeps_the_axes_of_the_world(tmp_path):
    path = tmp_path / "poses.csv"
    path.write_text("y,time,x,z\n1,0,0,0\n2,1,0,0\n")
    times, positions, quaternions = read_poses(path)
    np.testing.assert_array_equal(times, (0, 1))
    np.testing.assert_array_equal(positions, [(0, 1, 0), (0, 2, 0)])
    np.testing.assert_array_equal(quaternions, [(1, 0, 0, 0)] * 2)


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("", None, "is empty"),
        ("time,x,y\n0,0,0\n", 1, "has no column z"),
        ("time,x,y,z,qw\n0,0,0,0,1\n", 1, "qx, qy, qz"),
        ("tim,x,y,z\n0,0,0,0\n", 1, "did you mean 'time'"),
        ("time,x,x,z\n0,0,0,0\n", 1, "twice"),
        ("time,x,y,z\n", None, "no poses"),
        ("time,x,y,z\n0,0,0,0\n\n1,0,0\n", 4, "3 values"),
        ("time,x,y,z\n0,0,up,0\n", 2, "not a number: 'up'"),
        ("# c\ntime,x,y,z\n0,0,0,0\n0,0,0,0\n", 4, "times must increase"),
        ("time,x,y,z\n0,0,nan,0\n", 2, "not finite"),
        ("time,x,y,z,qw,qx,qy,qz\n0,0,0,0,0,0,0,0\n", 2, "quaternion of pose 1 is zero"),
    ],
)
def test_wrong_pose_files(tmp_path, text, line, words):
    path = tmp_path / "poses.csv"
    path.write_text(text)
    with pytest.raises(SceneError) as error:
        read_poses(path)
    (problem,) = error.value.problems
    assert problem.file == str(path) and problem.line == line
    assert words in str(problem)


def test_wrong_npz(tmp_path):
    path = tmp_path / "poses.npz"
    path.write_bytes(b"nonsense")
    with pytest.raises(SceneError, match="not an NPZ file"):
        read_poses(path)
    np.savez(path, time=np.zeros(2), x=np.zeros(3))
    with pytest.raises(SceneError, match="one length"):
        read_poses(path)
    with pytest.raises(SceneError, match="cannot be read"):
        read_poses(tmp_path / "none.npz")
    np.savez(path, time=np.zeros(2))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 127  # version of ZIP that is needed
    path.write_bytes(content)
    with pytest.raises(SceneError, match="not an NPZ file"):
        read_poses(path)


def test_all_notations_of_a_rotation_agree():
    axis, degrees = np.array([1.0, -2.0, 0.5]), 77.0
    rotation = Rotation.from_rotvec(np.radians(degrees) * axis / np.linalg.norm(axis))
    x, y, z, w = 3.0 * rotation.as_quat()
    notations = [
        {"axis_angle": {"axis": axis, "degrees": degrees}},
        {"quaternion": (w, x, y, z)},
        {"matrix": rotation.as_matrix()},
        {"matrix": np.round(rotation.as_matrix(), 6)},
        {"euler": {"order": "xyz", "degrees": rotation.as_euler("xyz", degrees=True)}},
        {"euler": {"order": "ZXZ", "degrees": rotation.as_euler("ZXZ", degrees=True)}},
    ]
    for notation in notations:
        matrix = rotation_matrix(Orientation(**notation))
        np.testing.assert_allclose(matrix, rotation.as_matrix(), atol=2e-6 if notation is notations[3] else 1e-14)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(rotation_matrix(Orientation(euler={"degrees": (0, 0, 90)}))[:, 0], (0, 1, 0), atol=1e-15)
    np.testing.assert_array_equal(rotation_matrix(Orientation()), np.eye(3))
