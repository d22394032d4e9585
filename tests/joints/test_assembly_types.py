"""Assembly of all joint types and of loops with closed forms; redundant rows, mobility, loops that cannot be closed."""

from dataclasses import replace

import numpy as np
import pytest
from joint_samples import BODY, frame, joint_of
from reference_cases import windows

import abd
from abd.errors import SceneError
from abd.joints.closure.assembly import assemble
from abd.joints.closure.redundancy import analyse, check_closure, open_by
from abd.joints.coordinates.transform import transform
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import rigid_rows, rigid_states, single_clusters
from abd.joints.types import TYPES
from abd.model import WORLD, Coupling, CouplingTerm, Joint, affine_matrices


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


def test_a_taut_rope_stops_an_angle():
    """The tip is at most 1.9 m below the anchor: ``|tip - high| = 2 cos((pi/2 - |angle|)/2)``."""
    scene = abd.Scene()
    scene.add_body("arm", position=(0.5, 0.0, 0.0), **BODY)
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0.0, 0.0, 0.0), axis=(0.0, -1.0, 0.0))
    model = scene.compile()
    high, tip = np.eye(4), np.eye(4)
    high[2, 3], tip[0, 3] = 1.0, 0.5
    rope = Joint("rope", "rope", 0, WORLD, 0, high, tip, parameters={"distance": 1.9})
    model = replace(model, joints=[*model.joints, rope])
    slack = assemble(model, model.bodies.q, {(0, "theta"): -0.5})
    assert slack.converged and slack.iterations == 0 and slack.num_free == 1
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


Z = (0.0, 0.0, 1.0)


def stretched(model: abd.model.Model, name: str, by) -> abd.model.Model:
    """The model with a joint's point on its parent moved."""
    joints = list(model.joints)
    k = next(i for i, joint in enumerate(joints) if joint.name == name)
    frame = joints[k].parent_frame.copy()
    frame[:3, 3] += by
    joints[k] = replace(joints[k], parent_frame=frame)
    return replace(model, joints=joints)


@pytest.mark.parametrize("count", [1, 40])
def test_a_ladder_of_four_bars_has_one_freedom(count):
    """Each of its loops has three redundant rows."""
    model = windows(0.01, count).compile()
    (found,) = analyse(model, model.bodies.q)
    rows = 5 * (3 * count + 1)
    assert (len(found.bodies), found.rows, found.rank, found.mobility) == (2 * count + 1, rows, rows - 3 * count, 1)
    assert len(found.redundant) == 3 * count and all(row in ("z", "rx", "ry") for _, row in found.redundant)
    assert {name for name, _ in found.redundant} <= {joint.name for joint in model.joints}


def test_open_chains_have_no_redundant_rows_however_long():
    scene, above = abd.Scene(), abd.WORLD
    for k in range(400):
        scene.add_body(f"link{k}", position=(k + 0.5, 0.0, 0.0), **BODY)
        scene.add_hinge(f"joint{k}", above, f"link{k}", anchor=(k, 0.0, 0.0), axis=(0.0, 1.0, k % 2))
        above = f"link{k}"
    model = scene.compile()
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility, found.redundant) == (2000, 2000, 400, [])


def test_mechanisms_are_separated_at_the_ground():
    scene = abd.Scene()
    scene.add_body("table", kind="static", **BODY)
    for k in range(2):
        scene.add_body(f"arm{k}", position=(k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"joint{k}", "table", f"arm{k}", anchor=(k, 0.0, 0.0), axis=Z)
    model = scene.compile()
    found = analyse(model, model.bodies.q)
    assert [one.bodies.tolist() for one in found] == [[1], [2]]
    assert [one.joints.tolist() for one in found] == [[0], [1]]
    assert [(one.rank, one.mobility) for one in found] == [(5, 1), (5, 1)]


def test_two_hinges_on_one_axis_are_redundant():
    scene = abd.Scene()
    scene.add_body("door", **BODY)
    for k in range(2):
        scene.add_hinge(f"hinge{k}", abd.WORLD, "door", anchor=(0.0, 0.0, k), axis=Z)
    model = scene.compile()
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility, len(found.redundant)) == (10, 5, 1, 5)
    (alone,) = analyse(model, model.bodies.q, joints=[1])
    assert (alone.rows, alone.rank, alone.redundant) == (5, 5, [])
    assert check_closure(model, model.bodies.q).converged


