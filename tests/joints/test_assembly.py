"""Setting joint coordinates: exact along open chains, projection through loops, reported states."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import BODY

import abd
from abd.joint_model import Coupling, CouplingTerm
from abd.joints.closure.assembly import assemble
from abd.joints.closure.coordinate_setter import CoordinateSetter
from abd.joints.rows.change import settings_of, with_settings
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import rigid_states

LENGTHS = (1.10, 0.5, 1.20, 0.75)
THETA, GAMMA, PHI = 1.6707963267948966, -1.4591054166649482, 1.5397303602625536
"""RigidBodyDynamics.jl's four-bar: ground, crank, coupler, rocker [m]; its angles at the start [rad]."""


def plane(angle: float) -> np.ndarray:
    """Unit vector turned by an angle about -y from x."""
    return np.array([np.cos(angle), 0.0, np.sin(angle)])


def four_bar(**crank) -> abd.Scene:
    """The four-bar; `crank` are keys of the joint theta."""
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


def requested(outcome) -> list[str]:
    """Status of the requested coordinates."""
    return np.array(outcome.status)[outcome.requested].tolist()


def turned(angle: float) -> float:
    """The angle in (-pi, pi]."""
    return float(np.angle(np.exp(1j * angle)))


def test_angles_of_an_open_chain_are_set_and_kept():
    model = chain(20, seed=1).compile()
    setter, wanted = CoordinateSetter(model), np.random.default_rng(2).uniform(-9.0, 9.0, 20)
    first = setter.set_coordinates({(k, "theta"): value for k, value in enumerate(wanted)})
    assert first.converged and first.iterations == 0 and requested(first) == ["free"] * 20 and first.residual.max() <= 1e-12
    np.testing.assert_allclose(first.values, wanted, atol=1e-12)
    for joint, angle in zip(model.joints, wanted, strict=True):
        T = present_transform(joint, setter.q)
        assert turned(np.arctan2(T[1, 0], T[0, 0]) - angle) == pytest.approx(0.0, abs=1e-12)
    second = setter.set_coordinate("joint2", "theta", -1.0)
    np.testing.assert_allclose(second.values, [*wanted[:2], -1.0, *wanted[3:]], atol=1e-12)
    np.testing.assert_array_equal(second.q[:2], first.q[:2])
    assert np.flatnonzero(second.requested).tolist() == [2] and second.status == ["free"] * 20


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


@pytest.mark.parametrize(("parent", "child", "kind", "moves"), [
    (False, False, "dynamic", 1), (True, False, "dynamic", 1), (False, True, "dynamic", 0), (False, False, "static", 0),
])  # fmt: skip
def test_setting_a_coordinate_moves_the_side_without_ground(parent, child, kind, moves):
    scene = pair(parent, child)
    scene.body("right").kind = kind
    model = scene.compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 0.7})
    assert outcome.values[0] == pytest.approx(0.7, abs=1e-14) and outcome.iterations == 0
    moved = np.abs(outcome.q - model.bodies.q).max(axis=1) > 1e-3
    assert moved.tolist() == [moves == 0, moves == 1]


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
    assert sorted(requested(outcome)) == ["dependent", "free"]
    assert outcome.values[2] == pytest.approx(1.6, abs=1e-12)
    assert loop_angles(outcome.values[0])[1] == pytest.approx(1.6, abs=1e-11)
    assert not setter.requests


def test_loops_are_independent():
    """A four-bar on the coupler of another one moves rigidly with it, and a failed request does not change the other loop."""
    scene = ranged()
    corners = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 3.2], [1.0, 0.0, 2.0]])
    for k in range(3):
        scene.add_body(f"bar{k}", position=0.5 * (corners[k] + corners[k + 1]), **BODY)
    axis = {"axis": (0.0, -1.0, 0.0)}
    for k, (parent, child) in enumerate([("coupler", "bar0"), ("bar0", "bar1"), ("bar1", "bar2"), ("coupler", "bar2")]):
        scene.add_hinge(f"upper{k}", parent, child, anchor=corners[k], **axis)
    model = scene.compile()
    carried = assemble(model, model.bodies.q, {(0, "theta"): 1.5})
    assert carried.converged and requested(carried) == ["free"]
    np.testing.assert_allclose(carried.values[4:], 0.0, atol=1e-12)
    assert carried.status == ["free"] + ["dependent"] * 3 + ["free"] * 4
    both = assemble(model, model.bodies.q, {(0, "theta"): 3.0, (4, "theta"): 0.5})
    assert both.converged and (both.status[0], both.status[4]) == ("limited", "free")
    assert both.values[4] == pytest.approx(0.5, abs=1e-12) and both.residual.max() <= 1e-12
    phi = settings_of(model.joints[2], "theta")
    model.joints[2] = with_settings(model.joints[2], replace(phi, upper=PHI - 0.1))  # outside, and not requested
    np.testing.assert_allclose(assemble(model, model.bodies.q, {(4, "theta"): 0.5}).values[2], PHI, atol=1e-12)


def test_joints_that_cannot_be_closed_are_not_converged():
    model = four_bar().compile()
    model.joints[2].parent_frame[0, 3] += 5.0
    setter = CoordinateSetter(model)
    outcome = setter.set_coordinate("theta", 0, 1.0)
    assert not outcome.converged and outcome.status[0] == "unknown" and outcome.residual.max() > 0.5
    np.testing.assert_array_equal(setter.q, model.bodies.q)


