"""Every joint type of `abd.joints.types.TYPES`: coordinates, constraints and their derivatives, at random admissible poses.

A type added to the list is tested here without a line; one that needs parameters gets them in `PARAMETERS`.
"""

import numpy as np
import pytest
from differences import differences
from joint_samples import PARAMETERS, RADII, SYMMETRIC
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.joint_model import Joint
from abd.joints.coordinates.configurations import project, transform
from abd.joints.measures.motions import turned
from abd.joints.rows.table import linearize, tabulate, twist_gradient, value_at, values
from abd.joints.types import TYPES
from abd.model import WORLD, affine_state
from cuda_kernels.shared.joints import TURNING

VARIANTS = {
    "universal xy": ("universal", {"axes": "xy"}),
    "skewed_universal xy": ("universal", {"axes": "xy", "skew": -0.6}),
    "gimbal xyz": ("gimbal", {"axes": "xyz"}),
    "ellipsoid after OpenSim": ("ellipsoid", {"radii": RADII, "open_sim": True, "alpha": -0.2}),
    "ellipsoid3 after OpenSim": ("ellipsoid3", {"radii": RADII, "open_sim": True}),
    "spherical with limits": ("spherical", {"max_tilt": 0.5, "max_rotation": (1.0, 0.5, 0.8)}),
    "spherical that resists": (
        "spherical",
        {"rotary_stiffness": 2.0, "rotary_damping": 0.3, "rotary_friction": 0.1, "rotary_armature": 0.2},
    ),
    "spherical, x and z of the world": ("spherical", {"constrained": ("x", "z")}),
    "unilateral plane": ("planar_connector", {"unilateral": True}),
    "general of the world": ("general", {"constrained": ("y", "rx", "ry"), "frame": "world"}),
    "bushing, six numbers": ("bushing", {"stiffness": (1.0, 2.0, 3.0, 0.0, 0.0, 1.0)}),
}
for free in ((), ("rx",), ("ry",), ("rz",), ("ry", "rz"), ("rx", "rz"), ("rx", "ry"), ("rx", "ry", "rz")):
    held = tuple(name for name in ("x", "y", "z", "rx", "ry", "rz") if name not in free)
    VARIANTS["general, free " + " ".join(free)] = ("general", {"constrained": held})
CASES = {name: (name, PARAMETERS.get(name, {})) for name in TYPES} | VARIANTS
FREEDOMS = {
    "spherical": 3, "fixed": 0, "hinge": 1, "pin": 3, "slider": 1, "prismatic": 1, "cylindrical": 2,
    "slotted_hinge": 2, "universal": 2, "skewed_universal": 2, "gimbal": 3, "planar": 3, "planar_translation": 2,
    "ellipsoid": 4, "ellipsoid3": 3, "free": 6, "fixed_axis": 5, "planar_connector": 5,
    "segmented_planar_connector": 5, "distance": 5, "rope": 6, "screw": 1, "general": 3, "bushing": 6, "spring": 6,
    "legacy_revolute": 1, "roll_pitch": 2, "spherical_rpy": 3, "spherical, x and z of the world": 4,
    "unilateral plane": 6, "general of the world": 3,
}  # fmt: skip


