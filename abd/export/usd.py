"""USD: a stage of transforms with time samples, by `usd-core`.

Every body is an Xform with its affine map, shear included, as one matrix, with an instance of its shape. Exact balls
and rods are spheres and capsules, other shapes meshes with normals. Units are metres; z is up, or y if gravity acts
along y; one frame is one time code. Colours are displayColor, linear, on the Xform, and inherited by the shape.

Bodies are written in portions; text stages and packages are converted at the end.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from abd.colors import to_linear
from abd.export.formats import ExportError
from abd.export.scenery import Figure, Part, Scenery
from abd.optional import required
from abd.pictures.shapes import unit
from abd.rotations import pose
from abd.scene.geometry.frames import triad

Gf, Sdf, Tf, Usd, UsdUtils, Vt = (
    required(f"pxr.{name}", "usd", "usd-core", "export to USD") for name in ("Gf", "Sdf", "Tf", "Usd", "UsdUtils", "Vt")
)
SAVED_BYTES = 1 << 25
"""Bytes of poses after which the layer is saved: USD searches unsaved values for duplicates, which is slow beyond the cache."""
ROOT, BODIES, JOINTS, SHAPES = "/World", "/World/Bodies", "/World/Joints", "/Shapes"


def write(scenery: Scenery, path: Path) -> list[str]:
    """Write a stage; its suffix selects binary (.usdc, .usd), text (.usda) or a package (.usdz)."""
    diagnostics = UsdUtils.CoalescingDiagnosticDelegate()  # without it, USD prints each failed write
    with TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / f"{path.stem}.usdc"
        try:
            layer = Sdf.Layer.CreateNew(str(part))
            _Writer(layer, scenery).write()
            if path.suffix.lower() == ".usda":
                layer.Export(str(path))
            elif path.suffix.lower() == ".usdz":
                UsdUtils.CreateNewUsdzPackage(str(part), str(path))
            else:
                part.replace(path)
        except Tf.ErrorException as error:
            reasons = [*diagnostics.TakeUncoalescedDiagnostics(), *error.args]
            raise ExportError(f"{path} cannot be written: {getattr(reasons[0], 'commentary', reasons[0])}") from error
    return [f"{len(scenery.time)} frames of {len(scenery)} things, at {_rate(scenery.time):.6g} time codes per second, "
            f"by OpenUSD {'.'.join(map(str, Usd.GetVersion()[1:]))}"]  # fmt: skip


def _rate(time: np.ndarray) -> float:
    """Time codes per second, one code per frame."""
    span = float(time[-1] - time[0])
    return (len(time) - 1) / span if span > 0.0 else 24.0


def _codes(time: np.ndarray) -> list[float]:
    """Time code of each frame; integers for equidistant frames."""
    codes = (time - time[0]) * _rate(time)
    whole = np.round(codes)
    return np.where(np.abs(codes - whole) < 1e-6, whole, codes).tolist()


class _Writer:
    """Writes one layer."""

    def __init__(self, layer, scenery: Scenery):
        self.layer, self.scenery = layer, scenery
        self.codes = _codes(scenery.time)
        self.taken: set[str] = set()

    def write(self) -> None:
        """Write everything, thing by thing."""
        scenery = self.scenery
        with Sdf.ChangeBlock():
            self._heading()
            for number, figure in enumerate(scenery.figures):
                self._figure(f"{SHAPES}/shape_{number}", figure)
        markers: dict[int, list[Part]] = {}
        for marker in scenery.markers:
            markers.setdefault(marker.carrier, []).append(marker)
        waiting = 0
        for things, poses in scenery.by_things():
            with Sdf.ChangeBlock():
                for k, thing in enumerate(things):
                    parent = BODIES if thing < scenery.bodies else JOINTS
                    path = self._thing(parent, thing, poses[:, k])
                    for marker in markers.get(thing, ()):
                        inner, prim = self._named(path, marker.title.replace(" ", "_", 1), "Xform")
                        self._color(prim, marker.color)
                        self._instance(f"{inner}/shape", marker.figure)
            waiting += poses.nbytes
            if waiting >= SAVED_BYTES:
                self.layer.Save()
                waiting = 0
        self.layer.Save()

    def _heading(self) -> None:
        """Write metadata of the stage, and the root prims."""
        layer, root = self.layer, self.layer.pseudoRoot
        layer.defaultPrim = ROOT[1:]
        layer.documentation = f"{self.scenery.name}, exported by abd"
        for key, value in (("metersPerUnit", 1.0), ("kilogramsPerUnit", 1.0), ("upAxis", self.scenery.up)):
            root.SetInfo(key, value)
        layer.timeCodesPerSecond = layer.framesPerSecond = _rate(self.scenery.time)
        layer.startTimeCode, layer.endTimeCode = self.codes[0], self.codes[-1]
        for path in (ROOT, BODIES, JOINTS):
            self._prim(path, "Xform")
        self._prim(ROOT, "Xform").SetInfo("kind", "assembly")
        # classes are not drawn, only their instances
        self._prim(SHAPES, "Scope").specifier = Sdf.SpecifierClass

    def _prim(self, path: str, kind: str):
        prim = Sdf.CreatePrimInLayer(self.layer, path)
        prim.specifier, prim.typeName = Sdf.SpecifierDef, kind
        return prim

    def _attribute(self, prim, name: str, kind: str, value, uniform: bool = False, **info):
        variability = Sdf.VariabilityUniform if uniform else Sdf.VariabilityVarying
        spec = Sdf.AttributeSpec(prim, name, getattr(Sdf.ValueTypeNames, kind), variability)
        spec.default = value
        for key, text in info.items():
            spec.SetInfo(key, text)
        return spec

    def _color(self, prim, color: np.ndarray) -> None:
        rgb = Vt.Vec3fArray([Gf.Vec3f(*to_linear(color[:3]).tolist())])
        self._attribute(prim, "primvars:displayColor", "Color3fArray", rgb, interpolation="constant")
        if color[3] < 1.0:
            opacity = Vt.FloatArray([float(color[3])])
            self._attribute(prim, "primvars:displayOpacity", "FloatArray", opacity, interpolation="constant")

    def _thing(self, parent: str, thing: int, poses: np.ndarray) -> str:
        """Write the Xform of one thing with poses (T, 4, 4); returns its path."""
        scenery = self.scenery
        path, prim = self._named(parent, scenery.names[thing], "Xform")
        # row vectors: USD's matrices are transposed
        matrices = Vt.Matrix4dArray.FromNumpy(np.ascontiguousarray(np.swapaxes(poses, 1, 2)))
        spec = self._attribute(prim, "xformOp:transform", "Matrix4d", matrices[0])
        if (poses != poses[0]).any():
            deque(map(self.layer.SetTimeSample, repeat(spec.path), self.codes, matrices), maxlen=0)
        self._attribute(prim, "xformOpOrder", "TokenArray", Vt.TokenArray(["xformOp:transform"]), uniform=True)
        self._color(prim, scenery.colors[thing])
        if scenery.figure[thing] >= 0:
            self._instance(f"{path}/shape", int(scenery.figure[thing]))
        return path

    def _instance(self, path: str, figure: int) -> None:
        prim = self._prim(path, "Xform")
        prim.instanceable = True
        prim.referenceList.prependedItems.append(Sdf.Reference("", f"{SHAPES}/shape_{figure}"))

    def _named(self, parent: str, name: str, kind: str) -> tuple[str, object]:
        """Prim with a path derived from a name, which is its display name."""
        plain = Tf.MakeValidIdentifier(name)
        path, k = f"{parent}/{plain}", 1
        while path in self.taken or plain == "shape":
            plain = f"{Tf.MakeValidIdentifier(name)}_{k}"
            path, k = f"{parent}/{plain}", k + 1
        self.taken.add(path)
        prim = self._prim(path, kind)
        if plain != name:
            prim.SetInfo("displayName", name)
        return path, prim

    def _figure(self, path: str, figure: Figure) -> None:
        """Write a shape for instances."""
        self._prim(path, "Xform")
        if len(figure.balls) + len(figure.rods) == 0:
            self._mesh(f"{path}/mesh", figure)
        for k, ball in enumerate(figure.balls):
            self._round(self._prim(f"{path}/ball_{k}", "Sphere"), figure.radius, ball, ball)
        for k, (one, other) in enumerate(figure.rods):
            prim = self._prim(f"{path}/rod_{k}", "Capsule")
            self._attribute(prim, "height", "Double", float(np.linalg.norm(other - one)))
            self._attribute(prim, "axis", "Token", "Z", uniform=True)
            self._round(prim, figure.radius, one, other)

    def _round(self, prim, radius: float, one: np.ndarray, other: np.ndarray) -> None:
        """Place a sphere, or a capsule between two points."""
        self._attribute(prim, "radius", "Double", radius)
        half = np.array([radius, radius, radius + 0.5 * float(np.linalg.norm(other - one))])
        self._extent(prim, -half, half)
        matrix = pose(triad(unit(other - one)), 0.5 * (one + other))
        if (matrix != np.eye(4)).any():
            self._attribute(prim, "xformOp:transform", "Matrix4d", Gf.Matrix4d(matrix.T.tolist()))
            self._attribute(prim, "xformOpOrder", "TokenArray", Vt.TokenArray(["xformOp:transform"]), uniform=True)

    def _extent(self, prim, low: np.ndarray, high: np.ndarray) -> None:
        box = np.stack([low, high]).astype(np.float32)
        self._attribute(prim, "extent", "Float3Array", Vt.Vec3fArray.FromNumpy(box))

    def _mesh(self, path: str, figure: Figure) -> None:
        prim = self._prim(path, "Mesh")
        points = figure.vertices.astype(np.float32)
        self._attribute(prim, "points", "Point3fArray", Vt.Vec3fArray.FromNumpy(points))
        counts = np.full(len(figure.triangles), 3, dtype=np.int32)
        self._attribute(prim, "faceVertexCounts", "IntArray", Vt.IntArray.FromNumpy(counts))
        corners = np.ascontiguousarray(figure.triangles.ravel(), dtype=np.int32)
        self._attribute(prim, "faceVertexIndices", "IntArray", Vt.IntArray.FromNumpy(corners))
        normals = Vt.Vec3fArray.FromNumpy(figure.normals.astype(np.float32))
        self._attribute(prim, "normals", "Normal3fArray", normals, interpolation="vertex")
        self._attribute(prim, "subdivisionScheme", "Token", "none", uniform=True)
        if figure.open:
            self._attribute(prim, "doubleSided", "Bool", True, uniform=True)
        if len(points):
            self._extent(prim, points.min(axis=0), points.max(axis=0))