@pytest.mark.parametrize(
    ("crank", "request_", "angles"),
    [({"range": (1.0, 2.0)}, (0, 3.0), (2.0, *loop_angles(2.0))), ({"locked": True}, (2, 1.7), (THETA, GAMMA, PHI))],
    ids=["range", "lock"],
)
def test_a_request_stops_at_the_range_or_lock_of_its_loop(crank, request_, angles):
    model = four_bar(**crank).compile()
    outcome = assemble(model, model.bodies.q, {(request_[0], "theta"): request_[1]})
    assert outcome.converged and outcome.status[0] == "limited"
    np.testing.assert_allclose(outcome.values[:3], angles, atol=1e-11)


def ranged() -> abd.Scene:
    scene = four_bar()
    scene.joint("phi").range = (PHI - 0.2, PHI + 0.1)
    return scene


def slider_crank() -> abd.Scene:
    """Crank of 1 m, rod of 3 m, slider along x; crank along x at first."""
    scene, z = abd.Scene(), (0.0, 0.0, 1.0)
    for name, x in (("crank", 0.5), ("rod", 2.5), ("block", 4.0)):
        scene.add_body(name, position=(x, 0.0, 0.0), **BODY)
    scene.add_hinge("shaft", abd.WORLD, "crank", anchor=(0.0, 0.0, 0.0), axis=z)
    scene.add_hinge("crankpin", "crank", "rod", anchor=(1.0, 0.0, 0.0), axis=z)
    scene.add_hinge("gudgeon", "rod", "block", anchor=(4.0, 0.0, 0.0), axis=z)
    scene.add_slider("guide", abd.WORLD, "block", anchor=(4.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0))
    return scene


@pytest.mark.parametrize("angle", [0.4, 2.0, -2.5])
def test_a_slider_crank_follows_its_crank_and_its_slider(angle):
    model = slider_crank().compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): angle})
    place = np.cos(angle) + np.sqrt(9.0 - np.sin(angle) ** 2)
    assert outcome.converged and outcome.status == ["free"] + ["dependent"] * 3
    assert outcome.values[3] == pytest.approx(place - 4.0, abs=1e-11)
    outcome = assemble(model, outcome.q, {(3, "z"): -1.0}, outcome.values)
    theta = outcome.values[0]
    assert requested(outcome) == ["free"] and np.cos(theta) + np.sqrt(9.0 - np.sin(theta) ** 2) == pytest.approx(3.0, abs=1e-11)


def roped() -> abd.Scene:
    """An arm whose tip is at most 1.9 m below the anchor: ``|tip - high| = 2 cos((pi/2 - |angle|)/2)``."""
    scene = abd.Scene()
    scene.add_body("arm", position=(0.5, 0.0, 0.0), **BODY)
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0.0, 0.0, 0.0), axis=(0.0, -1.0, 0.0))
    scene.add_rope("rope", abd.WORLD, "arm", 1.9, parent_anchor=(0.0, 0.0, 1.0), child_anchor=(0.5, 0.0, 0.0))
    return scene


SIDES = LENGTHS[0], LENGTHS[3], LENGTHS[1] + LENGTHS[2]
COLLINEAR = np.pi - np.arccos((SIDES[0] ** 2 + SIDES[1] ** 2 - SIDES[2] ** 2) / (2.0 * SIDES[0] * SIDES[1]))
LIMITS = {
    # name: scene, requests before, the request, the coordinate that stops, its bound, on which side it stops
    "range of a dependent angle": (ranged, [], {(0, "theta"): 3.0}, 2, PHI + 0.1, -1),
    "reach of a loop": (four_bar, [{(0, "theta"): 1.0}], {(2, "theta"): 0.0}, 2, COLLINEAR, 1),
    "dead centre": (slider_crank, [{(0, "theta"): 0.5}, {(3, "z"): -1.0}], {(3, "z"): -2.5}, 3, -2.0, 1),
    "taut rope": (roped, [{(0, "theta"): -0.5}], {(0, "theta"): -1.4}, 0, 2.0 * np.arccos(0.95) - np.pi / 2.0, 1),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_request_stops_at_a_limit(name):
    make, before, request, coordinate, bound, side = LIMITS[name]
    model = make().compile()
    outcome = assemble(model, model.bodies.q)
    for one in before:
        outcome = assemble(model, outcome.q, one, outcome.values)
        assert outcome.converged and requested(outcome) == ["free"]
    outcome = assemble(model, outcome.q, request, outcome.values)
    assert outcome.converged and requested(outcome) == ["limited"] and outcome.residual.max() <= 1e-12
    assert -1e-11 <= side * (outcome.values[coordinate] - bound) <= 1e-5


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
    assert outcome.converged and requested(outcome) == ["free"] * 2
    np.testing.assert_allclose(outcome.values, [2.0, -5.9, 0.4], atol=1e-12)
    assert outcome.status == ["free", "dependent", "free"]


def test_body_with_rotation_only_can_be_set():
    scene = pair(False, False)
    scene.body("left").fix = ["x", "y", "z", "rx", "ry"]
    model = scene.compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): 1.2})
    assert outcome.converged and outcome.values[0] == pytest.approx(1.2, abs=1e-12)
    np.testing.assert_allclose(outcome.q[0, :3], model.bodies.q[0, :3], atol=1e-15)
