"""Scenes in another unit of length, and moved as a whole, have the same motion."""

import numpy as np
import pytest

import abd
from abd.api.simulation import Simulation
from abd.errors import SceneError
from abd.rotations import pose, quaternion_matrix


def machine() -> abd.Scene:
    """A driven crank with a spring, a slider that is geared to it, a ball joint with rubber, and a box on an inclined plane."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01, "tolerance": 1e-6, "integrator": "bdf1"})
    scene.add_material("default", mu=0.2)
    scene.add_body("floor", half_space={"normal": (0.1, 0.0, 1.0), "offset": -1.0})
    scene.add_body("crank", box=(0.6, 0.1, 0.1), kappa=1e9, density=800.0, position=(0.3, 0, 0))
    scene.add_body("sled", box=(0.2, 0.2, 0.2), kappa=1e9, mass=2.0, position=(0, 1, 0), force=(0, 0, 3.0), torque=(0.1, 0, 0))
    scene.add_body("arm", box=(0.1, 0.1, 0.5), kappa=1e9, mass=1.0, position=(0.6, 0, -0.25))
    scene.add_body(
        "box", box=(0.2, 0.2, 0.2), kappa=1e9, mass=1.0, position=(2, 0, -1.05), quaternion=(1, 0, -0.04, 0),
        velocity=(0.5, 0, 0),
    )
    theta = {"stiffness": 20.0, "damping": 0.5, "range": [-1, 1], "limit": "compliant", "limit_compliance": 1e-2}
    about_y = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": "exact"}
    scene.add_hinge("crank", "world", "crank", coordinate={"theta": theta}, **about_y)
    scene.add_joint(
        "slider", "sled", "world", "sled", anchor=(0, 1, 0), axis=(0, 0, 1), enforcement="compliant",
        compliance=(1e-5, 1e-5, 1e-4, 1e-4, 1e-4), damping=5.0,
        coordinate={"z": {"friction": 0.5, "armature": 0.1, "range": [-0.5, 0.4]}},
    )
    scene.add_joint(
        "bushing", "rubber", "crank", "arm", anchor=(0.6, 0, 0), stiffness=(2e3, 2e3, 2e3, 5.0, 5.0, 5.0), damping=2.0
    )
    scene.add_coupling("gear", "sled.z", [{"coordinate": "crank.theta", "polynomial": [0.0, 0.2, 0.1]}], enforcement="exact")
    return scene


def run(scene: abd.Scene, steps: int = 12) -> Simulation:
    return abd.run(scene, steps=steps, device="cpu")


def test_scaled_scene_has_the_scaled_motion():
    assert abd.Scene().scaled(1e-3).gravity == (0.0, 0.0, -9.81), "the default is not scaled"
    factor, scene = 1e-3, machine()
    other = scene.scaled(factor)
    assert other.gravity == pytest.approx((0, 0, -9.81e-3)) and other.body("crank").box == pytest.approx((6e-4, 1e-4, 1e-4))
    assert other.joint("rubber").stiffness == pytest.approx((2e3, 2e3, 2e3, 5e-6, 5e-6, 5e-6))
    assert other.joint("rubber").damping == pytest.approx((2, 2, 2, 2e-6, 2e-6, 2e-6))
    assert other.coupling("gear").terms[0].polynomial == pytest.approx((0, 2e-4, 1e-4))
    back = other.scaled(1.0 / factor)
    assert back.joint("sled").compliance == pytest.approx(scene.joint("sled").compliance)
    models = [one.compile() for one in (scene, other)]
    assert np.allclose(models[1].bodies.mass, models[0].bodies.mass, rtol=1e-9)
    one, two = run(scene), run(other)
    assert np.allclose(two.stepper.q[:, :3], factor * one.stepper.q[:, :3], atol=1e-6 * factor)
    assert np.allclose(two.stepper.q[:, 3:], one.stepper.q[:, 3:], atol=1e-5)
    assert two.joints["crank"].coordinates == pytest.approx(one.joints["crank"].coordinates, abs=1e-6)
    assert abs(one.joints["crank"].coordinates[0]) > 0.02
    forces = [np.array(sim.joints["crank"].wrench()) for sim in (one, two)]
    assert np.allclose(forces[1] / [[factor], [factor**2]], forces[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("how", ["override", "save", "save explicit"])
def test_values_that_are_set_to_their_default_remain_set(how, tmp_path):
    scene = abd.Scene(gravity=(0, 0, -9.81))
    scene.add_material("default", mu=0.0)
    scene.add_body("a", box=(1, 1, 1))
    if how == "override":
        again = scene.override(["solver.dt=0.005"])
    else:
        scene.save(tmp_path / "a.toml", explicit=how.endswith("explicit"))
        again = abd.load(tmp_path / "a.toml")
    assert again.scaled(2.0).gravity == (0.0, 0.0, -19.62) and "mu" in again.spec.material[0].model_fields_set


def test_formulas_of_couplings_are_scaled():
    scene = machine()
    scene.spec.coupling.clear()
    scene.add_coupling("gear", "sled.z", formula="0.2 * a + b**2", variables={"a": "crank.theta", "b": "sled.z"}, scale=2.0)
    gear = scene.scaled(1e-3).coupling("gear")
    assert gear.scale == pytest.approx(2e-3) and gear.formula == "0.2 * a + (b / 0.001)**2"


def test_transformed_scene_has_the_transformed_motion():
    T = pose(quaternion_matrix(np.array([0.8, 0.2, -0.4, 0.4])), np.array([3.0, -2.0, 1.0]))
    scene = machine()
    other = scene.transformed(T)
    assert np.allclose(other.gravity, T[:3, :3] @ (0, 0, -9.81))
    one, two = run(scene), run(other)
    for name in ("crank", "sled", "arm", "box"):
        assert np.allclose(two.bodies[name].transform, T @ one.bodies[name].transform, atol=2e-6)
    assert np.allclose(two.coordinates, one.coordinates, atol=2e-6)
    again = other.transformed(np.linalg.inv(T))
    assert np.allclose(again.body("sled").position, scene.body("sled").position)
    for key in ("parent_frame", "child_frame"):
        frames = [getattr(each.compile().joints[2], key) for each in (scene, again)]
        assert np.allclose(*frames, atol=1e-12)


@pytest.mark.parametrize("kind", ["spring", "rope", "distance", "pin"])
def test_joints_without_an_axis_are_moved_too(kind, tmp_path):
    T = pose(quaternion_matrix(np.array([0.8, 0.2, -0.4, 0.4])), np.array([3.0, -2.0, 1.0]))
    keys = {"spring": {"stiffness": 9.0}, "rope": {"distance": 0.6}, "distance": {"distance": 0.5}}.get(kind)
    place = {"anchor": (0, 0, 0.5)} if keys is None else {"parent_anchor": (0, 0, 0.5), "child_anchor": (0, 0, 0)}
    scene = abd.Scene()
    scene.add_body("bob", box=(0.1, 0.2, 0.3), velocity=(1, 0, 0))
    scene.add_joint(kind, "tie", "world", "bob", **place, **(keys or {}))
    scene.transformed(T).save(tmp_path / "moved.toml")
    one, two = run(scene, 5), run(abd.load(tmp_path / "moved.toml"), 5)
    assert np.allclose(two.bodies["bob"].transform, T @ one.bodies["bob"].transform, atol=1e-8)


def test_prescribed_motions_and_local_axes_are_moved_too():
    T = pose(quaternion_matrix(np.array([0.5, 0.5, -0.5, 0.5])), np.array([0.0, 1.0, 0.0]))
    scene = abd.Scene(gravity=(0, 0, 0))
    moving = {"formulas": {"x": "0.1 * t", "ry": "0.2 * t"}}
    scene.add_body("hand", box=(0.1, 0.1, 0.1), kind="kinematic", motion=moving)
    keyframes = [{"time": 0.0, "position": (0, 2, 0)}, {"time": 1.0, "position": (0, 3, 0), "quaternion": (0.8, 0.6, 0, 0)}]
    scene.add_body("foot", box=(0.1, 0.1, 0.1), kind="kinematic", position=(0, 2, 0), motion={"keyframes": keyframes})
    scene.add_body("rod", box=(0.1, 0.1, 0.5), mass=1.0, position=(0, 0, 0.5), quaternion=(0.9, 0.0, 0.3, 0.0))
    scene.add_hinge(
        "wrist", "hand", "rod", parent_anchor=(0, 0, 0.5), parent_axis=(0, 1, 0), child_anchor=(0, 0, 0), child_axis=(0, 1, 0),
    )
    one, two = run(scene, 5), run(scene.transformed(T), 5)
    for name in ("hand", "foot", "rod"):
        assert np.allclose(two.bodies[name].transform, T @ one.bodies[name].transform, atol=1e-6)
    assert np.allclose(two.coordinates, one.coordinates, atol=1e-6)


def test_impossible_changes_of_scenes_are_refused(tmp_path):
    T = pose(quaternion_matrix(np.array([0.8, 0.2, -0.4, 0.4])), np.zeros(3))
    scene = abd.Scene()
    scene.add_body("a", box=(0.1, 0.1, 0.1), fix=["x"])
    with pytest.raises(SceneError, match=r"body\.a\.fix: world axes rotate with the scene"):
        scene.transformed(T)
    assert scene.transformed(pose(np.eye(3), np.ones(3))).body("a").position == (1.0, 1.0, 1.0)
    scene = abd.Scene()
    scene.add_body("a", box=(0.1, 0.1, 0.1))
    scene.add_body("b", box=(0.1, 0.1, 0.1), position=(1, 0, 0))
    scene.add_spherical("j", "a", "b", anchor=(0.5, 0, 0), constrained=("x", "y"))
    with pytest.raises(SceneError, match=r"joint\.j\.constrained"):
        scene.transformed(T)
    with pytest.raises(SceneError, match="must be positive"):
        scene.scaled(0.0)
    with pytest.raises(ValueError, match="pose"):
        scene.transformed(2.0 * np.eye(4))


@pytest.mark.parametrize("color", [-1, [-1.0, -1.0, -1.0, -1.0]])
def test_keys_of_other_programs_are_accepted(caplog, color):
    scene = abd.Scene()
    scene.add_body("a", box=(0.1, 0.1, 0.1))
    scene.add_body("b", box=(0.1, 0.1, 0.1), position=(1, 0, 0))
    with caplog.at_level("INFO", logger="abd"):
        scene.add_spherical(
            "exudyn", "a", "b", anchor=(0.5, 0, 0), constrainedAxes=[1, 0, 1], activeConnector=True, jointRadius=0.1,
            color=color, show=1,
        )
    assert "joint 'exudyn': constrainedAxes is read as constrained" in caplog.text
    joint = scene.joint("exudyn")
    assert joint.constrained == ("x", "z") and joint.active and joint.joint_radius == 0.1 and joint.color is None
    scene.add_joint("general", "six", "a", "b", anchor=(0.5, 0, 0), constrained=[1, 1, 1, 0, 0, 0])
    assert scene.joint("six").constrained == ("x", "y", "z")
    scene.add_hinge(
        "artisynth", "a", "b", anchor=(0.5, 0, 0), axis=(0, 0, 1), shaftLength=0.4, drawFrameC="ARROW", faceColor=[1, 0, 0],
    )
    joint = scene.joint("artisynth")
    assert joint.shaft_length == 0.4 and joint.draw_frame_c == "arrow" and joint.color == (1, 0, 0)
    scene.add_spherical("uipc", "a", "b", l_position=(0.5, 0, 0), r_position=(-0.5, 0, 0), strength_ratio=50.0, maxTilt=60.0)
    joint = scene.joint("uipc")
    assert joint.parent_anchor == (0.5, 0, 0) and joint.child_anchor == (-0.5, 0, 0) and joint.max_tilt_deg == 60.0
    assert len(scene.compile().joints) == 4
    for wrong in ({"constrained": [1, 2, 0]}, {"constrained": ["x"], "constrainedAxes": [1, 0, 0]}, {"l_geo_id": 0}):
        with pytest.raises(SceneError):
            scene.add_spherical("wrong", "a", "b", anchor=(0.5, 0, 0), **wrong)


def test_masses_that_count_in_the_stiffness():
    """Dynamic bodies count fully, static and kinematic ones by their given mass, the world not at all."""

    def ratio(**base) -> float:
        scene = abd.Scene()
        scene.add_body("base", box=(0.1, 0.1, 0.1), **base)
        scene.add_body("tip", box=(0.1, 0.1, 0.1), mass=3.0, position=(1, 0, 0))
        scene.add_spherical("j", "base", "tip", anchor=(0.5, 0, 0))
        return scene.compile().joints[0].stiffness_mass

    still = {"motion": {"velocity": (0, 0, 0)}}
    assert ratio(mass=5.0) == ratio(mass=5.0, kind="static") == ratio(mass=5.0, kind="kinematic", **still) == 8.0
    assert ratio() == pytest.approx(4.0) and ratio(kind="static") == ratio(kind="kinematic", **still) == 3.0
