"""Assembly of all joint types and of loops with closed forms; redundant rows, mobility, loops that cannot be closed."""

from dataclasses import replace

import numpy as np
import pytest
from differences import differences
from joint_samples import BODY, frame, joint_of
from reference_cases import windows

import abd
from abd.errors import SceneError
from abd.joint_model import Coupling, CouplingTerm, Joint
from abd.joints.closure.assembly import assemble
from abd.joints.closure.redundancy import analyse, check_closure, open_by
from abd.joints.coordinates.configurations import transform
from abd.joints.rows.placement import present_transform
from abd.joints.rows.rigid_rows import rigid_rows, rigid_states, single_clusters
from abd.joints.types import TYPES
from abd.model import WORLD, affine_matrices


def bodies_with(joints: list[Joint], count: int = 2) -> abd.model.Model:
    scene = abd.Scene()
    for k in range(count):
        scene.add_body(f"body{k}", position=(k, 0.0, 0.0), **BODY)
    return replace(scene.compile(), joints=joints)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_type_is_closed_and_set(kind):
    """The joints are a chain of two of a type, with frames at random."""
    rng = np.random.default_rng(11)
    model = bodies_with([joint_of(kind, rng, ends, name) for name, ends in (("first", (WORLD, 0)), ("second", (0, 1)))])
    start = assemble(model, model.bodies.q)
    assert start.converged and start.residual.max() <= 1e-12
    rng = np.random.default_rng(3)
    wanted = dict(zip(start.coordinates, rng.uniform(-1.0, 1.0, len(start.values)).tolist()))
    outcome = assemble(model, start.q, wanted)
    assert outcome.converged and outcome.residual.max() <= 1e-12 and np.all(np.array(outcome.status)[outcome.requested] == "free")
    np.testing.assert_allclose(outcome.values, list(wanted.values()), atol=1e-12)
    assert outcome.iterations == 0, "joints on no loop are set by a walk"
    for k, joint in enumerate(model.joints):
        T = transform(joint, np.array([value for (j, _), value in wanted.items() if j == k]))
        if T is not None:
            np.testing.assert_allclose(present_transform(joint, outcome.q), T, atol=1e-13)
    for found in analyse(model, outcome.q):
        assert found.rank == found.rows and found.redundant == [] and found.mobility == 12 - found.rows


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
    slopes = differences(lambda by: rows.values(clusters.move(q, by, rows.length))[0], np.zeros((2, 6)), 1e-6)
    np.testing.assert_allclose(J, rows.scale[:, None] * slopes.T, atol=1e-8)


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
    assert outcome.converged and np.all(np.array(outcome.status)[outcome.requested] == "free")
    ratios = (np.tan(angle) * np.cos(bend), np.tan(angle) / np.cos(bend))
    assert min(abs(np.tan(outcome.values[1]) - ratio) for ratio in ratios) < 1e-10
    (found,) = analyse(model, outcome.q)
    assert (found.rows, found.rank, found.mobility) == (14, 11, 1)


def test_profile_segment_is_that_of_the_solution():
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
    (joint,) = (joint for joint in model.joints if joint.name == name)
    joint.parent_frame[:3, 3] += by
    return model


def open_chain() -> abd.Scene:
    scene, above = abd.Scene(), abd.WORLD
    for k in range(400):
        scene.add_body(f"link{k}", position=(k + 0.5, 0.0, 0.0), **BODY)
        scene.add_hinge(f"joint{k}", above, f"link{k}", anchor=(k, 0.0, 0.0), axis=(0.0, 1.0, k % 2))
        above = f"link{k}"
    return scene


def door() -> abd.Scene:
    """A body on two hinges about one axis."""
    scene = abd.Scene()
    scene.add_body("door", **BODY)
    for k in range(2):
        scene.add_hinge(f"hinge{k}", abd.WORLD, "door", anchor=(0.0, 0.0, k), axis=Z)
    return scene


