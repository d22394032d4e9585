"""Setting joint coordinates: exact along open chains, projection through loops, reported states."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import BODY

import abd
from abd.errors import SceneError
from abd.joints.closure.assembly import assemble
from abd.joints.closure.coordinate_setter import CoordinateSetter
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import rigid_rows, rigid_states, single_clusters
from abd.model import Coupling, CouplingTerm

LENGTHS = (1.10, 0.5, 1.20, 0.75)
THETA, GAMMA, PHI = 1.6707963267948966, -1.4591054166649482, 1.5397303602625536
"""RigidBodyDynamics.jl's four-bar: ground, crank, coupler, rocker [m]; its angles at the start [rad]."""


def plane(angle: float) -> np.ndarray:
    """Unit vector turned by an angle about -y from x."""
    return np.array([np.cos(angle), 0.0, np.sin(angle)])


def four_bar(hanging: int = 0, **crank) -> abd.Scene:
    """The four-bar, and pendulums that hang in a row on its coupler; `crank` are keys of the joint theta."""
    l0, l1, l2, _ = LENGTHS
    b, d = l1 * plane(THETA), np.array([l0, 0.0, 0.0])
    c = b + l2 * plane(THETA + GAMMA)
    scene = abd.Scene()
    scene.add_body("crank", position=0.5 * b, **BODY)
    scene.add_body("coupler", position=0.5 * (b + c), **BODY)
    scene.add_body("rocker", position=0.5 * (c + d), **BODY)
    axis = {"axis": (0.0, -1.0, 0.0)}
    scene.add_hinge("theta", abd.WORLD, "crank", anchor=(0.0, 0.0, 0.0), initial=THETA, **axis, **crank)
    scene.add_hinge("gamma", "crank", "coupler", anchor=b, initial=GAMMA, **axis)
    scene.add_hinge("phi", abd.WORLD, "rocker", anchor=d, initial=PHI, **axis)
    scene.add_hinge("closing", "coupler", "rocker", anchor=c, initial=PHI - THETA - GAMMA, **axis)
    above = "coupler"
    for k in range(hanging):
        anchor = c - (k, 0.0, 1.0)
        scene.add_body(f"bob{k}", position=anchor - (0.0, 0.0, 0.5), **BODY)
        scene.add_hinge(f"pivot{k}", above, f"bob{k}", anchor=anchor, axis=(1.0, 1.0 + k, 0.0))
        above = f"bob{k}"
    return scene


def loop_angles(theta: float) -> tuple[float, float]:
    """gamma and phi of the four-bar at a crank angle, on the branch of the start."""
    l0, l1, l2, l3 = LENGTHS
    b, d = l1 * np.array([np.cos(theta), np.sin(theta)]), np.array([l0, 0.0])
    across = d - b
    gap = np.hypot(*across)
    along = (l2**2 - l3**2 + gap**2) / (2.0 * gap)
    c = b + along * across / gap + np.sqrt(l2**2 - along**2) * np.array([-across[1], across[0]]) / gap
    return np.arctan2(*(c - b)[::-1]) - theta, np.arctan2(*(c - d)[::-1])


def chain(count: int, seed: int) -> abd.Scene:
    """Hinges about random axes, one after the other, from the world."""
    rng = np.random.default_rng(seed)
    scene, above = abd.Scene(), abd.WORLD
    for k in range(count):
        scene.add_body(f"link{k}", position=(k + 0.5, 0.0, 0.0), **BODY)
        scene.add_hinge(f"joint{k}", above, f"link{k}", anchor=(k, 0.0, 0.0), axis=rng.standard_normal(3))
        above = f"link{k}"
    return scene


def turned(angle: float) -> float:
    """The angle in (-pi, pi]."""
    return float(np.angle(np.exp(1j * angle)))


def test_rows_by_twists_equal_finite_differences():
    model = four_bar(2).compile()
    rows, rng = rigid_rows(model, model.bodies.q), np.random.default_rng(5)
    clusters = single_clusters(rows)
    q = clusters.move(rigid_states(model.bodies.q), rng.uniform(-0.4, 0.4, (clusters.count, 6)), rows.length)
    J = (rows.jacobian(q) @ clusters.spread(q, rows.length)).toarray()
    near = rows.values(q)[1]
    for k in range(6 * clusters.count):
        step = np.zeros(6 * clusters.count)
        step[k] = 1e-6
        ahead, behind = (clusters.move(q, s * step.reshape(-1, 6), rows.length) for s in (1.0, -1.0))
        slope = (rows.values(ahead, near)[0] - rows.values(behind, near)[0]) / 2e-6
        np.testing.assert_allclose(J[:, k], rows.scale * slope, atol=1e-8)


