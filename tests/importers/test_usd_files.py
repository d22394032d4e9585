"""USD stages: round trips by scene files, reports, rejected files."""

import zipfile

import pytest
from usd_maker import WORLD, Maker, apply, hold, of_faces

import abd
from abd.errors import SceneError

pxr = pytest.importorskip("pxr", reason="needs usd-core: pip install 'abd-solver[usd]'")
from pxr import Gf, Sdf, UsdGeom, UsdPhysics  # noqa: E402


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path / "stage.usda")


def pendulum(path):
    maker = Maker(path)
    maker.scene()
    maker.shape("floor", UsdGeom.Plane, body=False, axis="Z")
    a = maker.shape("a", at=(0.3, 0, 1), size=0.2)
    b = maker.shape("b", UsdGeom.Capsule, (0.9, 0, 1), radius=0.05, height=0.3)
    maker.joint("top", UsdPhysics.RevoluteJoint, None, a, (0, 0, 1), (-0.3, 0, 0), axis="Y")
    maker.joint("mid", UsdPhysics.SphericalJoint, a, b, (0.3, 0, 0), (-0.3, 0, 0))
    maker.stage.GetRootLayer().Save()
    return maker


def test_converted_stage_is_the_same_scene(maker):
    boxes = [maker.shape(f"box{k}", at=(0.5 * k, 0, 1), size=0.2) for k in range(8)]
    kinds = {
        "turns": (UsdPhysics.RevoluteJoint, {"axis": "Y", "lowerLimit": -40.0, "upperLimit": 60.0}),
        "slides": (UsdPhysics.PrismaticJoint, {"axis": "Z", "lowerLimit": -0.3, "upperLimit": 0.2}),
        "swings": (UsdPhysics.SphericalJoint, {"axis": "X", "coneAngle0Limit": 50.0, "coneAngle1Limit": 50.0}),
        "holds": (UsdPhysics.FixedJoint, {}),
        "ties": (UsdPhysics.DistanceJoint, {"maxDistance": 0.2}),
        "rod": (UsdPhysics.DistanceJoint, {"minDistance": 0.1, "maxDistance": 0.1}),
        "six": (UsdPhysics.Joint, {}),
    }
    for k, (name, (kind, keys)) in enumerate(kinds.items()):
        between = (0.2, 0, 0) if name in ("ties", "rod") else (0.25, 0, 0)
        prim = maker.joint(name, kind, boxes[k], boxes[k + 1], between, tuple(-x for x in between), **keys)
    hold(prim, "transX", "transY", "rotX", "rotY")
    apply(UsdPhysics.DriveAPI, prim, "rotZ", targetPosition=20.0, stiffness=1.0, damping=0.1)
    maker.joint("wall", UsdPhysics.FixedJoint, None, boxes[0], (0, 0, 1), (0, 0, 0))
    usd = maker.load()
    assert {joint.name for joint in usd.spec.joint} == {*kinds, "wall"}
    usd.save(maker.path.with_suffix(".toml"))
    native = abd.load(maker.path.with_suffix(".toml"))
    assert native == usd
    assert abd.Simulation(native, device="cpu").step().converged


@pytest.mark.parametrize("suffix", [".usd", ".usdc", ".usdz"])
def test_every_kind_of_file(tmp_path, suffix):
    from pxr import UsdUtils

    maker = pendulum(tmp_path / "one.usda")
    other = tmp_path / f"two{suffix}"
    if suffix == ".usdz":
        assert UsdUtils.CreateNewUsdzPackage(str(maker.path), str(other))
    else:
        maker.stage.GetRootLayer().Export(str(other))
    scene = abd.load(other)
    scene.name = "one"
    assert scene == abd.load(maker.path)


def test_unsupported_content_is_reported_once(maker):
    prim = maker.shape("box", size=0.2)
    prim.AddAppliedSchema("PhysxRigidBodyAPI")
    prim.CreateAttribute("physxRigidBody:solverPositionIterationCount", Sdf.ValueTypeNames.Int).Set(8)
    UsdPhysics.RigidBodyAPI(prim).CreateStartsAsleepAttr(True)
    off = maker.shape("ghost", at=(3, 0, 0), body=False)
    UsdPhysics.CollisionAPI(off).CreateCollisionEnabledAttr(False)
    loose = maker.joint("loose", UsdPhysics.RevoluteJoint, None, prim, axis="Z")
    UsdPhysics.Joint(loose).CreateJointEnabledAttr(False)
    many = UsdGeom.PointInstancer.Define(maker.stage, f"{WORLD}/many")
    many.CreatePrototypesRel().SetTargets([UsdGeom.Sphere.Define(maker.stage, f"{WORLD}/many/ball").GetPath()])
    notes = " | ".join(maker.load().notes)
    for told in ("schema PhysxRigidBodyAPI is ignored", "startsAsleep is ignored", "disabled collider /World/ghost",
                 "disabled joint /World/loose", "instances of /World/many without bodies",
                 "IterationCount is ignored"):  # fmt: skip
        assert told in notes


