"""From specs to models: frames, states, sharing, fixed axes, materials, joints, settings and problems."""

import numpy as np
import pytest
from on_device import NAME
from scipy.spatial.transform import Rotation

import abd
from abd.errors import SceneError
from abd.model import Kind, affine_matrices
from abd.scene.compile.compile import compile_scene
from abd.scene.schema.schema import SceneSpec

LOPSIDED = {"vertices": [[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1]], "triangles": [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]}
CARD = {"vertices": [[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]], "triangles": [[0, 1, 2], [0, 2, 3]]}
LINE = {"vertices": [[0, 0, 0], [1, 0, 0]], "edges": [[0, 1]]}


def compiled(*bodies, **rest):
    return compile_scene(SceneSpec(body=list(bodies), **rest))


def test_principal_frame_keeps_the_users_pose():
    pose = {"position": (1, 2, 3), "euler": {"order": "xyz", "degrees": (20, -30, 40)}}
    model = compiled({"name": "a", "surface": LOPSIDED, **pose})
    rotation = Rotation.from_euler("xyz", (20, -30, 40), degrees=True).as_matrix()
    transform = model.user_transform(model.bodies.q)[0]
    np.testing.assert_allclose(transform[:3, :3], rotation, atol=1e-14)
    np.testing.assert_allclose(transform[:3, 3], (1, 2, 3), atol=1e-14)
    np.testing.assert_allclose(model.bodies.q[0, :3], rotation @ (0.75, 0.5, 0.25) + (1, 2, 3), atol=1e-14)

    mesh = model.meshes[0]
    frame = model.bodies.body_frame[0]
    np.testing.assert_allclose(mesh.vertices, np.array(LOPSIDED["vertices"]) @ frame[:3, :3].T + frame[:3, 3])
    # corners of a tetrahedron: S = m/20 sum of x x^T about the centroid; diagonal in the internal frame
    expected = model.bodies.mass[0] / 20.0 * mesh.vertices.T @ mesh.vertices
    np.testing.assert_allclose(expected, np.diag(model.bodies.moment[0]), atol=1e-10)
    assert model.bodies.volume[0] == pytest.approx(1.0)


def test_initial_velocity_of_every_point():
    spin, velocity = np.array([0.3, -2.0, 1.0]), np.array([1.0, 2.0, 3.0])
    place = {"position": (5, 0, 0), "axis_angle": {"axis": (1, 1, 0), "degrees": 50}}
    rates = {"velocity": velocity, "angular_velocity_deg": np.degrees(spin)}
    model = compiled({"name": "a", "surface": LOPSIDED, **place, **rates})
    point = np.append(LOPSIDED["vertices"][1], 1.0)
    place = (model.user_transform(model.bodies.q)[0] @ point)[:3]
    rate = (model.user_velocity(model.bodies.qd)[0] @ point)[:3]
    np.testing.assert_allclose(rate, velocity + np.cross(spin, place - model.bodies.q[0, :3]), atol=1e-13)


def test_static_and_kinematic_bodies_keep_the_mesh_frame():
    motion = {"velocity": (1, 0, 0), "angular_velocity": (0, 0, 2)}
    model = compiled(
        {"name": "s", "surface": LOPSIDED, "kind": "static", "position": (0, 0, 9)},
        {"name": "k", "surface": LOPSIDED, "kind": "kinematic", "motion": motion},
        {"name": "c", "surface": LOPSIDED, "kind": "kinematic", "motion": {**motion, "frame": "center_of_mass"}},
    )
    assert (model.bodies.body_frame == np.eye(4)).all() and len(model.meshes) == 1
    assert list(model.motions) == [1, 2]
    pose = model.motions[1](0.5)
    np.testing.assert_allclose(pose[:3, 3], (0.5, 0, 0))
    np.testing.assert_allclose(pose[:3, 0], (np.cos(1.0), np.sin(1.0), 0), atol=1e-15)
    center = np.array([0.75, 0.5, 0.25])
    pose = model.motions[2](0.5)
    np.testing.assert_allclose(pose[:3, :3] @ center + pose[:3, 3], center + np.array([0.5, 0, 0]), atol=1e-14)
    np.testing.assert_allclose(model.bodies.qd[1, :3], (1, 0, 0), atol=1e-12)
    assert (model.bodies.qd[0] == 0).all()


