"""USD: poses with shear, exact round shapes, instances, colours, the validators of OpenUSD, and bounded memory."""

import numpy as np
import pytest
from exported_run import FRAMES, make, poses, rope_ends

from abd.errors import AbdError
from abd.export.formats import ExportError, export
from abd.optional import required

pxr = pytest.importorskip("pxr", reason="needs usd-core: pip install 'abd-solver[usd]'")
from pxr import Usd, UsdGeom, UsdValidation  # noqa: E402


@pytest.fixture(scope="module")
def stage(folder):
    return Usd.Stage.Open(str(export(folder, "usd").path))


def matrix_at(prim, code) -> np.ndarray:
    """(4, 4) map of a prim to the world, for column vectors."""
    return np.array(UsdGeom.XformCache(code).GetLocalToWorldTransform(prim)).T


def test_poses_are_exact_including_shear(stage, folder):
    names, expected = poses(folder)
    paths = [f"/World/Bodies/{name.replace(' ', '_')}" for name in names]
    paths[names.index("box_one")] += "_1"  # the name is taken by "box one"
    for body, path in enumerate(paths):
        for frame in range(FRAMES):
            assert (matrix_at(stage.GetPrimAtPath(path), frame) == expected[frame, body]).all(), path
    strain = np.abs(np.swapaxes(expected[..., :3, :3], 2, 3) @ expected[..., :3, :3] - np.eye(3)).max()
    assert strain > 1e-9, "the run has shear to keep"
    assert stage.GetPrimAtPath(paths[1]).GetDisplayName() == "box one"


def test_times_units_and_axes(stage):
    assert stage.GetTimeCodesPerSecond() == pytest.approx(100.0)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, FRAMES - 1)
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert stage.GetDefaultPrim().GetPath() == "/World"


def test_shapes_are_instances_and_round_ones_exact(stage):
    shapes = {name: stage.GetPrimAtPath(f"/World/Bodies/{name}/shape") for name in ("box_one", "box_one_1", "ball", "rod")}
    assert all(prim.IsInstance() for prim in shapes.values())
    assert shapes["box_one"].GetPrototype() == shapes["box_one_1"].GetPrototype()
    ball, rod = (shapes[name].GetPrototype().GetChildren()[0] for name in ("ball", "rod"))
    assert UsdGeom.Sphere(ball).GetRadiusAttr().Get() == 0.1
    capsule = UsdGeom.Capsule(rod)
    assert capsule.GetRadiusAttr().Get() == 0.1 and capsule.GetHeightAttr().Get() == pytest.approx(0.3)
    box = UsdGeom.BBoxCache(0.0, ["default"]).ComputeWorldBound(stage.GetPrimAtPath("/World/Bodies/rounded"))
    np.testing.assert_allclose(box.ComputeAlignedRange().GetSize(), [0.14, 0.14, 0.14], rtol=1e-6)


def test_colours_are_linear_and_inherited(stage):
    prim = stage.GetPrimAtPath("/World/Bodies/rounded")
    color = UsdGeom.PrimvarsAPI(prim).GetPrimvar("displayColor").Get()[0]
    np.testing.assert_allclose(color, [0.0, 0.21404114, 1.0], rtol=1e-6)
    faint = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/World/Bodies/box_one_1"))
    assert faint.GetPrimvar("displayOpacity").Get()[0] == 0.5


def test_rope_spans_its_ends(stage, folder):
    prim, ends = stage.GetPrimAtPath("/World/Joints/rope"), rope_ends(folder)
    for frame in range(FRAMES):
        found = matrix_at(prim, frame) @ np.array([[0, 0, 0, 1], [0, 0, 1, 1.0]]).T
        np.testing.assert_allclose(found[:3].T, ends[frame], atol=1e-12)


def test_openusd_validates_the_stage(stage):
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 10
    errors = UsdValidation.ValidationContext(validators).Validate(stage)
    assert [error.GetMessage() for error in errors] == []


def test_text_and_package_are_equal(folder, tmp_path, stage):
    for name in ("run.usda", "run.usdz", "run.usd"):
        path = export(folder, "usd", tmp_path / name).path
        other = Usd.Stage.Open(str(path))
        for body in ("ball", "box_one"):
            prims = [one.GetPrimAtPath(f"/World/Bodies/{body}") for one in (stage, other)]
            assert (matrix_at(prims[0], 3) == matrix_at(prims[1], 3)).all()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["run.usd", "run.usda", "run.usdz"]


def test_up_axis_follows_gravity(tmp_path):
    folder = make(tmp_path, gravity=(0.0, -9.81, 0.0))
    assert UsdGeom.GetStageUpAxis(Usd.Stage.Open(str(export(folder, "usd").path))) == "Y"


def test_wrong_arguments(folder, tmp_path):
    with pytest.raises(ExportError, match=r"suffix must be \.usdc"):
        export(folder, "usd", tmp_path / "x.glb")
    with pytest.raises(ExportError, match="no export to 'stl'"):
        export(folder, "stl")
    with pytest.raises(AbdError, match="there is no run"):
        export(tmp_path / "nothing", "usd")
    with pytest.raises(AbdError, match=r"drawing needs no-such-package.*pip install 'abd-solver\[usd\]'"):
        required("no_such_package", "usd", "no-such-package", "drawing")