def test_angles_of_an_open_chain_round_trip():
    model = chain(20, seed=1).compile()
    setter, wanted = CoordinateSetter(model), np.random.default_rng(2).uniform(-9.0, 9.0, 20)
    outcome = setter.set_coordinates({(k, "theta"): value for k, value in enumerate(wanted)})
    assert outcome.converged and outcome.iterations == 0 and outcome.num_free == 20
    np.testing.assert_allclose(outcome.values, wanted, atol=1e-12)
    assert outcome.residual.max() <= 1e-12
    for joint, angle in zip(model.joints, wanted, strict=True):
        T = present_transform(joint, setter.q)
        assert turned(np.arctan2(T[1, 0], T[0, 0]) - angle) == pytest.approx(0.0, abs=1e-12)


def test_setting_an_angle_keeps_the_others_and_the_preceding_bodies():
    model = chain(5, seed=3).compile()
    setter = CoordinateSetter(model)
    first = setter.set_coordinates({(k, 0): 0.3 * k for k in range(5)})
    second = setter.set_coordinate("joint2", "theta", -1.0)
    np.testing.assert_allclose(second.values, [0.0, 0.3, -1.0, 0.9, 1.2], atol=1e-13)
    np.testing.assert_array_equal(second.q[:2], first.q[:2])
    assert second.requested.tolist() == [False, False, True, False, False]
    assert second.status == ["free"] * 5


def pair(parent_grounded: bool, child_grounded: bool) -> abd.Scene:
    """Two bodies with a hinge between them; each may hang on the world."""
    scene = abd.Scene()
    scene.add_body("left", position=(0.0, 0.0, 0.0), **BODY)
    scene.add_body("right", position=(1.0, 0.0, 0.0), **BODY)
    scene.add_hinge("between", "left", "right", anchor=(0.5, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    if parent_grounded:
        scene.add_hinge("left foot", abd.WORLD, "left", anchor=(-0.5, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    if child_grounded:
        scene.add_hinge("right foot", abd.WORLD, "right", anchor=(1.5, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    return scene


@pytest.mark.parametrize(("parent", "child", "moves"), [(False, False, 1), (True, False, 1), (False, True, 0)])
def test_setting_a_coordinate_moves_the_side_without_ground(parent, child, moves):
    model = pair(parent, child).compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 0.7})
    assert outcome.values[0] == pytest.approx(0.7, abs=1e-14) and outcome.iterations == 0
    moved = np.abs(outcome.q - model.bodies.q).max(axis=1) > 1e-3
    assert moved.tolist() == [moves == 0, moves == 1]


def test_static_and_kinematic_bodies_are_ground():
    scene = pair(False, False)
    scene.body("right").kind = "static"
    model = scene.compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 0.7})
    np.testing.assert_array_equal(outcome.q[1], model.bodies.q[1])
    assert outcome.values[0] == pytest.approx(0.7, abs=1e-14)


def test_strain_is_removed_and_open_joints_are_closed():
    model = chain(4, seed=4).compile()
    rng = np.random.default_rng(0)
    outcome = assemble(model, model.bodies.q + 0.05 * rng.standard_normal(model.bodies.q.shape))
    A = outcome.q[:, 3:].reshape(-1, 3, 3)
    np.testing.assert_allclose(A @ A.transpose(0, 2, 1), np.broadcast_to(np.eye(3), A.shape), atol=1e-14)
    assert outcome.converged and outcome.residual.max() <= 1e-12


@pytest.mark.parametrize("theta", [THETA + 1e-3, 0.3, 2.9, -2.0, THETA + 4.0 * np.pi])
def test_the_angles_of_a_four_bar_follow_its_crank(theta):
    """The crank can turn fully (0.5 + 1.2 < 1.1 + 0.75)."""
    model = four_bar().compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): theta})
    assert outcome.converged and outcome.residual.max() <= 1e-12
    assert outcome.values[0] == pytest.approx(theta, abs=1e-12)
    gamma, phi = loop_angles(theta)
    assert turned(outcome.values[1] - gamma) == pytest.approx(0.0, abs=1e-11)
    assert turned(outcome.values[2] - phi) == pytest.approx(0.0, abs=1e-11)
    assert outcome.status == ["free", "dependent", "dependent", "dependent"]