def pose(rng: np.random.Generator, reach: float = 1.0) -> np.ndarray:
    """A random rigid pose (4, 4)."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turned(rng.uniform(-1.5, 1.5, 3)), rng.uniform(-reach, reach, 3)
    return T


def joint_of(case: str, parent: int = WORLD, seed: int = 1) -> Joint:
    """A joint of a case between skew frames."""
    type, parameters = CASES[case]
    rng = np.random.default_rng(seed)
    child = parent + 1
    frames = pose(rng), pose(rng)
    return Joint("j", type, TYPES[type].UID, parent, child, *frames, length=0.4, parameters=parameters)


def has_pose(case: str) -> bool:
    joint = joint_of(case)
    return transform(joint, np.zeros(len(TYPES[joint.type].coordinates(joint)))) is not None


def admissible(case: str, rng: np.random.Generator) -> np.ndarray:
    """A random T_CD that the joint admits."""
    joint = joint_of(case)
    count = len(TYPES[joint.type].coordinates(joint))
    return transform(joint, rng.uniform(-1.0, 1.0, count)) if has_pose(case) else project(joint, pose(rng))


def bilateral(joint: Joint, T: np.ndarray) -> list:
    """Constraint measures of the type, of the piece at T where it has several."""
    return TYPES[joint.type].constraints_at(joint, T)


OF_THE_WORLD = ("spherical, x and z of the world", "general of the world")
DESCRIBED = [case for case in CASES if has_pose(case)]


@pytest.mark.parametrize("case", DESCRIBED)
def test_coordinates_invert_the_transform_over_many_turns(case):
    """Single-turn angles stay within their branch; whole turns are counted."""
    joint, rng = joint_of(case), np.random.default_rng(3)
    coordinates = TYPES[joint.type].coordinates(joint)
    for _ in range(30):
        q = rng.uniform(-1.0, 1.0, len(coordinates))
        assert value_at(coordinates, transform(joint, q)) == pytest.approx(q, abs=1e-12)
        turns = np.array([2.0 * np.pi * rng.integers(-3, 4) * (one.kind in TURNING) for one in coordinates])
        if joint.type == "screw":
            turns[:] = 0.0
        read = value_at(coordinates, transform(joint, q + turns), q + turns + rng.uniform(-2.0, 2.0, len(q)))
        assert read == pytest.approx(q + turns, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_constraints_vanish_along_free_motions_and_have_the_rank_of_the_type(case):
    joint, rng = joint_of(case), np.random.default_rng(4)
    kind = TYPES[joint.type]
    for _ in range(30):
        T = admissible(case, rng)
        held = bilateral(joint, T)
        J = twist_gradient(held, T) if held else np.zeros((0, 6))
        if not kind.FOLLOWS_POSE:
            held = held + [one for one in kind.measured(joint) if not one.unilateral]
        assert np.abs(value_at(held, T)).max(initial=0.0) < 1e-12
        for row in (one for one in kind.combined(joint) if one.stiffness is None):
            assert abs(row.weights @ value_at(list(row.measures), T) - row.rest) < 1e-12
            J = np.vstack([J, row.weights @ twist_gradient(list(row.measures), T)])
        assert np.linalg.matrix_rank(J, tol=1e-6) == len(J)
        assert case not in FREEDOMS or len(J) == 6 - FREEDOMS[case]
        assert case not in DESCRIBED or len(J) == 6 - len(kind.coordinates(joint))


@pytest.mark.parametrize("case", [case for case in CASES if case not in OF_THE_WORLD])
def test_derivatives_by_both_states_are_those_of_central_differences(case):
    joint, rng = joint_of(case, parent=0), np.random.default_rng(8)
    kind = TYPES[joint.type]
    measures = kind.measured(joint) + kind.constraints(joint) + kind.coordinates(joint)
    measures += [one for row in kind.combined(joint) for one in row.measures]
    if not measures:
        return
    table = tabulate([joint], [(0, one) for one in measures])
    q = affine_state(np.stack([pose(rng, 0.5), pose(rng, 0.5)])) + rng.uniform(-0.05, 0.05, (2, 12))
    _, by_child, by_parent = linearize(table, q)
    slopes = differences(lambda q: values(table, q), q, 1e-6)
    np.testing.assert_allclose(np.hstack([by_parent, by_child]).T, slopes, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("case", OF_THE_WORLD)
def test_axes_of_the_world_are_linear_rows_and_have_no_measures_while_the_parent_moves(case):
    joint = joint_of(case, parent=0)
    kind = TYPES[joint.type]
    (row,) = kind.rows(joint)
    assert row.mask == ((1.0, 0.0, 1.0) if joint.type == "spherical" else (0.0, 1.0, 0.0))
    assert not [one for one in kind.coordinates(joint) + kind.measured(joint) if not one.rotary]
    with pytest.raises(SceneError, match="world"):
        kind.constraints(joint)


@pytest.mark.parametrize("case", CASES)
def test_projection_ends_in_an_admissible_pose_and_keeps_one(case):
    joint, rng = joint_of(case), np.random.default_rng(9)
    T = admissible(case, rng)
    assert project(joint, T) == pytest.approx(T, abs=1e-12)
    near = T.copy()
    near[:3, :3], near[:3, 3] = turned(rng.uniform(-0.1, 0.1, 3)) @ T[:3, :3], T[:3, 3] + rng.uniform(-0.05, 0.05, 3)
    G = project(joint, near)
    assert np.abs(value_at(bilateral(joint, G), G)).max(initial=0.0) < 1e-12
    assert np.abs(G - near).max() < 0.5


@pytest.mark.parametrize("skew", [0.0, 0.4, -0.7])
def test_skewed_universal_has_the_printed_matrix(skew):
    """The matrix is that of joints.md, section 2, ZY."""
    joint = Joint("j", "universal", 0, WORLD, 0, np.eye(4), np.eye(4), parameters={"skew": skew})
    r, p = 0.7, -1.1
    cr, sr, cp, sp, ca, sa, vp = np.cos(r), np.sin(r), np.cos(p), np.sin(p), np.cos(skew), np.sin(skew), 1 - np.cos(p)
    b = ca**2 + sa**2 * cp
    printed = [
        [cr * cp - sr * sa * sp, -sr * b - sa * cr * sp, ca * (cr * sp - sa * sr * vp)],
        [sr * cp + cr * sa * sp, cr * b - sa * sr * sp, ca * (sr * sp + sa * cr * vp)],
        [-ca * sp, ca * sa * vp, sa**2 + ca**2 * cp],
    ]
    assert transform(joint, [r, p])[:3, :3] == pytest.approx(np.array(printed), abs=1e-15)


EULER = {
    # type: parameters, intrinsic axes of its angles, whether it turns the parent instead
    "hinge": ({}, "Z", False), "legacy_revolute": ({}, "Z", True),
    "universal": ({}, "ZY", False), "roll_pitch": ({}, "ZY", True), "universal xy": ({"axes": "xy"}, "XY", False),
    "gimbal": ({}, "ZYX", False), "gimbal xyz": ({"axes": "xyz"}, "XYZ", False),
    "spherical_rpy": ({}, "ZYX", True), "bushing": ({"stiffness": 1.0}, "XYZ", False),
}  # fmt: skip


@pytest.mark.parametrize("case", EULER)
def test_angles_are_those_of_scipy(case):
    parameters, axes, is_inverse = EULER[case]
    joint = Joint("j", case.split()[0], 0, WORLD, 0, np.eye(4), np.eye(4), parameters=parameters)
    angles = [0.7, -1.1, 0.4][: len(axes)]
    turn = Rotation.from_euler(axes, angles if len(axes) > 1 else angles[0])
    found = transform(joint, [0.0] * (3 if case == "bushing" else 0) + angles)[:3, :3]
    np.testing.assert_allclose(found, (turn.inv() if is_inverse else turn).as_matrix(), atol=1e-15)


@pytest.mark.parametrize("case", ["universal", "universal xy", "skewed_universal", "fixed_axis", "roll_pitch"])
def test_no_pitch_locks_the_angles_of_a_universal_joint(case):
    joint = joint_of(case)
    coordinates = TYPES[joint.type].coordinates(joint)
    for pitch in (-2.5, -np.pi / 2, np.pi / 2, 3.0):
        q = np.append(np.full(len(coordinates) - 1, 0.3), pitch)
        T = transform(joint, q)
        assert value_at(coordinates, T) == pytest.approx(q, abs=1e-12)
        J = twist_gradient(TYPES[joint.type].constraints(joint), T)
        assert np.linalg.matrix_rank(J, tol=1e-6) == len(J)


def test_ellipsoid_rows_and_projection_are_finite_at_a_pole():
    joint = joint_of("ellipsoid")
    T = np.eye(4)
    T[:3, 3] = (RADII[0], 0.0, 0.0)
    assert np.isfinite(value_at(TYPES["ellipsoid"].constraints(joint), T)).all()
    with np.errstate(all="raise"):
        assert np.isfinite(twist_gradient(TYPES["ellipsoid"].constraints(joint)[:1], T)).all()
    zero = transform(joint, np.zeros(4))
    assert zero[:3, 3] == pytest.approx((0.0, 0.0, RADII[2])) and zero[:3, :3] == pytest.approx(np.eye(3))


def test_gaps_of_a_spherical_joint_are_remaining_tilt_and_rotation():
    joint = joint_of("spherical with limits")
    tilt, rotation = TYPES["spherical"].measured(joint)
    assert tilt.unilateral and rotation.unilateral
    T = np.eye(4)
    T[:3, :3] = turned(np.array([0.3, 0.0, 0.0]))
    assert value_at([tilt, rotation], T) == pytest.approx((0.2, 0.7), abs=1e-12)
    T[:3, :3] = turned(np.array([0.0, 0.0, 2.0]))
    assert value_at([tilt, rotation], T) == pytest.approx((0.5, 0.8 - 2.0), abs=1e-12)


def test_segments_follow_the_pose_and_extend_beyond_their_ends():
    joint, kind = joint_of("segmented_planar_connector"), TYPES["segmented_planar_connector"]
    for x, z, distance in ((0.5, 0.3, 0.3), (0.5, -0.2, -0.2), (-2.0, 1.0, 0.0), (3.0, 2.0, 0.0), (3.0, 2.5, 0.5**1.5)):
        T = np.eye(4)
        T[:3, 3] = (x, 7.0, z)
        assert value_at(kind.at_pose(joint, T), T) == pytest.approx([distance], abs=1e-12)
    assert kind.FOLLOWS_POSE


def test_bushing_springs_have_the_energy_of_the_matrix():
    rng = np.random.default_rng(10)
    root = rng.normal(size=(6, 4)) * np.array([1e3, 1e3, 1e3, 1.0, 1.0, 1.0])[:, None]
    K, D, rest = root @ root.T, SYMMETRIC, rng.uniform(-0.2, 0.2, 6)
    parameters = {"stiffness": K, "damping": D, "rest": rest}
    joint = Joint("j", "bushing", 0, WORLD, 0, np.eye(4), np.eye(4), parameters=parameters)
    e = rng.uniform(-0.5, 0.5, 6)
    springs = TYPES["bushing"].combined(joint)
    T = transform(joint, e)
    x = np.array([np.dot(one.weights, value_at(list(one.measures), T)) - one.rest for one in springs])
    stiffness, damping = np.array([(one.stiffness, one.damping) for one in springs]).T
    assert stiffness @ x**2 == pytest.approx((e - rest) @ K @ (e - rest), rel=1e-9)
    assert damping @ x**2 == pytest.approx((e - rest) @ D @ (e - rest), rel=1e-9)
    assert np.count_nonzero(stiffness) == 4


@pytest.mark.parametrize(
    ("type", "parameters", "key"),
    [
        ("universal", {"axes": "zx"}, "axes"),
        ("universal", {"skew": np.pi / 2}, "skew"),
        ("gimbal", {"axes": "zxz"}, "axes"),
        ("ellipsoid", {"radii": (1.0, -1.0, 1.0)}, "radii"),
        ("segmented_planar_connector", {"segments": ((0.0, 0.0), (0.0, 0.0))}, "segments"),
        ("bushing", {"stiffness": np.triu(np.ones((6, 6)))}, "stiffness"),
        ("bushing", {"stiffness": 2.0 * np.ones((6, 6)) - np.eye(6)}, "stiffness"),
    ],
)
def test_invalid_parameters_are_named(type, parameters, key):
    joint = Joint("elbow", type, 0, WORLD, 0, np.eye(4), np.eye(4), parameters=parameters)
    kind = TYPES[type]
    with pytest.raises(SceneError, match=f"'elbow', {key}"):
        kind.combined(joint) if type == "bushing" else (kind.measured(joint), kind.coordinates(joint))
