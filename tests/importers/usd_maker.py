"""Writes USD stages for tests of their import."""

from __future__ import annotations

import pytest

import abd

pxr = pytest.importorskip("pxr", reason="needs usd-core: pip install 'abd-solver[usd]'")
from pxr import Gf, Usd, UsdGeom, UsdPhysics  # noqa: E402

WORLD = "/World"


class Maker:
    """Writes a stage."""

    def __init__(self, path, up="Z", metres=1.0, kilograms=1.0):
        self.path, self.stage = path, Usd.Stage.CreateNew(str(path))
        UsdGeom.SetStageUpAxis(self.stage, up)
        UsdGeom.SetStageMetersPerUnit(self.stage, metres)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, kilograms)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, WORLD).GetPrim())

    def scene(self, gravity=9.81, direction=(0, 0, -1)):
        scene = UsdPhysics.Scene.Define(self.stage, f"{WORLD}/scene")
        scene.CreateGravityDirectionAttr(Gf.Vec3f(*direction))
        scene.CreateGravityMagnitudeAttr(gravity)
        return scene.GetPrim()

    def shape(
        self, name, kind=UsdGeom.Cube, at=(0, 0, 0), turn=None, scale=None, body=True, parent=WORLD, **attributes
    ):
        shape = kind.Define(self.stage, f"{parent}/{name}")
        for key, value in attributes.items():
            getattr(shape, f"Create{key[0].upper()}{key[1:]}Attr")(value)
        prim = shape.GetPrim()
        self.place(prim, at, turn, scale)
        UsdPhysics.CollisionAPI.Apply(prim)
        if body:
            UsdPhysics.RigidBodyAPI.Apply(prim)
        return prim

    def frame(self, name, at=(0, 0, 0), turn=None, scale=None, parent=WORLD):
        """An Xform that is a rigid body."""
        prim = UsdGeom.Xform.Define(self.stage, f"{parent}/{name}").GetPrim()
        self.place(prim, at, turn, scale)
        UsdPhysics.RigidBodyAPI.Apply(prim)
        return prim

    @staticmethod
    def place(prim, at, turn=None, scale=None):
        form = UsdGeom.Xformable(prim)
        form.AddTranslateOp().Set(Gf.Vec3d(*at))
        if turn is not None:
            form.AddRotateXYZOp().Set(Gf.Vec3f(*turn))
        if scale is not None:
            form.AddScaleOp().Set(Gf.Vec3f(*scale))

    def joint(self, name, kind, first=None, second=None, at0=(0, 0, 0), at1=(0, 0, 0), **attributes):
        joint = kind.Define(self.stage, f"{WORLD}/{name}")
        if first is not None:
            joint.CreateBody0Rel().SetTargets([first.GetPath()])
        if second is not None:
            joint.CreateBody1Rel().SetTargets([second.GetPath()])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*at0))
        joint.CreateLocalPos1Attr(Gf.Vec3f(*at1))
        for key, value in attributes.items():
            getattr(joint, f"Create{key[0].upper()}{key[1:]}Attr")(value)
        return joint.GetPrim()

    def load(self, **options):
        self.stage.GetRootLayer().Save()
        return abd.load(self.path, **options)