def test_a_loop_whose_link_is_too_short_names_its_joints():
    scene = windows(0.01, 2)
    scene.add_body("aside", position=(9.0, 0.0, 0.0), **BODY)
    scene.add_hinge("elsewhere", abd.WORLD, "aside", anchor=(9.0, 0.0, 0.0), axis=Z)
    model = stretched(scene.compile(), "foot2", (9.0, 0.0, 0.0))
    with pytest.raises(SceneError) as caught:
        check_closure(model, model.bodies.q)
    (problem,) = caught.value.problems
    assert "cannot all be closed while the bodies stay rigid" in problem.message
    assert "'foot2'" in problem.message and "'elsewhere'" not in problem.message
    assert problem.key.startswith("joint.") and problem.value > 0.1 and "compliant" in problem.remedy


def test_joint_between_two_fixed_points_is_named():
    """The error names both hinges of a bar that is too short for their distance."""
    scene = abd.Scene()
    scene.add_body("bar", **BODY)
    scene.add_hinge("one", abd.WORLD, "bar", anchor=(0.0, 0.0, 0.0), axis=Z)
    scene.add_hinge("two", abd.WORLD, "bar", anchor=(1.0, 0.0, 0.0), axis=Z)
    model = stretched(scene.compile(), "two", (0.01, 0.0, 0.0))
    with pytest.raises(SceneError, match=r"'one'.*'two'|'two'.*'one'") as caught:
        check_closure(model, model.bodies.q)
    assert caught.value.problems[0].value == pytest.approx(0.005, rel=1e-6), "both share the misfit"
    assert check_closure(model, model.bodies.q, joints=[0]).converged


def geared(count: int, *gears: tuple[int, int, tuple]) -> abd.model.Model:
    """Wheels side by side, and gears (left, right, polynomial) between them."""
    scene = abd.Scene()
    for k in range(count):
        scene.add_body(f"wheel{k}", position=(k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"axle{k}", abd.WORLD, f"wheel{k}", anchor=(k, 0.0, 0.0), axis=Z)
    couplings = [Coupling(f"gear{k}", a, "theta", (CouplingTerm(b, "theta", c),)) for k, (a, b, c) in enumerate(gears)]
    return replace(scene.compile(), couplings=couplings)


def test_couplings_reduce_mobility_and_can_be_redundant():
    model = geared(3, (0, 1, (0.0, -1.0)), (1, 2, (0.0, -2.0)), (0, 2, (0.0, 2.0)))
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility) == (18, 17, 1)
    (redundant,) = found.redundant
    assert redundant[0] == redundant[1] and redundant[0].startswith("gear")


def test_contradictory_gears_are_an_error():
    model = geared(2, (0, 1, (0.0, 1.0)), (0, 1, (0.5, 1.0)))
    with pytest.raises(SceneError, match="axle0"):
        check_closure(model, model.bodies.q)


def test_compliant_joint_allows_a_loop_to_close():
    model = stretched(windows(0.01, 1).compile(), "foot1", (9.0, 0.0, 0.0))
    with pytest.raises(SceneError):
        check_closure(model, model.bodies.q)
    joints = list(model.joints)
    joints[1] = replace(joints[1], enforcement="compliant", compliance=(1e-6, 1e-6))
    yielding = replace(model, joints=joints)
    assert check_closure(yielding, model.bodies.q).residual.max() < 1e-12
    (found,) = analyse(yielding, model.bodies.q)
    assert (found.rows, found.mobility) == (18, 3)


def test_initial_residuals_of_joints():
    model = stretched(windows(0.01, 1).compile(), "foot1", (0.0, 3.0, 0.0))
    joints = list(model.joints)
    joints[1] = replace(joints[1], active=False)
    for one in (model, replace(model, joints=joints)):
        np.testing.assert_allclose(open_by(one, one.bodies.q), [[0, 0], [3, 0], [0, 0], [0, 0]], atol=1e-15)