def test_kinematic_start_is_that_of_its_motion_whose_file_is_next_to_the_scene(tmp_path):
    frames = [{"time": 0, "position": (0, 0, 5)}, {"time": 1, "position": (0, 0, 6)}]
    model = compiled({"name": "k", "box": (1, 1, 1), "kind": "kinematic", "motion": {"keyframes": frames}})
    np.testing.assert_allclose(model.bodies.q[0, :3], (0, 0, 5))
    (tmp_path / "poses.csv").write_text("time,x,y,z\n0,0,0,1\n1,0,0,2\n")
    spec = SceneSpec(body=[{"name": "k", "box": (1, 1, 1), "kind": "kinematic", "motion": {"file": str(tmp_path / "poses.csv")}}])
    np.testing.assert_allclose(compile_scene(spec).motions[0](0.5)[:3, 3], (0, 0, 1.5))


def test_equal_bodies_share_one_mesh():
    repeat = {"count": (3, 2, 1), "step": (2, 3, 0)}
    model = compiled(
        {"name": "b", "surface": LOPSIDED, "repeat": repeat},
        {"name": "heavy", "surface": dict(LOPSIDED), "density": 7777, "position": (0, 0, 9)},
        {"name": "large", "surface": LOPSIDED, "scale": 2, "position": (0, 0, 20)},
        {"name": "still", "surface": LOPSIDED, "kind": "static", "position": (0, 0, 40)},
    )
    assert model.bodies.names[:3] == ["b_0_0_0", "b_0_1_0", "b_1_0_0"]
    assert model.bodies.mesh.tolist() == [0] * 7 + [1, 2]
    assert model.bodies.mass[7] == pytest.approx(8 * model.bodies.mass[0])
    assert model.bodies.q[5, 0] - model.bodies.q[0, 0] == pytest.approx(4.0)


def test_components_become_bodies():
    two = {"vertices": [*LINE["vertices"], [0, 5, 0], [2, 5, 0]], "edges": [[0, 1], [2, 3]]}
    model = compiled({"name": "rod", "surface": two, "radius": 0.1, "split_components": True})
    assert model.bodies.names == ["rod_0", "rod_1"]
    assert model.bodies.mass[1] == pytest.approx(2 * model.bodies.mass[0])


def test_contact_radius_and_volume_of_thin_bodies():
    model = compiled(
        {"name": "card", "surface": CARD, "thickness": 0.02},
        {"name": "rod", "surface": LINE, "radius": 0.1, "position": (0, 0, 5)},
        {"name": "box", "box": (1, 1, 1), "position": (0, 0, 9)},
    )
    np.testing.assert_allclose(model.bodies.radius, [0.01, 0.1, 0.0])
    np.testing.assert_allclose(model.bodies.volume, [0.04, np.pi * 0.01, 1.0])
    np.testing.assert_allclose(model.bodies.mass, 1000 * model.bodies.volume)
    assert [any(word in note for note in model.notes) for word in ("shell", "rods")] == [True, True]


def test_explicit_mass_properties():
    model = compiled(
        {"name": "proxy", "proxy": True, "mass": 2, "inertia": (1, 1, 1.5), "center_of_mass": (1, 0, 0)},
        {"name": "box", "box": (1, 1, 1), "mass": 5, "position": (5, 0, 0)},
        {"name": "card", "surface": CARD, "mass": 3, "position": (9, 0, 0)},
    )
    assert model.bodies.mesh.tolist() == [-1, 0, 1]
    np.testing.assert_allclose(model.bodies.mass, [2, 5, 3])
    np.testing.assert_allclose(model.bodies.moment[0], [0.75, 0.75, 0.25])
    np.testing.assert_allclose(model.bodies.moment[1], 5 / 12)
    np.testing.assert_allclose(model.bodies.moment[2], [3 * 4 / 12, 3 / 12, 0], atol=1e-15)
    np.testing.assert_allclose(model.bodies.volume, [0.002, 1.0, 0.003])
    np.testing.assert_allclose(model.bodies.q[0, :3], (1, 0, 0))