def test_first_of_two_dependent_requests_has_priority():
    model = four_bar().compile()
    setter = CoordinateSetter(model)
    setter.request("phi", "theta", 1.6)
    setter.request("theta", "theta", 1.9)
    outcome = setter.solve()
    assert (outcome.num_free, outcome.num_dependent, outcome.num_limited) == (1, 1, 0)
    assert outcome.values[2] == pytest.approx(1.6, abs=1e-12)
    assert loop_angles(outcome.values[0])[1] == pytest.approx(1.6, abs=1e-11)
    assert not setter.requests


def test_bodies_attached_to_a_loop_keep_their_coordinates():
    model = four_bar(hanging=3).compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 2.5, (5, "theta"): -0.8})
    assert outcome.converged and outcome.num_free == 2
    np.testing.assert_allclose(outcome.values[4:], [0.0, -0.8, 0.0], atol=1e-12)
    assert outcome.values[2] == pytest.approx(loop_angles(2.5)[1], abs=1e-11)
    assert outcome.status[4:] == ["free"] * 3


def test_loops_are_independent():
    """A four-bar on the coupler of another one moves rigidly with it, and a failed request does not change the other loop."""
    scene = four_bar()
    scene.joint("phi").range = (PHI - 0.2, PHI + 0.1)
    corners = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 3.2], [1.0, 0.0, 2.0]])
    for k in range(3):
        scene.add_body(f"bar{k}", position=0.5 * (corners[k] + corners[k + 1]), **BODY)
    axis = {"axis": (0.0, -1.0, 0.0)}
    for k, (parent, child) in enumerate([("coupler", "bar0"), ("bar0", "bar1"), ("bar1", "bar2"), ("coupler", "bar2")]):
        scene.add_hinge(f"upper{k}", parent, child, anchor=corners[k], **axis)
    model = scene.compile()
    carried = assemble(model, model.bodies.q, {(0, "theta"): 1.5})
    assert carried.converged and carried.num_free == 1
    np.testing.assert_allclose(carried.values[4:], 0.0, atol=1e-12)
    assert carried.status == ["free"] + ["dependent"] * 3 + ["free"] * 4
    both = assemble(model, model.bodies.q, {(0, "theta"): 3.0, (4, "theta"): 0.5})
    assert both.converged and (both.status[0], both.status[4]) == ("limited", "free")
    assert both.values[4] == pytest.approx(0.5, abs=1e-12) and both.residual.max() <= 1e-12


def test_joints_that_cannot_be_closed_are_not_converged():
    model = four_bar().compile()
    joints = list(model.joints)
    frame = joints[2].parent_frame.copy()
    frame[0, 3] += 5.0
    joints[2] = replace(joints[2], parent_frame=frame)
    model = replace(model, joints=joints)
    setter = CoordinateSetter(model)
    outcome = setter.set_coordinate("theta", 0, 1.0)
    assert not outcome.converged and outcome.status[0] == "unknown" and outcome.residual.max() > 0.5
    np.testing.assert_array_equal(setter.q, model.bodies.q)


def test_inactive_joint_is_not_closed():
    model = four_bar().compile()
    joints = [*model.joints[:3], replace(model.joints[3], active=False)]
    outcome = assemble(replace(model, joints=joints), model.bodies.q, {(0, "theta"): 0.0, (2, "theta"): 3.0})
    assert outcome.iterations == 0 and outcome.num_free == 2
    np.testing.assert_allclose(outcome.values[[0, 2]], [0.0, 3.0], atol=1e-12)


@pytest.mark.parametrize(
    ("crank", "request_", "angles"),
    [({"range": (1.0, 2.0)}, (0, 3.0), (2.0, *loop_angles(2.0))), ({"locked": True}, (2, 1.7), (THETA, GAMMA, PHI))],
    ids=["range", "lock"],
)
def test_a_request_stops_at_the_range_or_lock_of_its_loop(crank, request_, angles):
    model = four_bar(**crank).compile()
    outcome = assemble(model, model.bodies.q, {(request_[0], "theta"): request_[1]})
    assert outcome.converged and outcome.status[0] == "limited" and outcome.num_free == 0
    np.testing.assert_allclose(outcome.values[:3], angles, atol=1e-11)


def test_the_range_of_a_dependent_angle_stops_a_request():
    scene = four_bar()
    scene.joint("phi").range = (PHI - 0.2, PHI + 0.1)
    model = scene.compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 3.0})
    assert outcome.converged and outcome.status[0] == "limited" and outcome.residual.max() <= 1e-12
    assert outcome.values[2] == pytest.approx(PHI + 0.1, abs=1e-5) and outcome.values[2] <= PHI + 0.1 + 1e-11


