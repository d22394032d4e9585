"""Joint types in a scene: requirements, start, parameters, couplings that close rings."""

import re
from pathlib import Path

import numpy as np
import pytest
from joint_scenes import box_scene, compiled, placed, read

import abd
from abd.errors import SceneError
from abd.joints.rows.build import build_system
from abd.joints.types import TYPES


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_type_compiles_with_its_required_keys_and_not_without(name, tmp_path):
    kind = TYPES[name]
    scene = box_scene()
    place = ({"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)} if kind.POINTS == "apart" else {"anchor": (1, 0, 0)})
    if kind.AXIS == "needed":
        place["axis"] = (0, 0, 1)
    given = dict(kind.NEEDED)
    scene.add_joint(name, "j", "a", "b", **place, **given)
    model, joint = compiled(scene)
    assert set(joint.parameters) == set(kind.NEEDED) and joint.uid == TYPES[name].UID
    build_system(model)
    scene.save(tmp_path / "scene.toml")
    assert abd.load(tmp_path / "scene.toml") == scene
    for key in kind.NEEDED:
        less = {one: value for one, value in given.items() if one != key}
        with pytest.raises(SceneError, match=f"has no {key}"):
            box_scene().add_joint(name, "j", "a", "b", **place, **less)


PLACED = sorted(name for name in TYPES if TYPES[name].POINTS == "together")


@pytest.mark.parametrize("name", PLACED)
def test_every_type_starts_at_the_initial_values_of_its_coordinates(name):
    kind = TYPES[name]
    place = {"anchor": (1, 0.3, 0), **({} if kind.AXIS == "none" else {"axis": (0, 3, 4)})}
    given = dict(kind.NEEDED)
    probe = box_scene()
    probe.add_joint(name, "j", "a", "b", **place, **given)
    _, joint = compiled(probe)
    names = [measure.name for measure in TYPES[joint.type].coordinates(joint)]
    values = {one: 0.1 + 0.05 * k for k, one in enumerate(names)}
    scene = box_scene()
    scene.add_joint(name, "j", "a", "b", coordinate={one: {"initial": v} for one, v in values.items()}, **place, **given)
    model, joint = compiled(scene)
    assert read(model, joint) == pytest.approx(values, abs=1e-12)
    assert {one.name: one.initial for one in joint.coordinates} == values


def test_parameters_reach_their_type_in_its_units():
    scene = box_scene()
    place = {"anchor": (1, 0, 0), "axis": (0, 0, 1)}
    stiffness = np.diag([1.0, 2, 3, 4, 5, 6])
    scene.add_joint("spherical", "s", "a", "b", max_tilt_deg=30, max_rotation=(1, 2, 3), **place)
    scene.add_joint("ball", "t", "a", "b", constrained=(True, False, True), frame="parent", anchor=(1, 0, 0))
    scene.add_joint("general", "g", "a", "b", constrained=("rz", "x"), **place)
    scene.add_joint("bushing", "u", "a", "b", stiffness=stiffness, damping=3, rest=(0.1, 0, 0, 0, 0, 0), **place)
    scene.add_joint("skewed_universal", "k", "a", "b", skew_deg=20, axes="xy", **place)
    scene.add_joint("ellipsoid", "e", "a", "b", radii=(1, 2, 3), alpha_deg=90, open_sim=True, anchor=(1, 0, 0))
    scene.add_spring("f", "a", "b", 10, rest_length=0.5, damping=2, parent_anchor=(0, 0, 0), child_anchor=(0, 0, 0))
    joints = scene.compile().joints
    assert joints[0].parameters == {"max_tilt": pytest.approx(np.pi / 6), "max_rotation": (1.0, 2.0, 3.0)}
    assert (joints[1].type, joints[1].parameters) == ("spherical", {"constrained": ("x", "z"), "frame": "parent"})
    assert joints[2].parameters == {"constrained": ("x", "rz")}
    np.testing.assert_array_equal(joints[3].parameters["stiffness"], stiffness)
    assert joints[3].parameters["rest"][0] == 0.1 and joints[3].parameters["damping"] == 3
    assert joints[4].parameters == {"axes": "xy", "skew": pytest.approx(np.radians(20))}
    assert joints[5].parameters == {"radii": (1.0, 2.0, 3.0), "alpha": pytest.approx(np.pi / 2), "open_sim": True}
    assert joints[6].parameters == {"stiffness": 10.0, "damping": 2.0, "rest_length": 0.5}


def test_an_ellipsoid_joint_starts_on_the_surface():
    scene = box_scene()
    scene.add_joint("ellipsoid", "j", "world", "a", radii=(1, 2, 3), world_frame=np.eye(4))
    model, joint = compiled(scene)
    _, C = placed(model, joint)
    np.testing.assert_allclose(C[:3, 3], (0, 0, 3))


@pytest.mark.parametrize(
    "type, keys, words",
    [
        ("universal", {"axes": "yz", "anchor": (0, 0, 0)}, "joint.j.axes: must be 'zy' or 'xy'"),
        ("skewed_universal", {"skew_deg": 90, "anchor": (0, 0, 0)}, "joint.j.skew_deg: makes the two axes one"),
        ("ellipsoid", {"radii": (1, 0, 1), "anchor": (0, 0, 0)}, "joint.j.radii: must be three lengths above 0"),
        ("bushing", {"stiffness": (1, 2), "anchor": (0, 0, 0)}, "joint.j.stiffness: must be one number, six"),
        ("bushing", {"stiffness": -1, "anchor": (0, 0, 0)}, "joint.j.stiffness: must not be negative"),
        ("spherical", {"frame": "world", "anchor": (0, 0, 0)}, "joint.j.frame: has no effect without constrained"),
        ("screw", {"lead": 0, "anchor": (0, 0, 0), "axis": (0, 0, 1)}, "joint.j.lead: is zero"),
        ("distance", {"distance": 0, "anchor": (0, 0, 0)}, "joint.j.distance: should be greater than 0, not 0"),
        ("general", {"constrained": ("x", "w"), "anchor": (0, 0, 0)}, "joint.j.constrained: should be some of 'x', 'y'"),
        ("general", {"constrained": ("x",), "frame": "child"}, "joint.j.frame: should be 'parent' or 'world'"),
        ("segmented_planar_connector", {"segments": [(0, 0)]}, "joint.j.segments: should be a list of at least two points"),
        ("rope", {"distance": 1, "anchor": (0, 0, 0)}, "joint.j.anchor: a rope connects two points"),
        ("slider", {"anchor": (0, 0, 0), "axis": (0, 0, 1), "range_deg": (0, 1)}, "range_deg: z is a length"),
        ("cylindrical", {"anchor": (0, 0, 0), "axis": (0, 0, 1), "range": (0, 1)}, "has the coordinates 'z' and 'theta'"),
        ("general", {"constrained": ("x", "ry"), "frame": "world", "anchor": (0, 0, 0), "enforcement": "compliant",
         "linear_compliance": 1e-6},
         "joint.j.frame: world axes"),
        ("rope", {"distance": 1.9, "parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}, "slack must be greater than 0"),
        ("spherical", {"max_tilt_deg": 10, "world_frame": np.eye(4), "child_world_frame":
         {"euler": {"order": "x", "degrees": [20]}}}, "tilt must be greater than 0"),
        ("distance", {"distance": 9, "parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}, "the anchors are 7 m apart"),
        ("slider", {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 2), "parent_axis": (1, 0, 0),
         "child_axis": (1, 0, 0)}, "the anchors are 2 m apart"),
    ],
)  # fmt: skip
def test_wrong_parameters_and_starts_are_refused(type, keys, words):
    scene = box_scene()
    scene.body("b").euler = None
    with pytest.raises(SceneError, match=re.escape(words)):
        scene.add_joint(type, "j", "a", "b", **keys)
        scene.compile()


def test_slider_can_start_along_its_axis():
    scene = box_scene()
    local = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0), "parent_x_axis": (0, 0, 1), "child_x_axis": (0, 0, 1)}
    scene.body("b").euler = None
    scene.add_slider("j", "a", "b", parent_axis=(1, 0, 0), child_axis=(1, 0, 0), range=(1, 3), **local)
    (z,) = compiled(scene)[1].coordinates
    assert (z.name, z.lower, z.upper) == ("z", 1, 3) and z.initial == pytest.approx(2)


def test_the_example_of_the_readme_compiles(tmp_path):
    text = (Path(__file__).resolve().parents[2] / "scenes" / "README.md").read_text()
    (tmp_path / "example.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    model = abd.load(tmp_path / "example.toml").compile()
    assert [joint.coordinates[0].name for joint in model.joints] == ["theta", "theta"] and len(model.couplings) == 1


@pytest.mark.parametrize("type", ["hinge", "cylindrical", "slider", "planar", "screw"])
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_opposed_axes_are_refused_with_both_directions(type, enforcement):
    """Opposite axes have no shortest direction of rotation, so that no force would close the joint."""
    points = {"parent_anchor": (0.5, 0, 0), "child_anchor": (-0.5, 0, 0)}
    more = {"lead": 0.01} if type == "screw" else {}
    for axis, refused in (((0, 0.05, -1), True), ((0, 1, -1), False)):
        scene = box_scene()
        scene.add_joint(
            type, "j", "world", "a", parent_axis=(0, 0, 1), child_axis=axis, enforcement=enforcement, **points, **more
        )
        if refused:
            with pytest.raises(SceneError, match=r"opposite to that of the parent.*child_axis or parent_axis"):
                scene.compile()
        else:
            scene.compile()


def test_rings_of_couplings_turn_if_consistent_and_lock_otherwise():
    """The third relation of three coupled wheels follows from the first two or locks them."""
    scene = box_scene()
    for k, name in enumerate("pqr"):
        scene.add_body(f"wheel{k}", box=(1, 1, 1), position=(0, 0, 5 + 2 * k))
        scene.add_hinge(name, "world", f"wheel{k}", anchor=(0, 0, 5 + 2 * k), axis=(0, 0, 1))
    scene.add_gear("pq", "p", "q", ratio=2.0)
    scene.add_gear("qr", "q", "r", ratio=-0.5)
    scene.add_gear("rp", "r", "p", ratio=-1.0)
    scene.joint("p").drive = {"mode": "force", "target": 1000.0}
    for factor, angle in ((-1.0, 0.005), (-1.1, 0.0)):
        scene.coupling("rp").terms[0].factor = factor
        for enforcement in ("penalty", "exact"):
            for name in ("pq", "qr", "rp"):
                scene.coupling(name).enforcement = enforcement
            simulation = abd.run(scene, steps=10, device="numpy")
            assert simulation.joints["p"].coordinates[0] == pytest.approx(angle, abs=1e-4)


def test_limits_of_a_ball_can_be_compliant_with_a_damping_ratio():
    scene = box_scene()
    place = {"anchor": (0, 0, 0)}
    scene.add_joint("spherical", "s", "world", "a", max_tilt=0.5, limit_compliance=1e-3, limit_damping=-2.0, **place)
    own = {"range": (-1, 1), "limit": "compliant", "limit_compliance": 1e-3, "limit_damping": -1.0}
    scene.add_hinge("h", "world", "b", anchor=(2, 0, 0), axis=(0, 0, 1), coordinate={"theta": own})
    ball, hinge = scene.compile().joints
    critical = 2 * np.sqrt(1000 / 6 / 1e-3)
    assert ball.parameters["limit_damping"] == pytest.approx(2 * critical)
    assert hinge.coordinates[0].limit_damping == pytest.approx(critical)
    for keys, words in (
        ({"limit_compliance": 1e-3}, "without max_tilt or max_rotation"),
        ({"max_tilt": 0.5, "limit_damping": 1.0}, "no effect without limit_compliance"),
    ):
        with pytest.raises(SceneError, match=words):
            scene.add_joint("spherical", "t", "world", "a", **keys, **place)
    hard = {"theta": {"range": (-1, 1), "limit_damping": -1.0}}
    with pytest.raises(SceneError, match=r"a damping ratio \(negative\) needs a compliant limit"):
        scene.add_hinge("k", "world", "a", axis=(0, 0, 1), coordinate=hard, **place)
