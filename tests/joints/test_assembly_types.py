"""Assembly of all joint types, and of loops with closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import frame, joint_of

import abd
from abd.joints.closure.assembly import assemble
from abd.joints.closure.redundancy import analyse
from abd.joints.coordinates.transform import transform
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import rigid_rows, rigid_states, single_clusters
from abd.joints.types import TYPES
from abd.model import WORLD, Joint, affine_matrices

BODY = {"proxy": True, "mass": 1.0, "density": 1.0, "center_of_mass": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
def bodies_with(joints: list[Joint], count: int = 2) -> abd.model.Model:
    scene = abd.Scene()
    for k in range(count):
        scene.add_body(f"body{k}", position=(k, 0.0, 0.0), **BODY)
    return replace(scene.compile(), joints=joints)


def two_of(kind: str) -> abd.model.Model:
    """Two bodies on a chain of two joints of a type, with frames at random."""
    rng = np.random.default_rng(11)
    return bodies_with([joint_of(kind, rng, ends, name) for name, ends in (("first", (WORLD, 0)), ("second", (0, 1)))])


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_type_is_closed_and_set(kind):
    model = two_of(kind)
    start = assemble(model, model.bodies.q)
    assert start.converged and start.residual.max() <= 1e-12
    rng = np.random.default_rng(3)
    wanted = dict(zip(start.coordinates, rng.uniform(-1.0, 1.0, len(start.values)).tolist()))
    outcome = assemble(model, start.q, wanted)
    assert outcome.converged and outcome.residual.max() <= 1e-12 and outcome.num_free == len(wanted)
    np.testing.assert_allclose(outcome.values, list(wanted.values()), atol=1e-12)
    assert outcome.iterations == 0, "joints on no loop are set by a walk"
    for k, joint in enumerate(model.joints):
        T = transform(joint, np.array([value for (j, _), value in wanted.items() if j == k]))
        if T is not None:
            np.testing.assert_allclose(present_transform(joint, outcome.q), T, atol=1e-13)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_type_has_independent_rows_and_its_freedoms(kind):
    model = two_of(kind)
    q = assemble(model, model.bodies.q).q
    for found in analyse(model, q):
        assert found.rank == found.rows and found.redundant == [] and found.mobility == 12 - found.rows
        described = TYPES[kind].coordinates(model.joints[0])
        if transform(model.joints[0], np.zeros(len(described))) is not None:
            assert found.mobility == 2 * len(described)


@pytest.mark.parametrize("held", [("x",), ("y", "z")])
def test_world_axes_can_be_constrained_with_a_moving_parent(held):
    """Exudyn's constrainedAxes are components of a vector row, not functions of two frames."""
    rng = np.random.default_rng(5)
    ball = Joint("ball", "spherical", 0, 0, 1, frame(rng), frame(rng), parameters={"constrained": held})
    hinge = Joint("hinge", "hinge", 0, WORLD, 0, frame(rng), frame(rng))
    model = bodies_with([ball, hinge])
    outcome = assemble(model, model.bodies.q)
    ends = affine_matrices(outcome.q) @ [ball.parent_frame, ball.child_frame]
    apart = (ends[1] - ends[0])[:3, 3][["xyz".index(axis) for axis in held]]
    assert outcome.converged and np.abs(apart).max() <= 1e-12
    (found,) = analyse(model, outcome.q)
    assert found.rank == 5 + len(held)
    rows = rigid_rows(model, outcome.q)
    clusters, q = single_clusters(rows), rigid_states(outcome.q)
    J = (rows.jacobian(q) @ clusters.spread(q, rows.length)).toarray()
    for k in range(12):
        step = np.zeros(12)
        step[k] = 1e-6
        ends = [rows.values(clusters.move(q, s * step.reshape(2, 6), rows.length))[0] for s in (1.0, -1.0)]
        np.testing.assert_allclose(J[:, k], rows.scale * (ends[0] - ends[1]) / 2e-6, atol=1e-8)


def slider_crank() -> abd.Scene:
    """Crank of 1 m, rod of 3 m, slider along x; crank along x at first."""
    scene, z = abd.Scene(), (0.0, 0.0, 1.0)
    for name, x in (("crank", 0.5), ("rod", 2.5), ("block", 4.0)):
        scene.add_body(name, position=(x, 0.0, 0.0), **BODY)
    scene.add_hinge("shaft", abd.WORLD, "crank", anchor=(0.0, 0.0, 0.0), axis=z)
    scene.add_hinge("crankpin", "crank", "rod", anchor=(1.0, 0.0, 0.0), axis=z)
    scene.add_hinge("gudgeon", "rod", "block", anchor=(4.0, 0.0, 0.0), axis=z)
    scene.add_joint("slider", "guide", abd.WORLD, "block", anchor=(4.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0))
    return scene