def refused(path, **options) -> str:
    with pytest.raises(SceneError) as caught:
        abd.load(path, **options)
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_invalid_stages_are_refused(tmp_path):
    maker = pendulum(tmp_path / "whole.usda")
    maker.stage.GetRootLayer().Export(str(tmp_path / "whole.usdc"))
    contents = {
        "truncated.usda": b'#usda 1.0\ndef Xform "World" {',
        "empty.usd": b"",
        "noise.usdc": bytes(range(256)) * 20,
        "cut.usdc": (tmp_path / "whole.usdc").read_bytes()[:1500],
        "no.usdz": b"PK\x03\x04 and nothing more",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert name in refused(tmp_path / name)


BOX = b'"PhysicsRigidBodyAPI"]\n    )\n    {\n        double size = 0.2'
INERTIA = b'string physics:diagonalInertia = "x"'


@pytest.mark.parametrize(
    "was, now, words",
    [
        (b"radius = 0.05", b"radius = nan", "/World/b: the size of the collider"),
        (b"radius = 0.05", b"radius = \xe9", "cannot be imported"),
        (b"(0.3, 0, 0)", b"(1e38, nan, 0)", "finite"),
        (BOX, BOX.replace(b'"]', b'", "PhysicsMassAPI"]').replace(b"double size = 0.2", INERTIA), "cannot be imported"),
    ],
)
def test_values_of_wrong_types_are_refused(was, now, words, tmp_path):
    content = pendulum(tmp_path / "whole.usda").path.read_bytes()
    assert was in content
    (tmp_path / "stage.usda").write_bytes(content.replace(was, now))
    assert words in refused(tmp_path / "stage.usda")


def test_compressed_packages_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.usdz", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("inner.usda", "#usda 1.0\n" + " " * 50_000_000)
    assert (tmp_path / "bomb.usdz").stat().st_size < 200_000
    assert "bomb.usdz" in refused(tmp_path / "bomb.usdz")


def test_missing_outside_and_cyclic_references_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    pendulum(tmp_path / "other.usda")
    maker = Maker(tmp_path / "a" / "stage.usda")
    maker.stage.DefinePrim("/World/x").GetReferences().AddReference("../other.usda")
    maker.stage.GetRootLayer().Save()
    assert "outside of its folder" in refused(maker.path)
    assert len(abd.load(maker.path, assets=[tmp_path]).spec.body) == 3
    (tmp_path / "b").mkdir()
    gone = Maker(tmp_path / "b" / "gone.usda")
    gone.shape("box", size=0.2)
    gone.stage.DefinePrim("/World/x").GetReferences().AddReference("nowhere.usda")
    gone.stage.GetRootLayer().Save()
    assert "nowhere.usda" in refused(gone.path)
    left = abd.load(gone.path, missing_meshes="boxes")
    assert any("nowhere.usda" in note for note in left.notes) and len(left.spec.body) == 1
    cycle = Maker(tmp_path / "b" / "cycle.usda")
    cycle.stage.DefinePrim("/World/x").GetReferences().AddInternalReference("/World")
    cycle.stage.GetRootLayer().Save()
    assert "cycle" in refused(cycle.path).lower()


def two_targets(maker, box):
    other = maker.shape("other", at=(3, 0, 0), size=0.2)
    joint = maker.joint("j", UsdPhysics.RevoluteJoint, box, other, axis="Z")
    joint.GetRelationship("physics:body0").AddTarget(other.GetPath())


def nowhere(maker, box):
    place = (float("inf"), float("nan"), 0)
    part = maker.shape("part", at=place, scale=(1, 0.5, 2), body=False, parent=str(maker.frame("a").GetPath()), size=1.0)
    apply(UsdPhysics.MassAPI, part, mass=2.0, centerOfMass=Gf.Vec3f(0.3, 0.1, -0.2))


def held(*axes):
    """A change that adds a joint of six axes with the world as its second body."""
    return lambda maker, box: hold(maker.joint("j", UsdPhysics.Joint, box), *axes)


BROKEN = {
    # name: change of a stage with a box, words of the message
    "mass": (lambda maker, box: apply(UsdPhysics.MassAPI, box, mass=float("nan")), "not finite"),
    "place of a part": (nowhere, "part: its position is not finite"),
    "gravity": (lambda maker, box: maker.scene(gravity=float("nan")), "gravity is not finite"),
    "infinite gravity": (lambda maker, box: maker.scene(gravity=float("inf")), "gravity is not finite"),
    "inertia": (
        lambda maker, box: apply(UsdPhysics.MassAPI, box, mass=1.0, diagonalInertia=Gf.Vec3f(1, 1, 9)),
        "the nearest possible one",
    ),
    "flat": (lambda maker, box: UsdGeom.Cube(box).GetSizeAttr().Set(0.0), "positive"),
    "mirror": (lambda maker, box: UsdGeom.Xformable(box).AddScaleOp().Set(Gf.Vec3f(-1, 1, 1)), "must not mirror"),
    "mesh": (lambda maker, box: maker.shape("mesh", UsdGeom.Mesh, **of_faces([(0, 0, 0)], [(0, 1, 7)])), "beyond its points"),
    "joint": (lambda maker, box: maker.joint("j", UsdPhysics.RevoluteJoint, box, box, axis="Z"), "to itself"),
    "two targets": (two_targets, "physics:body0 has 2 targets"),
    "slide that turns with body0": (held("transY", "transZ", "rotX", "rotY"), "exchange body0 and body1"),
    "two angles": (held("transX", "transY", "transZ", "rotY"), "exchange body0 and body1"),
    "bare": (lambda maker, box: maker.frame("bare", (5, 0, 0)), "without a collider with a volume"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_impossible_values_are_refused(maker, name):
    change, words = BROKEN[name]
    change(maker, maker.shape("box", size=0.2))
    maker.stage.GetRootLayer().Save()
    assert words in refused(maker.path)
