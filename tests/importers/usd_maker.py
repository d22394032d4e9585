"""Writes USD stages for tests of their import."""

from __future__ import annotations

import numpy as np
import pytest

import abd

pxr = pytest.importorskip("pxr", reason="needs usd-core: pip install 'abd-solver[usd]'")
from pxr import Gf, Usd, UsdGeom, UsdPhysics  # noqa: E402

WORLD = "/World"


def create(schema, **attributes):
    """The schema with values of its attributes."""
    for key, value in attributes.items():
        getattr(schema, f"Create{key[0].upper()}{key[1:]}Attr")(value)
    return schema


def apply(schema, prim, *instance, **attributes):
    """Apply a schema to a prim, with values of its attributes."""
    return create(schema.Apply(prim, *instance), **attributes)


def hold(prim, *axes):
    """Let a joint of six axes hold some of them."""
    for axis in axes:
        apply(UsdPhysics.LimitAPI, prim, axis, low=1.0, high=-1.0)


def of_faces(points, faces):
    """Attributes of a mesh with these vertices and faces."""
    counts, indices = [len(face) for face in faces], np.ravel(faces).tolist()
    return {"points": np.asarray(points).tolist(), "faceVertexCounts": counts, "faceVertexIndices": indices}


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
        return create(scene, gravityDirection=Gf.Vec3f(*direction), gravityMagnitude=gravity).GetPrim()

    def shape(self, name, kind=UsdGeom.Cube, at=(0, 0, 0), turn=None, scale=None, body=True, parent=WORLD, **attributes):
        prim = create(kind.Define(self.stage, f"{parent}/{name}"), **attributes).GetPrim()
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

    def times(self, start, end):
        """Set the codes of the first and the last time."""
        self.stage.SetStartTimeCode(start)
        self.stage.SetEndTimeCode(end)

    def joint(self, name, kind, first=None, second=None, at0=(0, 0, 0), at1=(0, 0, 0), **attributes):
        joint = kind.Define(self.stage, f"{WORLD}/{name}")
        if first is not None:
            joint.CreateBody0Rel().SetTargets([first.GetPath()])
        if second is not None:
            joint.CreateBody1Rel().SetTargets([second.GetPath()])
        return create(joint, localPos0=Gf.Vec3f(*at0), localPos1=Gf.Vec3f(*at1), **attributes).GetPrim()

    def load(self, **options):
        self.stage.GetRootLayer().Save()
        return abd.load(self.path, **options)