def test_fixed_degrees_of_freedom():
    load = {"velocity": (1, 2, 3), "angular_velocity": (4, 5, 6), "force": (1, 1, 1), "torque": (1, 1, 1)}
    model = compiled(
        {"name": "free", "box": (1, 1, 1)},
        {"name": "hinge", "box": (1, 1, 1), "position": (2, 0, 0), "fix": ["x", "y", "z", "rx", "rz"], **load},
        {"name": "slide", "box": (1, 1, 1), "position": (4, 0, 0), "fix": ["x", "rx", "ry", "rz"]},
        {"name": "wall", "box": (1, 1, 1), "position": (6, 0, 0), "fix": ["x", "y", "z", "rx", "ry", "rz"]},
    )
    bodies = model.bodies
    assert bodies.kind.tolist() == [Kind.DYNAMIC] * 3 + [Kind.STATIC]
    assert bodies.free_rotation.tolist() == [3, 1, 0, 0]
    np.testing.assert_allclose(bodies.rotation_axis[1], (0, 1, 0))
    assert bodies.free_translation[1:3].tolist() == [[False] * 3, [False, True, True]]
    np.testing.assert_allclose(bodies.qd[1], [0, 0, 0, 0, 0, 5, 0, 0, 0, -5, 0, 0])
    np.testing.assert_allclose(bodies.force[1], 0)
    np.testing.assert_allclose(bodies.torque[1], (0, 1, 0))
    assert any("along fixed axes has no effect" in note for note in model.notes)


def test_materials_combine_by_the_geometric_mean():
    model = compiled(
        {"name": "a", "box": (1, 1, 1), "material": "rubber"},
        {"name": "b", "box": (1, 1, 1), "position": (2, 0, 0)},
        material=[{"name": "rubber", "mu": 0.9}, {"name": "ice", "mu": 0.1}],
        material_pair=[
            {"between": ("ice", "rubber"), "mu": 0.2, "stiffness": 3},
            {"between": ("default", "default"), "enabled": False},
        ],
    )
    table = model.materials
    assert table.names == ["default", "rubber", "ice"]
    np.testing.assert_allclose(table.mu, [[0, 0, 0], [0, 0.9, 0.2], [0, 0.2, 0.1]])
    assert table.stiffness[1, 2] == table.stiffness[2, 1] == 3 and not table.enabled[0, 0]
    assert model.bodies.material.tolist() == [1, 0]


def test_axes_of_a_joint_may_differ_by_the_least_turn():
    turned = {"euler": {"order": "xyz", "degrees": (10, 20, 30)}}
    joint = {"name": "open", "type": "hinge", "parent": "a", "child": "b", "parent_anchor": (0, 0, 0), "child_anchor": (0, 0, -3)}
    model = compiled(
        {"name": "a", "surface": LOPSIDED, **turned}, {"name": "b", "surface": LOPSIDED, "position": (0, 0, 5)},
        joint=[joint | {"parent_axis": (1, 0, 0), "child_axis": (0, 1, 0)}],
    )
    user, own, loose = model.user_transform(model.bodies.q), affine_matrices(model.bodies.q), model.joints[0]
    parent, child = own[0] @ loose.parent_frame, own[1] @ loose.child_frame
    np.testing.assert_allclose(parent[:3, 2:], user[0][:3, [0, 3]], atol=1e-14)
    np.testing.assert_allclose(child[:3, 2:], np.transpose([(0, 1, 0), (0, 0, 2)]), atol=1e-14)
    turn = Rotation.from_matrix(child[:3, :3] @ parent[:3, :3].T).magnitude()
    assert turn == pytest.approx(np.arccos(parent[:3, 2] @ child[:3, 2]))