def test_rocker_stops_at_the_reach_of_its_loop():
    """At the smallest angle crank and coupler are collinear."""
    l0, l1, l2, l3 = LENGTHS
    least = np.pi - np.arccos((l0**2 + l3**2 - (l1 + l2) ** 2) / (2.0 * l0 * l3))
    model = four_bar().compile()
    start = assemble(model, model.bodies.q, {(0, "theta"): 1.0})
    outcome = assemble(model, start.q, {(2, "theta"): 0.0}, start.values)
    assert outcome.converged and outcome.status[2] == "limited"
    assert least - 1e-11 <= outcome.values[2] <= least + 1e-5


def test_reversed_axes_are_detected_and_corrected():
    """A hinge with opposite axes also satisfies rx = ry = 0."""
    model = four_bar().compile()
    q = rigid_states(model.bodies.q)
    flip = np.diag([-1.0, -1.0, 1.0])
    rocker = 2
    frame = model.joints[2].child_frame
    A = q[rocker, 3:].reshape(3, 3) @ frame[:3, :3] @ flip[[2, 1, 0]][:, [2, 1, 0]] @ frame[:3, :3].T
    anchor = q[rocker, :3] + q[rocker, 3:].reshape(3, 3) @ frame[:3, 3]
    q[rocker, 3:], q[rocker, :3] = A.ravel(), anchor - A @ frame[:3, 3]
    outcome = assemble(model, q)
    assert outcome.converged and outcome.residual.max() <= 1e-12
    for joint in model.joints:
        assert present_transform(joint, outcome.q)[2, 2] == pytest.approx(1.0, abs=1e-12)


def test_a_gear_turns_with_the_wheel_that_is_set():
    scene = abd.Scene()
    for k in range(2):
        scene.add_body(f"wheel{k}", position=(2.0 * k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"axle{k}", abd.WORLD, f"wheel{k}", anchor=(2.0 * k, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    scene.add_body("arm", position=(3.0, 0.0, 0.0), **BODY)
    scene.add_hinge("elbow", "wheel1", "arm", anchor=(2.5, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    gear = Coupling("gear", 1, "theta", (CouplingTerm(0, "theta", (0.1, -3.0)),))
    model = replace(scene.compile(), couplings=[gear])
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 2.0, (2, "theta"): 0.4})
    assert outcome.converged and outcome.num_free == 2
    np.testing.assert_allclose(outcome.values, [2.0, -5.9, 0.4], atol=1e-12)
    assert outcome.status == ["free", "dependent", "free"]


def test_body_with_rotation_only_can_be_set():
    model = pair(False, True).compile()
    bodies = model.bodies
    fixed = np.array([[False] * 3, [True] * 3])
    axis, turns = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), np.array([1, 3], dtype=np.int32)
    bodies = replace(bodies, free_translation=fixed, rotation_axis=axis, free_rotation=turns)
    model = replace(model, bodies=bodies, joints=model.joints[:1])
    outcome = assemble(model, bodies.q, {(0, "theta"): 1.2})
    assert outcome.converged and outcome.values[0] == pytest.approx(1.2, abs=1e-12)
    np.testing.assert_allclose(outcome.q[0, :3], bodies.q[0, :3], atol=1e-15)


def test_setter_takes_degrees_and_clears_requests():
    setter = CoordinateSetter(chain(2, seed=0).compile())
    setter.request_deg("joint0", "theta", 90.0)
    setter.clear_requests()
    outcome = setter.set_coordinates_deg({("joint1", 0): 270.0})
    np.testing.assert_allclose(outcome.values, [0.0, 1.5 * np.pi], atol=1e-13)


@pytest.mark.parametrize(
    ("joint", "coordinate", "value", "message"),
    [
        ("joint9", "theta", 0.0, "no joint 'joint9' -> there are joint0, joint1"),
        ("joint0", "phi", 0.0, "no coordinate of joint 'joint0' 'phi' -> there are theta"),
        ("joint0", 1, 0.0, "no coordinate of joint 'joint0' '1'"),
        (5, 0, 0.0, "no joint '5'"),
        ("joint0", 0, np.nan, "finite number"),
    ],
)
def test_setter_refuses_unknown_names(joint, coordinate, value, message):
    setter = CoordinateSetter(chain(2, seed=0).compile())
    with pytest.raises(SceneError, match=message):
        setter.request(joint, coordinate, value)
