"""USD stages with UsdPhysics: every joint, shape, unit and filter."""


import numpy as np
import pytest
from robot_samples import vertices as corners
from usd_maker import WORLD, Maker, apply, create, hold, of_faces

import abd
from abd.rotations import quaternion_matrix
from abd.scene.geometry import shapes

pxr = pytest.importorskip("pxr", reason="needs usd-core: pip install 'abd-solver[usd]'")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics  # noqa: E402


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path / "stage.usda")


def assert_same_points(found: np.ndarray, expected: np.ndarray, within: float) -> None:
    """Assert that two sets of points are equal, in any order."""
    apart = np.linalg.norm(found[:, None] - expected[None], axis=2)
    assert apart.min(axis=1).max() < within and apart.min(axis=0).max() < within


def test_primitives_have_the_poses_of_usd(maker):
    turn, at = (20, -50, 110), (1.0, 2.0, 3.0)
    maker.shape("box", UsdGeom.Cube, at, turn, size=1.0)
    maker.shape("ball", UsdGeom.Sphere, (6, 2, 3), turn, radius=0.4)
    maker.shape("tube", UsdGeom.Cylinder, (11, 2, 3), turn, radius=0.2, height=1.0, axis="X")
    maker.shape("pill", UsdGeom.Capsule, (16, 2, 3), turn, radius=0.2, height=1.0, axis="Y")
    maker.shape("hat", UsdGeom.Cone, (21, 2, 3), turn, radius=0.3, height=1.0, axis="X")
    scene = maker.load()
    cache = UsdGeom.BBoxCache(0.0, ["default"])
    for name in ("box", "tube", "hat"):
        found = corners(scene, name)
        box = cache.ComputeRelativeBound(maker.stage.GetPrimAtPath(f"{WORLD}/{name}"), maker.stage.GetPseudoRoot())
        # the box about the prim in its own axes, as a body has it
        inverse = np.array(box.GetMatrix().GetInverse())
        own = np.column_stack([found, np.ones(len(found))]) @ inverse
        size = np.array(box.GetRange().GetSize())
        np.testing.assert_allclose(np.ptp(own[:, :3], axis=0), size, rtol=6e-3, err_msg=name)
        np.testing.assert_allclose(own[:, :3].min(axis=0), box.GetRange().GetMin(), atol=3e-3, err_msg=name)
    assert scene.body("ball").sphere.radius == pytest.approx(0.4)
    pill = scene.body("pill")
    assert pill.radius == pytest.approx(0.2)
    axis = np.diff(corners(scene, "pill"), axis=0)[0]
    world = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(maker.stage.GetPrimAtPath(f"{WORLD}/pill"))).T
    np.testing.assert_allclose(np.abs(axis), np.abs(world[:3, 1]), atol=1e-6)


def test_scales_of_parents_reach_shapes_frames_and_joints(maker):
    root = UsdGeom.Xform.Define(maker.stage, f"{WORLD}/big").GetPrim()
    maker.place(root, (1, 0, 0), (0, 0, 90), (2, 2, 2))
    body = maker.frame("link", (0, 1, 0), parent=f"{WORLD}/big")
    maker.shape("part", UsdGeom.Cube, (0.5, 0, 0), scale=(1, 2, 3), body=False, parent=str(body.GetPath()), size=1.0)
    maker.joint("pivot", UsdPhysics.RevoluteJoint, None, body, (-1.0, 0, 0.5), (0, 0, 0.25), axis="Z")
    scene = maker.load()
    found = corners(scene, "link")
    box = UsdGeom.BBoxCache(0.0, ["default"]).ComputeWorldBound(body).ComputeAlignedRange()
    np.testing.assert_allclose(found.min(axis=0), box.GetMin(), atol=1e-6)
    np.testing.assert_allclose(found.max(axis=0), box.GetMax(), atol=1e-6)
    assert scene.joint("pivot").child_frame.position == pytest.approx((0, 0, 0.5))


def test_centimetres_grams_and_y_up(tmp_path):
    maker = Maker(tmp_path / "cm.usda", up="Y", metres=0.01, kilograms=0.001)
    maker.scene(981.0, (0, -1, 0))
    body = maker.shape("box", UsdGeom.Cube, (0, 100, 0), size=10.0)
    inertia = Gf.Vec3f(1e4, 1.2e4, 1.5e4)
    apply(UsdPhysics.MassAPI, body, mass=500.0, diagonalInertia=inertia, centerOfMass=Gf.Vec3f(1, 0, 0))
    create(UsdPhysics.RigidBodyAPI(body), velocity=Gf.Vec3f(50, 0, 0), angularVelocity=Gf.Vec3f(0, 0, 90))
    hinge = maker.joint(
        "hinge", UsdPhysics.RevoluteJoint, None, body, (0, 100, 0), axis="Z", breakForce=1e5, breakTorque=1e7
    )
    apply(UsdPhysics.DriveAPI, hinge, "angular", stiffness=2e6, damping=1e5, targetPosition=30.0, maxForce=4e7)
    scene = maker.load()
    assert scene.gravity == pytest.approx((0, -9.81, 0))
    box, joint = scene.body("box"), scene.joint("hinge")
    assert box.position == pytest.approx((0, 1, 0)) and box.box == pytest.approx((0.1, 0.1, 0.1))
    assert box.mass == pytest.approx(0.5) and box.center_of_mass == pytest.approx((0.01, 0, 0))
    np.testing.assert_allclose(np.diag(box.inertia), [1e-3, 1.2e-3, 1.5e-3], rtol=1e-6)
    assert box.velocity == pytest.approx((0.5, 0, 0)) and box.angular_velocity_deg == pytest.approx((0, 0, 90))
    # 2e6 g cm^2/s^2 per degree are 0.2 N m per degree
    assert joint.drive.stiffness == pytest.approx(0.2 * 180 / np.pi)
    assert joint.drive.damping == pytest.approx(0.01 * 180 / np.pi)
    assert joint.drive.target_deg == 30.0 and joint.drive.effort == pytest.approx(4.0)
    assert joint.break_force == pytest.approx(1.0) and joint.break_torque == pytest.approx(1.0)