@pytest.mark.parametrize("angle", [0.4, 2.0, -2.5])
def test_a_slider_crank_follows_its_crank(angle):
    model = slider_crank().compile()
    outcome = assemble(model, model.bodies.q, {(0, "theta"): angle})
    place = np.cos(angle) + np.sqrt(9.0 - np.sin(angle) ** 2)
    assert outcome.converged and outcome.status == ["free"] + ["dependent"] * 3
    assert outcome.values[3] == pytest.approx(place - 4.0, abs=1e-11)
    (found,) = analyse(model, outcome.q)
    assert (found.rows, found.rank, found.mobility) == (20, 17, 1)


def test_a_slider_crank_follows_its_slider_up_to_its_dead_centre():
    model = slider_crank().compile()
    start = assemble(model, model.bodies.q, {(0, "theta"): 0.5})
    outcome = assemble(model, start.q, {(3, "z"): -1.0}, start.values)
    theta = outcome.values[0]
    assert outcome.num_free == 1 and np.cos(theta) + np.sqrt(9.0 - np.sin(theta) ** 2) == pytest.approx(3.0, abs=1e-11)
    beyond = assemble(model, outcome.q, {(3, "z"): -2.5}, outcome.values)
    assert beyond.converged and beyond.num_limited == 1
    assert beyond.values[3] == pytest.approx(-2.0, abs=1e-5) and beyond.values[3] >= -2.0 - 1e-11


@pytest.mark.parametrize("angle", [0.3, 1.2, 2.6])
def test_cardan_joint_has_its_nonuniform_speed_ratio(angle):
    """``tan(b) = tan(a) / cos(bend)`` or its reciprocal, depending on the reference yoke."""
    bend = 0.6
    along = np.array([np.sin(bend), 0.0, np.cos(bend)])
    scene = abd.Scene()
    scene.add_body("input", position=(0.0, 0.0, -1.0), **BODY)
    scene.add_body("output", position=along, **BODY)
    scene.add_hinge("in", abd.WORLD, "input", anchor=(0.0, 0.0, -2.0), axis=(0.0, 0.0, 1.0))
    scene.add_hinge("out", abd.WORLD, "output", anchor=2.0 * along, axis=along)
    model = scene.compile()
    cross = np.eye(4)  # its z along an arm of the input's yoke, its y along one of the output's
    cross[:3, :3] = np.column_stack([(0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)])
    frames = [np.linalg.inv(affine_matrices(model.bodies.q)[body]) @ cross for body in range(2)]
    model = replace(model, joints=[*model.joints, Joint("cross", "universal", 0, 0, 1, *frames)])
    outcome = assemble(model, model.bodies.q, {(0, "theta"): angle})
    assert outcome.converged and outcome.num_free == 1
    ratios = (np.tan(angle) * np.cos(bend), np.tan(angle) / np.cos(bend))
    assert min(abs(np.tan(outcome.values[1]) - ratio) for ratio in ratios) < 1e-10
    (found,) = analyse(model, outcome.q)
    assert (found.rows, found.rank, found.mobility) == (14, 11, 1)


def arm_on_a_rope(length: float) -> abd.model.Model:
    """An arm of 1 m on a hinge, its tip on a rope from 1 m above the hinge."""
    scene = abd.Scene()
    scene.add_body("arm", position=(0.5, 0.0, 0.0), **BODY)
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0.0, 0.0, 0.0), axis=(0.0, -1.0, 0.0))
    model = scene.compile()
    high, tip = np.eye(4), np.eye(4)
    high[2, 3], tip[0, 3] = 1.0, 0.5
    rope = Joint("rope", "rope", 0, WORLD, 0, high, tip, parameters={"distance": length})
    return replace(model, joints=[*model.joints, rope])


def test_slack_rope_is_ignored():
    model = arm_on_a_rope(1.9)
    outcome = assemble(model, model.bodies.q, {(0, "theta"): -0.5})
    assert outcome.converged and outcome.iterations == 0 and outcome.num_free == 1


def test_a_taut_rope_stops_an_angle():
    """The tip is at most 1.9 m below the anchor: ``|tip - high| = 2 cos((pi/2 - |angle|)/2)``."""
    model = arm_on_a_rope(1.9)
    outcome = assemble(model, model.bodies.q, {(0, "theta"): -1.4})
    lowest = -(np.pi / 2.0 - 2.0 * np.arccos(0.95))
    assert outcome.converged and outcome.num_limited == 1
    assert outcome.values[0] == pytest.approx(lowest, abs=1e-5) and outcome.values[0] >= lowest - 1e-11


def test_profile_segment_is_that_of_the_solution():
    """A point that starts beyond a corner is assigned to the nearest segment."""
    profile = ((-1.0, 0.0), (0.0, 0.0), (1.0, 1.0))
    joint = Joint("ramp", "segmented_planar_connector", 0, WORLD, 0, np.eye(4), np.eye(4), parameters={"segments": profile})
    model = bodies_with([joint], 1)
    for start, end in (((0.8, 0.0, 0.0), (0.4, 0.0, 0.4)), ((-0.5, 0.3, 0.2), (-0.5, 0.3, 0.0))):
        q = model.bodies.q.copy()
        q[0, :3] = start
        outcome = assemble(model, q)
        assert outcome.converged
        np.testing.assert_allclose(outcome.q[0, :3], end, atol=1e-12)