def test_settings_are_resolved():
    model = compiled(
        {"name": "a", "box": (3, 0.5, 0.5), "position": (0, 0, 0)},
        {"name": "b", "box": (3, 0.5, 0.5), "position": (0, 3.5, 0)}, {"name": "floor", "half_space": {"offset": -100}},
        solver={"dt": 0.1, "tolerance_relative": 1e-2}, output={"duration": 0.3},
    )
    diagonal = np.sqrt(9 + 16 + 0.25)
    assert model.settings.diagonal == pytest.approx(diagonal)
    assert model.settings.d_hat is None
    assert model.settings.tolerance == pytest.approx(1e-2 * diagonal)
    assert model.settings.frames == 3 and model.settings.contact_stiffness is None
    assert compiled({"name": "a", "box": (1, 1, 1)}).settings.frames == 100


def test_bdf2_is_replaced_with_a_note():
    scene = abd.Scene(solver={"integrator": "bdf2"})
    scene.add_body("ball", sphere={"radius": 0.1})
    model = scene.compile()
    assert model.settings.integrator == "generalized_alpha"
    assert [note for note in model.notes if "'bdf2' is no longer available" in note]


def test_missing_mesh_of_copies_is_reported_once(tmp_path):
    body = {"name": "gone", "mesh": str(tmp_path / "gone.obj"), "repeat": {"count": (9, 1, 1), "step": (1, 0, 0)}}
    with pytest.raises(SceneError, match=r"body\.gone\.mesh: .*'gone\.obj' not found") as error:
        compile_scene(SceneSpec(body=[body]))
    assert len(error.value.problems) == 1


ANCHORS = {
    # name: keys of the body
    "proxy": {"proxy": True},
    "center": {"proxy": True, "center_of_mass": (0.1, 0.0, 0.0)},
    "open": {"surface": {"vertices": [(0, 0, 0), (1, 0, 0), (0, 1, 0)], "triangles": [(0, 1, 2)]}},
    "segment": {"surface": {"vertices": [(0, 0, 0), (1, 0, 0)], "edges": [(0, 1)]}},
    "point": {"surface": {"vertices": [(0, 0, 0)], "points": [0]}},
    "inertia": {"box": (0.1, 0.1, 0.1), "inertia": (1, 1, 1)},
}
KINDS = {
    "static": {"kind": "static"},
    "kinematic": {"kind": "kinematic", "motion": {"velocity": (0, 0, 0.1)}},
    "fixed": {"fix": ["x", "y", "z", "rx", "ry", "rz"]},
}


@pytest.mark.device
@pytest.mark.parametrize(("kind", "enforcement"), [*zip(KINDS, ("exact", "penalty", "compliant"))])
@pytest.mark.parametrize("anchor", ANCHORS)
def test_immobile_bodies_need_no_mass(anchor, kind, enforcement):
    scene = abd.Scene()
    scene.add_body("base", **ANCHORS[anchor], **KINDS[kind])
    scene.add_body("arm", box=(1, 0.1, 0.1), position=(0.5, 0, 1.5))
    yielding = {"linear_compliance": 1e-7, "rotary_compliance": 1e-7} if enforcement == "compliant" else {}
    keys = {"anchor": (0, 0, 1.5), "axis": (0, 1, 0), "enforcement": enforcement, **yielding}
    scene.add_joint("hinge", "hinge", "base", "arm", **keys)
    simulation = abd.run(scene, steps=3, device=NAME)
    height = 0.1 * simulation.time if kind == "kinematic" else 0.0
    np.testing.assert_allclose(simulation.bodies["base"].position, (0, 0, height), atol=1e-12)
    assert np.linalg.norm(simulation.bodies["arm"].position - (0, 0, 1.5 + height)) == pytest.approx(0.5, abs=1e-3)