INERTIA, CENTER = Gf.Vec3f(1, 2, 2.5), Gf.Vec3f(0.3, 0.1, -0.2)
AXES = Gf.Quatf(0.5, 0.5, -0.5, 0.5)
MASSES = {
    # name: values of the mass API of the body, and of its two colliders
    "nothing": ({}, {}, {}),
    "densities": ({"density": 10.0}, {"density": 30.0}, {}),
    "density and mass": ({"density": 10.0}, {"density": 30.0}, {"mass": 5.0}),
    "centre of the body": ({"centerOfMass": CENTER}, {}, {}),
    "mass and centre of the body": ({"mass": 2.0, "centerOfMass": CENTER}, {}, {"mass": 7.0}),
    "centre of a collider": ({}, {"centerOfMass": CENTER}, {}),
    "centre and mass of a collider": ({"density": 3.0}, {"centerOfMass": CENTER, "mass": 2.0}, {}),
    "inertia of a collider": ({}, {"diagonalInertia": INERTIA, "principalAxes": AXES, "mass": 2.0}, {"density": 5.0}),
    "mass of the body, all of a collider": (
        {"mass": 6.0}, {"diagonalInertia": INERTIA, "centerOfMass": CENTER, "mass": 2.0}, {"mass": 1.0}
    ),
    "all": (
        {"mass": 6.0, "diagonalInertia": INERTIA, "principalAxes": AXES, "centerOfMass": CENTER},
        *({"mass": 1.0, "centerOfMass": CENTER}, {}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", MASSES)
def test_masses_are_those_of_open_usd(maker, name, count):
    """Cubes that are turned and scaled, in a body that is scaled, against `ComputeMassProperties`."""
    body = maker.frame("body", (1, 2, 3), (10, 20, 30), (2, 2, 2))
    places = [{"at": (0, 0, 0), "scale": (1, 0.5, 2)}, {"at": (1.5, 0.2, 0), "turn": (20, -50, 110), "scale": (0.3, 1, 0.8)}]
    for k, place in enumerate(places[:count]):
        maker.shape(f"part{k}", body=False, parent=str(body.GetPath()), size=1.0, **place)
    for prim, values in zip((body, *body.GetChildren()), MASSES[name]):
        if values:
            apply(UsdPhysics.MassAPI, prim, **values)

    def shape_of(prim):
        place = places[int(prim.GetName()[-1])]
        x, y, z = (2.0 * side for side in place["scale"])
        shape = UsdPhysics.RigidBodyAPI.MassInformation()
        shape.volume, shape.centerOfMass = x * y * z, Gf.Vec3f(0)
        shape.inertia = Gf.Matrix3f(np.diag(x * y * z / 12 * np.array([y * y + z * z, z * z + x * x, x * x + y * y])).tolist())
        local = UsdGeom.XformCache().GetLocalTransformation(prim)[0].RemoveScaleShear()
        shape.localPos, shape.localRot = Gf.Vec3f(2.0 * local.ExtractTranslation()), Gf.Quatf(local.ExtractRotationQuat())
        return shape

    total, moments, center, turn = UsdPhysics.RigidBodyAPI(body).ComputeMassProperties(shape_of)
    axes = quaternion_matrix(np.array([turn.GetReal(), *turn.GetImaginary()]))
    scene = maker.load()
    bodies, given = scene.compile().bodies, scene.body("body")
    assert bodies.mass[0] == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(np.sort(bodies.moment[0].sum() - bodies.moment[0]), np.sort(moments), rtol=1e-5)
    if given.inertia is not None:
        np.testing.assert_allclose(given.center_of_mass, center, atol=1e-6)
        np.testing.assert_allclose(given.inertia, axes @ np.diag(moments) @ axes.T, atol=1e-5 * max(moments))


ROUND = {
    # kind: volume and squared radii of gyration along the axis and about it, r = 0.1, h = 0.4
    UsdGeom.Sphere: (4e-3 / 3, 0.2e-2, 0.2e-2),
    UsdGeom.Capsule: (4e-3 + 4e-3 / 3, None, None),
    UsdGeom.Cylinder: (4e-3, 0.16 / 12, 0.25e-2),
    UsdGeom.Cone: (4e-3 / 3, 0.16 * 3 / 80, 0.15e-2),
}


@pytest.mark.parametrize("axis", "XYZ")
@pytest.mark.parametrize("kind", ROUND)
def test_round_shapes_have_the_mass_of_round_bodies(maker, kind, axis):
    volume, along, about = ROUND[kind]
    maker.shape("one", kind, radius=0.1, **({} if kind is UsdGeom.Sphere else {"height": 0.4, "axis": axis}))
    bodies = maker.load().compile().bodies
    assert bodies.mass[0] == pytest.approx(1000 * np.pi * volume, rel=1e-6)
    if along is not None:
        right = bodies.mass[0] * np.where(np.arange(3) == "XYZ".index(axis), along, about)
        np.testing.assert_allclose(np.sort(bodies.moment[0]), np.sort(right), rtol=1e-6)


def test_non_uniformly_scaled_round_shapes_are_reported(maker):
    for k, (kind, scale) in enumerate([(UsdGeom.Sphere, (1, 2, 1)), (UsdGeom.Cylinder, (1, 2, 1)), (UsdGeom.Cone, (2, 2, 1))]):
        maker.shape(f"s{k}", kind, scale=scale)
    told = [note for note in maker.load().notes if "different scales" in note]
    assert len(told) == 2 and "s0" in told[0] and "s1" in told[1]


@pytest.mark.parametrize("how", ["none", "convexHull"])
@pytest.mark.parametrize("kind", ["dynamic", "disabled", "static"])
def test_sheared_meshes_have_the_vertices_of_usd(maker, kind, how):
    """A mesh that is turned below a prim with different scales; other shapes have a note."""
    root = UsdGeom.Xform.Define(maker.stage, f"{WORLD}/scaled").GetPrim()
    maker.place(root, (1, 2, 0), (0, 0, 20), (1, 3, -1))
    parent = root if kind == "static" else maker.frame("body", (10, 0, 0), scale=(1, 1, -1), parent=str(root.GetPath()))
    if kind == "disabled":
        UsdPhysics.RigidBodyAPI(parent).CreateRigidBodyEnabledAttr(False)
    points, faces = shapes.box((1.0, 2.0, 0.5))
    place = {"at": (0.3, 0, 0), "turn": (0, 0, 45), "parent": str(parent.GetPath())}
    mesh = maker.shape("mesh", UsdGeom.Mesh, body=False, **place, **of_faces(points, faces))
    apply(UsdPhysics.MeshCollisionAPI, mesh, approximation=how)
    maker.shape("cube", UsdGeom.Cube, (0, 0, 5), (0, 0, 45), body=False, parent=str(root.GetPath()))
    scene, matrix = maker.load(), np.array(UsdGeom.XformCache().GetLocalToWorldTransform(mesh))
    name = "mesh" if kind == "static" else "body"
    assert_same_points(corners(scene, name), (np.column_stack([points, np.ones(8)]) @ matrix)[:, :3], 1e-6)
    assert [note.split()[1] for note in scene.notes if "sheared" in note] == [f"{WORLD}/scaled/cube"]
    if kind == "dynamic":
        assert scene.compile().bodies.mass[0] == pytest.approx(3000.0)


def test_holes_of_meshes_are_reported(maker):
    maker.shape("mesh", UsdGeom.Mesh, holeIndices=[0, 1], **of_faces(*shapes.box((1.0, 1.0, 1.0))))
    assert any("holeIndices are ignored" in note for note in maker.load().notes)


def test_meshes_hulls_and_bounds(maker):
    points = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    for k, how in enumerate(("none", "convexHull", "boundingCube", "boundingSphere", "convexDecomposition")):
        prim = maker.shape(how, UsdGeom.Mesh, (0, 3 * k, 0), scale=(1, 2, 1), **of_faces(points, faces))
        UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(how)
    scene = maker.load()
    masses = dict(zip(scene.compile().bodies.names, scene.compile().bodies.mass))
    assert masses["none"] == masses["convexDecomposition"] == pytest.approx(2000.0)
    assert masses["convexHull"] == pytest.approx(2000.0) and masses["boundingCube"] == pytest.approx(2000.0)
    assert masses["boundingSphere"] == pytest.approx(1000 * 4 / 3 * np.pi * 1.5**1.5, rel=1e-6)
    np.testing.assert_allclose(np.ptp(corners(scene, "none"), axis=0), [1, 2, 1], rtol=1e-6)
    assert any("not its convexDecomposition" in note for note in scene.notes)


@pytest.mark.parametrize("chosen", [np.arange(12, 24), [14]], ids=["all", "one"])
def test_parts_of_a_mesh_that_face_inwards_have_mass(maker, chosen):
    vertices, sides = shapes.box((1.0, 1.0, 1.0))
    points, faces = np.concatenate([vertices, 0.5 * vertices + [3, 0, 0]]), np.concatenate([sides, sides + 8])
    faces[chosen] = faces[chosen][:, ::-1]
    apply(UsdPhysics.MassAPI, maker.shape("one", UsdGeom.Mesh, **of_faces(points, faces)), density=8.0)
    scene = maker.load()
    assert scene.body("one").mass == pytest.approx(9.0) and scene.body("one").center_of_mass == pytest.approx((1 / 3, 0, 0))


def test_static_colliders_planes_and_kinematic_motion(maker):
    maker.shape("floor", UsdGeom.Plane, (0, 0, 0.5), body=False, axis="Z")
    maker.shape("wall", UsdGeom.Cube, (0, 2, 1), (0, 0, 30), (1, 0.1, 1), body=False, size=1.0)
    mover = maker.shape("mover", UsdGeom.Cube, (0, 0, 0), size=0.2)
    UsdPhysics.RigidBodyAPI(mover).CreateKinematicEnabledAttr(True)
    maker.stage.SetTimeCodesPerSecond(10)
    maker.times(0, 20)
    move = UsdGeom.Xformable(mover).GetOrderedXformOps()[0]
    for code, x in ((0, 0.0), (20, 4.0)):
        move.Set(Gf.Vec3d(x, 0, 3), code)
    scene = maker.load()
    floor = scene.body("floor").half_space
    assert floor.normal == pytest.approx((0, 0, 1)) and floor.offset == pytest.approx(0.5)
    assert scene.body("wall").kind == "static" and scene.output.duration == pytest.approx(2.0)
    model = scene.compile()
    motion = model.motions[list(model.bodies.names).index("mover")]
    np.testing.assert_allclose(motion(1.0)[:3, 3], [2, 0, 3], atol=1e-12)


TURNS = {
    # name: samples (code, degrees about z) of a parent and of the body, distance of the body from its parent [m]
    "half a turn": ((), ((0, 0), (24, 180)), 0.0),
    "three quarters of a turn": ((), ((0, 0), (24, 270)), 0.0),
    "one turn": ((), ((0, 0), (24, 360)), 0.0),
    "eight turns and back": ((), ((0, 0), (12, 2880), (24, 0)), 0.0),
    "arm": (((0, 0), (24, 120)), (), 1.0),
    "arm and body": (((0, 0), (12, 90), (24, -400)), ((6, 10), (24, 300)), 0.5),
    "range that starts between samples": (((-10, 0), (24, 360)), ((-5, 10), (24, 300)), 0.5),
}


@pytest.mark.parametrize("name", TURNS)
def test_kinematic_bodies_follow_the_time_samples(maker, name):
    of_parent, own, distance = TURNS[name]
    arm = UsdGeom.Xform.Define(maker.stage, f"{WORLD}/arm")
    body = maker.shape("body", at=(distance, 0, 0), parent=f"{WORLD}/arm", size=0.1)
    UsdPhysics.RigidBodyAPI(body).CreateKinematicEnabledAttr(True)
    for form, samples in ((arm, of_parent), (UsdGeom.Xformable(body), own)):
        turn = form.AddRotateZOp()
        for code, angle in samples:
            turn.Set(angle, code)
    maker.times(0, 24)
    model = maker.load().compile()
    for time in np.linspace(0.0, 1.0, 98):
        expected = np.array(UsdGeom.XformCache(24.0 * time).GetLocalToWorldTransform(body)).T
        np.testing.assert_allclose(model.motions[0](time)[:3, :3], expected[:3, :3], atol=2e-3)
        np.testing.assert_allclose(model.motions[0](time)[:3, 3], expected[:3, 3], atol=2e-5)


def test_poses_that_are_only_time_samples_are_those_at_the_start(maker):
    lift = UsdGeom.Xform.Define(maker.stage, f"{WORLD}/lift")
    forms = [lift, *(UsdGeom.Xformable(maker.shape(name, body=dynamic, parent=f"{WORLD}/lift", size=0.2))
                     for name, dynamic in (("box", True), ("wall", False)))]  # fmt: skip
    for form, x in zip(forms, (0, 1, 3)):
        form.ClearXformOpOrder()
        move = form.AddTranslateOp(opSuffix="late")
        for code in (0, 10, 34):
            move.Set(Gf.Vec3d(x, 0, code), code)
    maker.times(10, 34)
    scene = maker.load()
    assert [scene.body(name).position for name in ("box", "wall")] == [(1, 0, 20), (3, 0, 20)]
    assert any("time samples" in note and "lift/box" in note and "lift/wall" in note for note in scene.notes)


def test_disabled_body_with_a_plane_and_a_box(maker):
    base = maker.frame("base", (0, 0, 1))
    UsdPhysics.RigidBodyAPI(base).CreateRigidBodyEnabledAttr(False)
    maker.shape("plane", UsdGeom.Plane, (0, 0, 0.5), body=False, parent=str(base.GetPath()), axis="Z")
    maker.shape("box", UsdGeom.Cube, (3, 0, 2), body=False, parent=str(base.GetPath()), size=1.0)
    scene = maker.load()
    assert scene.body("plane").half_space.offset == pytest.approx(1.5)
    assert corners(scene, "base").mean(axis=0) == pytest.approx((3, 0, 3))


ANCHORS = {
    # shape: whether the body is enabled and kinematic
    "none": (False, True), "own": (True, True), "child": (False, False), "open": (False, True), "mass": (True, True),
}  # fmt: skip


@pytest.mark.parametrize("shape", ANCHORS)
def test_anchors_need_no_mass_and_keep_their_colliders(maker, shape):
    """An immobile body that is turned and lifted carries a box on a hinge, with its collider in place."""
    place = {"at": (0, 0, 1), "turn": (0, 90, 0)}
    if shape == "own":
        base = maker.shape("base", size=0.3, **place)
    elif shape == "open":
        base = maker.shape("base", UsdGeom.Mesh, **place, **of_faces([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]))
    else:
        base = maker.frame("base", **place)
    if shape == "child":
        maker.shape("part", at=(0.1, 0, 0), size=0.3, body=False, parent="/World/base")
    if shape == "mass":
        UsdPhysics.MassAPI.Apply(base).CreateMassAttr(3.0)
    enabled, kinematic = ANCHORS[shape]
    create(UsdPhysics.RigidBodyAPI(base), rigidBodyEnabled=enabled, kinematicEnabled=kinematic)
    arm = maker.shape("arm", at=(0.5, 0, 2), size=0.2)
    maker.joint("hinge", UsdPhysics.RevoluteJoint, base, arm, (-1, 0, 0), (-0.5, 0, 0), axis="Y")
    maker.scene()
    scene = maker.load()
    assert [body.name for body in scene.spec.body] == ["arm", "base"] and scene.joint("hinge").parent == "base"
    middle = {"own": (0, 0, 1), "child": (0, 0, 0.9), "open": (0, 0.5, 0.5)}.get(shape)
    if middle is not None:
        found = corners(scene, "base")
        np.testing.assert_allclose(0.5 * (found.min(axis=0) + found.max(axis=0)), middle, atol=1e-6)
    simulation = abd.run(scene, duration=0.1, device="numpy")
    np.testing.assert_array_equal(simulation.bodies["base"].position, (0, 0, 1))
    moved = simulation.bodies["arm"].position
    assert np.linalg.norm(moved - (0, 0, 2)) == pytest.approx(0.5, abs=1e-6) and moved[2] < 1.96


def test_prims_of_equal_names_get_distinct_names(maker):
    """The name of a prim does not change because of other paths."""
    for k, parent in enumerate(("A", "B", "C")):
        maker.stage.DefinePrim(f"/World/{parent}", "Xform")
        maker.shape("box", parent=f"/World/{parent}", at=(k, 0, 0), size=0.1)
    maker.shape("C_box", at=(3, 0, 0), size=0.1)
    scene = maker.load()
    assert {body.name: body.position[0] for body in scene.spec.body} == {"box": 0, "B_box": 1, "World_C_box": 2, "C_box": 3}
    assert {"/World/B/box has the name 'B_box' here", "/World/C/box has the name 'World_C_box' here"} <= {*scene.notes}


def test_materials_and_colours(maker):
    from pxr import UsdShade

    material = UsdShade.Material.Define(maker.stage, f"{WORLD}/rubber")
    values = {"dynamicFriction": 0.7, "staticFriction": 0.9, "restitution": 0.3, "density": 500.0}
    apply(UsdPhysics.MaterialAPI, material.GetPrim(), **values)
    prim = maker.shape("box", UsdGeom.Cube, size=1.0)
    UsdGeom.Gprim(prim).CreateDisplayColorAttr([Gf.Vec3f(1.0, 0.2140411, 0.0)])
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")
    scene = maker.load()
    box, (rubber,) = scene.body("box"), scene.spec.material
    assert box.material == rubber.name == "rubber" and box.density == pytest.approx(500.0)
    assert (rubber.mu, rubber.restitution) == pytest.approx((0.7, 0.3))
    assert scene.body("box").color == pytest.approx((1.0, 0.5, 0.0), abs=1e-5)
    assert any("the dynamic friction 0.7 is used" in note for note in scene.notes)


def test_instances_have_bodies_of_their_own(maker):
    source = UsdGeom.Xform.Define(maker.stage, "/Part")
    maker.shape("brick", UsdGeom.Cube, parent="/Part", body=True, size=0.1)
    for k in range(3):
        copy = UsdGeom.Xform.Define(maker.stage, f"{WORLD}/copy{k}")
        copy.AddTranslateOp().Set(Gf.Vec3d(k, 0, 1))
        copy.GetPrim().GetReferences().AddInternalReference(source.GetPath())
        copy.GetPrim().SetInstanceable(True)
    source.GetPrim().SetSpecifier(Sdf.SpecifierClass)
    scene = maker.load()
    assert [body.name for body in scene.spec.body] == ["brick", "copy1_brick", "copy2_brick"]
    assert sorted(body.position[0] for body in scene.spec.body) == [0.0, 1.0, 2.0]


def test_instances_of_a_point_instancer_have_the_poses_of_usd(maker):
    many = UsdGeom.PointInstancer.Define(maker.stage, f"{WORLD}/many")
    Maker.place(many.GetPrim(), (0, 0, 2), (0, 0, 90))
    parent = f"{WORLD}/many/prototypes"
    UsdGeom.Xform.Define(maker.stage, parent)
    brick = maker.shape("brick", at=(0.5, 0, 0), scale=(1, 0.5, 0.5), parent=parent, size=0.2)
    UsdPhysics.MassAPI.Apply(brick).CreateMassAttr(3.0)
    group = UsdGeom.Xform.Define(maker.stage, f"{parent}/group")
    ball = maker.shape("ball", UsdGeom.Sphere, (0, 0, 0.3), parent=f"{parent}/group", radius=0.1)
    maker.shape("post", UsdGeom.Cylinder, parent=f"{parent}/group", body=False, radius=0.05, height=0.4)
    many.CreatePrototypesRel().SetTargets([brick.GetPath(), group.GetPath()])
    half = float(np.sqrt(0.5))
    plain, turned = Gf.Quath(1), Gf.Quath(half, half, 0, 0)
    create(
        many, protoIndices=[0, 1, 0, 1, 0], positions=[(k, 0, 0) for k in range(5)],
        orientations=[plain, turned, turned, plain, plain], scales=[*[(1, 1, 1)] * 4, (2, 2, 2)],
    )  # fmt: skip
    many.InvisId(3, Usd.TimeCode.Default())
    joint = maker.joint("joint", UsdPhysics.FixedJoint, None, ball)
    scene = maker.load()
    names = [body.name for body in scene.spec.body]
    assert sorted(names) == ["ball_1", "brick_0", "brick_2", "post_1"]
    model = scene.compile()
    assert model.bodies.mass[names.index("brick_0")] == pytest.approx(3.0)
    now, Many = Usd.TimeCode.Default(), UsdGeom.PointInstancer
    maps = many.ComputeInstanceTransformsAtTime(now, now, Many.IncludeProtoXform, Many.IgnoreMask)
    to_world = UsdGeom.XformCache().GetLocalToWorldTransform(many.GetPrim())
    cube = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    for number in (0, 2):
        whole = np.array(maps[number] * to_world)
        # orientations have half precision
        assert_same_points(corners(scene, f"brick_{number}"), cube @ whole[:3, :3] + whole[3, :3], 2e-3)
    whole = np.array(Gf.Matrix4d().SetTranslate(Gf.Vec3d(0, 0, 0.3)) * maps[1] * to_world)
    np.testing.assert_allclose(scene.spec.body[names.index("ball_1")].position, whole[3, :3], atol=1e-3)
    assert scene.spec.body[names.index("post_1")].kind == "static"
    notes = " | ".join(scene.notes)
    for told in ("1 scaled or mirrored instances of /World/many", f"joint {joint.GetPath()} is ignored: it connects"):
        assert told in notes


def test_instancers_within_prototypes_have_instances_in_each_instance(maker):
    path = f"{WORLD}/rows"
    for one, step in ((path, (0, 5, 0)), (f"{path}/row", (1, 0, 0))):
        many = create(UsdGeom.PointInstancer.Define(maker.stage, one), protoIndices=[0, 0], positions=[(0, 0, 0), step])
        many.CreatePrototypesRel().SetTargets([f"{path}/row" if one == path else f"{one}/brick"])
    maker.shape("brick", at=(0, 0, 2), parent=f"{path}/row", size=0.2)
    found = sorted(tuple(body.position) for body in maker.load().spec.body)
    assert found == [(0, 0, 2), (0, 5, 2), (1, 0, 2), (1, 5, 2)]


@pytest.mark.parametrize("kind", ["Mesh", "Cube", "Sphere", "Capsule", "Cylinder", "Cone"])
def test_mirrored_colliders_keep_their_outer_side_and_mass(maker, kind):
    keys = {"Cube": {"size": 0.4}, "Sphere": {"radius": 0.2}}.get(kind, {"radius": 0.1, "height": 0.3, "axis": "Z"})
    if kind == "Mesh":
        faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
        keys = of_faces([(0, 0, 0), (0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.5)], faces)
    for name, scale, at in (("plain", (1, 1, 1), 0.0), ("mirrored", (1, 1, -1), 3.0)):
        maker.frame(name, (at, 0, 0))
        maker.shape("part", getattr(UsdGeom, kind), (0.1, 0, 0), (0, 40, 0), scale, False, f"{WORLD}/{name}", **keys)
    scene = maker.load()
    model, mirror = scene.compile(), np.diag([1.0, 1.0, -1.0])
    names = list(model.bodies.names)
    masses = model.bodies.mass[[names.index("plain"), names.index("mirrored")]]
    assert masses[0] > 0.0 and masses[1] == pytest.approx(masses[0], rel=1e-6)
    turn = np.array(Gf.Matrix3d(Gf.Rotation(Gf.Vec3d(0, 1, 0), 40))).T
    plain = (corners(scene, "plain") - [0.1, 0, 0]) @ turn
    assert_same_points(corners(scene, "mirrored"), plain @ mirror @ turn.T + [3.1, 0, 0], 1e-6)


def pair(maker):
    """Two boxes that touch no one."""
    return maker.shape("a", at=(0, 0, 1), size=0.2), maker.shape("b", at=(1, 0, 1), size=0.2)


@pytest.mark.parametrize("axis", ["X", "Y", "Z"])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_hinges_and_sliders_along_every_axis(maker, kind, axis):
    a, b = pair(maker)
    schema = UsdPhysics.RevoluteJoint if kind == "revolute" else UsdPhysics.PrismaticJoint
    maker.joint("j", schema, a, b, (0.5, 0, 0), (-0.5, 0, 0), axis=axis, lowerLimit=-0.4, upperLimit=0.3)
    scene = maker.load(overrides=["gravity=[0, 0, 0]"])
    joint = scene.joint("j")
    assert joint.type == ("hinge" if kind == "revolute" else "slider") and joint.parent == "a"
    assert (joint.range_deg if kind == "revolute" else joint.range) == pytest.approx((-0.4, 0.3))
    model = scene.compile()
    to_world = model.user_transform(model.bodies.q)[0] @ np.linalg.inv(model.bodies.body_frame[0])
    found = to_world @ model.joints[0].parent_frame
    np.testing.assert_allclose(found[:3, 2], np.eye(3)["XYZ".index(axis)], atol=1e-12)
    np.testing.assert_allclose(found[:3, 3], [0.5, 0, 1], atol=1e-7)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "kind, limits",
    [
        ("revolute", (None, 5.0)), ("revolute", (-90.0, 5.0)), ("revolute", (0.0, 0.0)), ("prismatic", (None, 5.0)),
        ("prismatic", (5.0, 5.0)), ("d6", (None, 5.0)), ("d6", (5.0, 5.0)),
    ],
)  # fmt: skip
def test_bodies_come_to_rest_at_their_limits(maker, kind, limits, swapped):
    """This includes ranges with one bound and with two equal bounds; units are degrees and decimetres."""
    maker.scene(9.81, direction=(1, 0, 0))
    arm = maker.frame("arm", (0, 0, 0.5))
    apply(UsdPhysics.MassAPI, arm, mass=1.0, diagonalInertia=Gf.Vec3f(0.1, 0.1, 0.1))
    scale = (0.1 if kind == "prismatic" else 1.0) * (-1.0 if swapped else 1.0)
    low, high = (None if end is None else scale * end for end in (limits[::-1] if swapped else limits))
    ends = [(None, (0, 0, 0)), (arm, (0, 0, -0.5))]
    (first, at0), (second, at1) = ends[::-1] if swapped else ends
    schema = {"revolute": UsdPhysics.RevoluteJoint, "prismatic": UsdPhysics.PrismaticJoint, "d6": UsdPhysics.Joint}[kind]
    joint = maker.joint("j", schema, first, second, at0, at1)
    if kind == "d6":
        hold(joint, "transX", "transY", "transZ", "rotX", "rotZ")
        one, names = UsdPhysics.LimitAPI.Apply(joint, "rotY"), ("low", "high")
    else:
        one, names = create(schema(joint), axis="Y" if kind == "revolute" else "X"), ("lowerLimit", "upperLimit")
    create(one, **{name: end for name, end in zip(names, (low, high), strict=True) if end is not None})
    simulation = abd.run(maker.load(overrides=["solver.dt=0.005"]), duration=0.6, device="cpu")
    x, _, z = simulation.bodies["arm"].position
    found = x / 0.1 if kind == "prismatic" else np.degrees(np.arctan2(x, z))
    assert found == pytest.approx(limits[1], abs=0.6)


@pytest.mark.parametrize("swapped", [False, True])
def test_joint_to_the_world_on_either_side_has_the_same_range_and_target(maker, swapped):
    """With the world as body 1 the coordinate of USD has the other sign."""
    maker.scene(0.0)
    arm = maker.shape("arm", at=(0.5, 0, 0), size=0.2)
    ends = [(None, (0, 0, 0)), (arm, (-0.5, 0, 0))]
    (first, at0), (second, at1) = ends[::-1] if swapped else ends
    low, high, target = (-70.0, 10.0, -40.0) if swapped else (-10.0, 70.0, 40.0)
    limits = {"axis": "Y", "lowerLimit": low, "upperLimit": high}
    joint = maker.joint("j", UsdPhysics.RevoluteJoint, first, second, at0, at1, **limits)
    apply(UsdPhysics.DriveAPI, joint, "angular", stiffness=2.0, damping=0.5, targetPosition=target)
    scene = maker.load()
    assert scene.joint("j").range_deg == pytest.approx((-10, 70)) and scene.joint("j").drive.target_deg == 40.0
    simulation = abd.run(scene, duration=0.15, device="cpu")
    assert simulation.bodies["arm"].position[2] < -0.005, "turned by the drive about +y"


@pytest.mark.parametrize("kind", [UsdGeom.Cube, UsdGeom.Plane])
def test_bodies_do_not_collide_with_the_static_collider_of_their_joint(maker, kind):
    base = maker.shape("base", kind, (0, 0, 1), (0, 0, 90), body=False)
    arm = maker.shape("arm", at=(0, 1.4, 1), size=1.0)
    maker.joint("j", UsdPhysics.RevoluteJoint, base, arm, (1, 0, 0), (0, -0.4, 0), axis="Z")
    simulation = abd.Simulation(maker.load(), device="numpy")
    simulation.step()
    np.testing.assert_allclose(simulation.bodies["arm"].position, (0, 1.4, 1), atol=1e-6)


def test_ball_with_a_cone_fixed_rod_and_rope(maker):
    a, b = pair(maker)
    c, d, e = (maker.shape(name, at=(2 + k, 0, 1), size=0.2) for k, name in enumerate("cde"))
    maker.joint("ball", UsdPhysics.SphericalJoint, a, b, (0.5, 0, 0), (-0.5, 0, 0), axis="X", coneAngle0Limit=30.0,
                coneAngle1Limit=45.0)  # fmt: skip
    maker.joint("weld", UsdPhysics.FixedJoint, b, c, (0.5, 0, 0), (-0.5, 0, 0), collisionEnabled=True)
    maker.joint("rod", UsdPhysics.DistanceJoint, c, d, minDistance=1.0, maxDistance=1.0)
    maker.joint("rope", UsdPhysics.DistanceJoint, d, e, minDistance=-1.0, maxDistance=1.5)
    scene = maker.load()
    types = {joint.name: joint.type for joint in scene.spec.joint}
    assert types == {"ball": "spherical", "weld": "fixed", "rod": "distance", "rope": "rope"}
    assert scene.joint("ball").max_tilt_deg == 30.0 and scene.joint("weld").collide
    assert scene.joint("rod").distance == 1.0 and scene.joint("rope").distance == 1.5
    assert any("round here, of 30" in note for note in scene.notes)


@pytest.mark.parametrize("angles", [(30.0, -1.0), (-1.0, 30.0)])
def test_cone_with_a_free_angle_is_ignored_with_a_note(maker, angles):
    first, second = pair(maker)
    limits = {"coneAngle0Limit": angles[0], "coneAngle1Limit": angles[1]}
    maker.joint("ball", UsdPhysics.SphericalJoint, first, second, (0.5, 0, 0), (-0.5, 0, 0), axis="X", **limits)
    scene = maker.load()
    assert scene.joint("ball").max_tilt_deg is None and any("limit of 30 degrees is ignored" in note for note in scene.notes)


def test_d6_limits_give_constrained_and_free_axes(maker):
    a, b = pair(maker)
    joint = maker.joint("six", UsdPhysics.Joint, a, b, (0.5, 0, 0), (-0.5, 0, 0))
    hold(joint, "transY", "transZ", "rotX", "rotY")
    apply(UsdPhysics.LimitAPI, joint, "rotZ", low=-20.0, high=50.0)
    apply(UsdPhysics.DriveAPI, joint, "transX", damping=3.0, targetVelocity=0.25)
    apply(UsdPhysics.DriveAPI, joint, "rotZ", stiffness=2.0, maxForce=-1.0)
    weld = maker.joint("weld", UsdPhysics.Joint, b, maker.shape("c", at=(2, 0, 1), size=0.2), (0.5, 0, 0), (-0.5, 0, 0))
    hold(weld, "transX", "transY", "transZ", "rotX", "rotY", "rotZ")
    scene = maker.load()
    six = scene.joint("six")
    assert six.type == "general" and set(six.constrained) == {"y", "z", "rx", "ry"}
    assert six.coordinate["rz"].range_deg == (-20.0, 50.0)
    assert six.coordinate["rz"].drive is None and any("its drive is ignored" in note for note in scene.notes)
    assert six.coordinate["x"].drive.mode == "velocity" and six.coordinate["x"].drive.target == pytest.approx(0.25)
    assert scene.joint("weld").type == "fixed"


def test_newton_attributes_are_used(maker):
    scene = maker.scene()
    scene.CreateAttribute("newton:timeStepsPerSecond", Sdf.ValueTypeNames.Int).Set(200)
    a, b = pair(maker)
    c = maker.shape("c", at=(2, 0, 1), size=0.2)
    first = maker.joint("first", UsdPhysics.RevoluteJoint, a, b, (0.5, 0, 0), (-0.5, 0, 0), axis="Y")
    second = maker.joint("second", UsdPhysics.PrismaticJoint, b, c, (0.5, 0, 0), (-0.5, 0, 0), axis="X")
    number = Sdf.ValueTypeNames.Float
    for name, value in (("armature", 0.02), ("friction", 0.5), ("velocityLimit", 90.0)):
        first.CreateAttribute(f"newton:{name}", number).Set(value)
    second.CreateRelationship("newton:mimicJoint").SetTargets([first.GetPath()])
    second.CreateAttribute("newton:mimicCoef1", number).Set(0.01)
    second.CreateAttribute("newton:contactMystery", number).Set(1.0)
    scene = maker.load()
    theta = scene.joint("first").coordinate["theta"]
    assert (theta.armature, theta.friction) == (pytest.approx(0.02), 0.5) and theta.velocity_limit_deg == 90.0
    assert scene.solver.dt == pytest.approx(1 / 200)
    coupling = scene.spec.coupling[0]
    assert coupling.coordinate == "second.z"
    assert coupling.terms[0].polynomial == pytest.approx((0.0, 0.01 * 180 / np.pi))
    assert "attribute newton:contactMystery is ignored (1 times)" in scene.notes
    scene.compile()


def test_groups_and_filtered_pairs(maker):
    prims = {name: maker.shape(name, at=(k, 0, 1), size=0.2) for k, name in enumerate("abcd")}
    for name, members in (("first", "ab"), ("second", "c")):
        group = UsdPhysics.CollisionGroup.Define(maker.stage, f"{WORLD}/{name}")
        group.GetCollidersCollectionAPI().CreateIncludesRel().SetTargets([prims[one].GetPath() for one in members])
    UsdPhysics.CollisionGroup(maker.stage.GetPrimAtPath(f"{WORLD}/first")).CreateFilteredGroupsRel().SetTargets(
        [f"{WORLD}/second"]
    )
    UsdPhysics.FilteredPairsAPI.Apply(prims["d"]).CreateFilteredPairsRel().SetTargets([prims["a"].GetPath()])
    scene = maker.load()
    assert sorted(tuple(one.bodies) for one in scene.spec.contact_filter) == [("a", "c"), ("a", "d"), ("b", "c")]


def test_a_group_without_contact_within_it_is_one_filter_of_whole_bodies(maker):
    """Of the colliders of the last body only one belongs to the group."""
    prims = [maker.shape(name, at=(k, 0, 1), size=0.2) for k, name in enumerate("abc")]
    last = maker.frame("d", (4, 0, 1))
    inner, _ = (maker.shape(f"d{k}", at=(0, 0, k), body=False, parent=f"{WORLD}/d", size=0.2) for k in (0, 1))
    group = UsdPhysics.CollisionGroup.Define(maker.stage, f"{WORLD}/group")
    group.GetCollidersCollectionAPI().CreateIncludesRel().SetTargets([one.GetPath() for one in (*prims, inner)])
    group.CreateFilteredGroupsRel().SetTargets([group.GetPath()])
    scene = maker.load()
    assert [tuple(one.bodies) for one in scene.spec.contact_filter] == [("a", "b", "c")]
    assert sum("filters between some colliders" in note and str(last.GetPath()) in note for note in scene.notes) == 3


@pytest.mark.parametrize("body_first", [True, False])
def test_a_filter_of_one_of_several_colliders_is_reported(maker, body_first):
    whole, other = maker.frame("whole", (0, 0, 1)), maker.shape("other", at=(9, 0, 1), size=0.2)
    parts = [maker.shape(f"part{k}", at=(k, 0, 0), size=0.2, body=False, parent=str(whole.GetPath())) for k in range(2)]
    ends = (other, parts[0])[:: 1 if body_first else -1]
    UsdPhysics.FilteredPairsAPI.Apply(ends[0]).CreateFilteredPairsRel().SetTargets([ends[1].GetPath()])
    scene = maker.load()
    assert not scene.spec.contact_filter and any("filters between some colliders" in note for note in scene.notes)
