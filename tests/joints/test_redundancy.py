"""Redundant rows, mobility, and loops that rigid bodies cannot close."""

from dataclasses import replace

import numpy as np
import pytest
from reference_cases import windows

import abd
from abd.errors import SceneError
from abd.joints.closure.redundancy import analyse, check_closure, open_by
from abd.model import Coupling, CouplingTerm

BODY = {"proxy": True, "mass": 1.0, "density": 1.0, "center_of_mass": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
Z = (0.0, 0.0, 1.0)


def stretched(model: abd.model.Model, name: str, by) -> abd.model.Model:
    """The model with a joint's point on its parent moved."""
    joints = list(model.joints)
    k = next(i for i, joint in enumerate(joints) if joint.name == name)
    frame = joints[k].parent_frame.copy()
    frame[:3, 3] += by
    joints[k] = replace(joints[k], parent_frame=frame)
    return replace(model, joints=joints)


def test_a_four_bar_has_rank_17_of_20():
    model = windows(0.01, 1).compile()
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility) == (20, 17, 1)
    assert len(found.redundant) == 3 and all(row in ("z", "rx", "ry") for _, row in found.redundant)
    assert {name for name, _ in found.redundant} <= {joint.name for joint in model.joints}


def test_a_ladder_of_forty_four_bars_has_one_freedom():
    model = windows(0.01, 40).compile()
    (found,) = analyse(model, model.bodies.q)
    assert (len(found.bodies), found.rows, found.rank, found.mobility) == (81, 605, 485, 1)
    assert len(found.redundant) == 3 * 40


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


def test_couplings_reduce_mobility_and_can_be_redundant():
    scene = abd.Scene()
    for k in range(3):
        scene.add_body(f"wheel{k}", position=(k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"axle{k}", abd.WORLD, f"wheel{k}", anchor=(k, 0.0, 0.0), axis=Z)
    gears = [
        Coupling(f"gear{a}{b}", a, "theta", (CouplingTerm(b, "theta", (0.0, ratio)),))
        for a, b, ratio in ((0, 1, -1.0), (1, 2, -2.0), (0, 2, 2.0))
    ]
    model = replace(scene.compile(), couplings=gears)
    (found,) = analyse(model, model.bodies.q)
    assert (found.rows, found.rank, found.mobility) == (18, 17, 1)
    (redundant,) = found.redundant
    assert redundant[0] == redundant[1] and redundant[0].startswith("gear")


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


def test_contradictory_gears_are_an_error():
    scene = abd.Scene()
    for k in range(2):
        scene.add_body(f"wheel{k}", position=(k, 0.0, 0.0), **BODY)
        scene.add_hinge(f"axle{k}", abd.WORLD, f"wheel{k}", anchor=(k, 0.0, 0.0), axis=Z)
    gears = [Coupling(f"gear{c}", 0, "theta", (CouplingTerm(1, "theta", (c, 1.0)),)) for c in (0.0, 0.5)]
    model = replace(scene.compile(), couplings=gears)
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


def test_open_but_compatible_initial_poses_are_closed():
    model = windows(0.01, 3).compile()
    q = model.bodies.q.copy()
    q[:, :3] += np.random.default_rng(1).uniform(-0.2, 0.2, (len(q), 3))
    assert check_closure(model, q).residual.max() <= 1e-12


def test_initial_residuals_of_joints():
    model = stretched(windows(0.01, 1).compile(), "foot1", (0.0, 3.0, 0.0))
    joints = list(model.joints)
    joints[1] = replace(joints[1], active=False)
    for one in (model, replace(model, joints=joints)):
        np.testing.assert_allclose(open_by(one, one.bodies.q), [[0, 0], [3, 0], [0, 0], [0, 0]], atol=1e-15)