def geared(count: int, *gears: tuple[int, int, tuple]) -> abd.model.Model:
    """Wheels side by side, and gears (left, right, polynomial) between them."""
    scene = abd.Scene()
    for k in range(count):
        scene.add_body(f"wheel{k}", position=(k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"axle{k}", abd.WORLD, f"wheel{k}", anchor=(k, 0.0, 0.0), axis=Z)
    couplings = [Coupling(f"gear{k}", a, "theta", (CouplingTerm(b, "theta", c),)) for k, (a, b, c) in enumerate(gears)]
    return replace(scene.compile(), couplings=couplings)


MOBILITIES = {
    # name: model, number of rows, their rank, mobility; each loop of a ladder of four-bars has three redundant rows
    "four-bar": (lambda: windows(0.01, 1).compile(), 20, 17, 1),
    "ladder of 40": (lambda: windows(0.01, 40).compile(), 605, 485, 1),
    "long open chain": (lambda: open_chain().compile(), 2000, 2000, 400),
    "two hinges on one axis": (lambda: door().compile(), 10, 5, 1),
    "three gears": (lambda: geared(3, (0, 1, (0.0, -1.0)), (1, 2, (0.0, -2.0)), (0, 2, (0.0, 2.0))), 18, 17, 1),
}


@pytest.mark.parametrize("name", MOBILITIES)
def test_redundant_rows_and_mobility(name):
    make, rows, rank, mobility = MOBILITIES[name]
    model = make()
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility, len(found.redundant)) == (rows, rank, mobility, rows - rank)
    assert {owner for owner, _ in found.redundant} <= {one.name for one in (*model.joints, *model.couplings)}
    assert check_closure(model, model.bodies.q).converged


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


def test_joints_of_a_subset_are_closed():
    model = stretched(door().compile(), "hinge1", (0.01, 0.0, 0.0))
    assert check_closure(model, model.bodies.q, joints=[0]).converged


def bar() -> abd.Scene:
    """A bar on two hinges 1 m apart."""
    scene = abd.Scene()
    scene.add_body("bar", **BODY)
    for k, name in enumerate(("one", "two")):
        scene.add_hinge(name, abd.WORLD, "bar", anchor=(k, 0.0, 0.0), axis=Z)
    return scene


def short_link() -> abd.model.Model:
    """A ladder with a link that is too short, and a body on another hinge."""
    scene = windows(0.01, 2)
    scene.add_body("aside", position=(9.0, 0.0, 0.0), **BODY)
    scene.add_hinge("elsewhere", abd.WORLD, "aside", anchor=(9.0, 0.0, 0.0), axis=Z)
    return stretched(scene.compile(), "foot2", (9.0, 0.0, 0.0))


OPEN = {
    # name: model, names in the message, value of the problem; both hinges of the bar share the misfit
    "a link of a loop is too short": (short_link, ["foot2"], None),
    "a bar is too short": (lambda: stretched(bar().compile(), "two", (0.01, 0, 0)), ["one", "two"], 0.005),
    "gears contradict each other": (lambda: geared(2, (0, 1, (0.0, 1.0)), (0, 1, (0.5, 1.0))), ["axle0"], None),
}


@pytest.mark.parametrize("name", OPEN)
def test_joints_that_cannot_be_closed_are_named(name):
    make, names, value = OPEN[name]
    model = make()
    with pytest.raises(SceneError) as caught:
        check_closure(model, model.bodies.q)
    (problem,) = caught.value.problems
    assert "be closed while the bodies stay rigid" in problem.message and "'elsewhere'" not in problem.message
    assert all(f"'{one}'" in problem.message for one in names)
    assert problem.value == pytest.approx(value, rel=1e-6) if value else problem.value > 0.1
    assert problem.key.startswith("joint.") and "compliant" in problem.remedy


def test_compliant_joint_allows_a_loop_to_close():
    model = stretched(windows(0.01, 1).compile(), "foot1", (9.0, 0.0, 0.0))
    with pytest.raises(SceneError):
        check_closure(model, model.bodies.q)
    first, second, *rest = model.joints
    soft = replace(second, enforcement="compliant", compliance=(1e-6, 1e-6))
    yielding = replace(model, joints=[first, soft, *rest])
    assert check_closure(yielding, model.bodies.q).residual.max() < 1e-12
    (found,) = analyse(yielding, model.bodies.q)
    assert (found.rows, found.mobility) == (18, 3)


def test_initial_residuals_of_joints():
    model = stretched(windows(0.01, 1).compile(), "foot1", (0.0, 3.0, 0.0))
    first, second, *rest = model.joints
    for one in (model, replace(model, joints=[first, replace(second, active=False), *rest])):
        np.testing.assert_allclose(open_by(one, one.bodies.q), [[0, 0], [3, 0], [0, 0], [0, 0]], atol=1e-15)
