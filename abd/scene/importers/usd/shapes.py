"""Colliders of a stage, each in the frame of its body, their materials and colours."""

from __future__ import annotations

import numpy as np

from abd.colors import to_srgb
from abd.rotations import pose, quaternion_matrix
from abd.scene.geometry import mass, shapes
from abd.scene.geometry.mesh_files import fans
from abd.scene.importers.compound import SUBDIVISIONS, Collider, color_key, hull
from abd.scene.importers.formats import free_name
from abd.scene.importers.usd.stage import Stage, UsdGeom, UsdShade


class Materials:
    """Materials that colliders name.

    Attributes:
        names: by path; tables: of the scene; densities: [kg/m^3] by path, 0 for those without one.
    """

    def __init__(self, stage: Stage):
        self.names: dict[str, str] = {}
        self.tables: list[dict] = []
        self.densities: dict[str, float] = {}
        taken = {"default"}
        for one in stage.of("RigidBodyMaterial"):
            path = str(one.primPath)
            name = free_name(path.rsplit("/", 1)[-1], taken)
            mu, rest, still = (float(value) for value in (one.dynamicFriction, one.restitution, one.staticFriction))
            if still != mu:
                stage.notes.append(f"material {path}: the dynamic friction {mu:g} is used, not the static friction {still:g}")
            if not (np.isfinite(mu) and mu >= 0.0 and 0.0 <= rest <= 1.0):
                stage.problem("friction or restitution is out of range", path, [mu, rest], "correct the stage")
                continue
            self.names[path] = name
            self.tables.append({"name": name, "mu": mu, "restitution": rest})
            self.densities[path] = float(one.density) * stage.mass / stage.length**3


def color_of(stage: Stage, path: str) -> list[float] | None:
    """Return the colour of a prim in sRGB, with an opacity below 1: its displayColor, or the diffuse one of its material."""
    prim = stage.prim(path)
    if prim.IsA(UsdGeom.Imageable):
        primvars = UsdGeom.PrimvarsAPI(prim)
        shown = primvars.FindPrimvarWithInheritance("displayColor")
        values = shown.Get() if shown and shown.HasAuthoredValue() else None
        if values is not None and len(values):
            color = np.mean(np.array(values, dtype=float), axis=0)
            faded = primvars.FindPrimvarWithInheritance("displayOpacity")
            opacity = faded.Get() if faded and faded.HasAuthoredValue() else None
            alpha = float(np.mean(opacity)) if opacity is not None and len(opacity) else 1.0
            return _rgba(color, alpha)
    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    shader = material.ComputeSurfaceSource()[0] if material else None
    given = shader.GetInput("diffuseColor") if shader else None
    value = given.Get() if given and not given.HasConnectedSource() else None
    return None if value is None else _rgba(np.array(value, dtype=float), 1.0)


def _rgba(color: np.ndarray, alpha: float) -> list[float] | None:
    rgba = np.append(to_srgb(color), alpha)
    return color_key(rgba) if np.isfinite(rgba).all() else None


KINDS = ("SphereShape", "CubeShape", "CapsuleShape", "Capsule1Shape", "CylinderShape", "Cylinder1Shape", "ConeShape")
KINDS = (*KINDS, "MeshShape", "SpherePointsShape", "PlaneShape", "CustomShape")
MOST_TRIANGLES = 1_000_000
FROM_Z = {"X": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), "Y": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])}
"""Rotations that take z to an axis."""


def rotation_of(quaternion) -> np.ndarray:
    """(3, 3) of a Gf.Quat."""
    q = np.array([quaternion.GetReal(), *quaternion.GetImaginary()], dtype=float)
    return quaternion_matrix(q / np.linalg.norm(q)) if np.isfinite(q).all() and q.any() else np.eye(3)


def collider(stage: Stage, kind: str, one) -> Collider | None:
    """Return the collider of a description; None, with a note, if it is not supported."""
    if not one.collisionEnabled:
        stage.notes.append(f"disabled collider {one.primPath} is ignored")
        return None
    L = stage.length
    position = stage.finite(one.localPos, one.primPath, "its position") * L
    place = pose(rotation_of(one.localRot), position)
    material = str(one.materials[0]) if len(one.materials) else ""
    out = Collider(str(one.primPath), place.copy(), frame=place, material=material)
    axis = str(getattr(one, "axis", "")).rsplit(".", 1)[-1]
    if axis in ("X", "Y", "Z"):
        out.place[:3, :3] = out.place[:3, :3] @ FROM_Z.get(axis, np.eye(3))
        _turn_to_axis(stage, one, axis, out)
    if (kind == "SphereShape" or axis in ("X", "Y", "Z")) and kind != "PlaneShape":
        scales = np.linalg.norm(stage.to_world(one.primPath)[:3, :3], axis=0)
        across = [scale for name, scale in zip("XYZ", scales) if name != axis]
        if max(across) > (1.0 + 1e-6) * min(across):
            stage.notes.append(f"collider {one.primPath} has different scales across its radius: the largest is used")
    if kind != "MeshShape" and stage.is_sheared(one.primPath):
        stage.notes.append(f"collider {one.primPath} is sheared: it has the shape without shear here")
    if kind == "SphereShape":
        out.make_sphere(float(_size(stage, one, one.radius)))
    elif kind == "CubeShape":
        # a scale that mirrors a box leaves it what it is
        sign = np.sign(UsdGeom.Cube(stage.prim(one.primPath)).GetSizeAttr().Get())
        out.make_box(2.0 * _size(stage, one, sign * np.abs(np.array(one.halfExtents))))
    elif kind in ("CapsuleShape", "Capsule1Shape"):
        return _capsule(stage, kind, one, out)
    elif kind in ("CylinderShape", "Cylinder1Shape", "ConeShape"):
        out.make_frustum(*_radii(stage, kind, one), 2.0 * float(_size(stage, one, one.halfHeight)))
    elif kind == "MeshShape":
        return _mesh(stage, one, out)
    elif kind == "SpherePointsShape":
        return _sphere_points(stage, one, out)
    elif kind == "PlaneShape":
        out.plane = True
    else:
        stage.notes.append(f"collider {one.primPath} is ignored: custom shapes are not supported")
        return None
    return out


def _turn_to_axis(stage: Stage, one, axis: str, out: Collider) -> None:
    """Rotate a round shape by half a turn if a scale mirrors it along its axis, since the parser does not."""
    own, body = (
        np.nan_to_num(stage.to_world(path)[:3, :3]) if stage.prim(path) else np.eye(3)
        for path in (one.primPath, one.rigidBody)
    )
    own = own[:, "XYZ".index(axis)]
    if np.linalg.lstsq(body, own, rcond=None)[0] @ out.place[:3, 2] < 0.0:
        out.place[:3, :3] = out.place[:3, :3] @ np.diag([1.0, -1.0, -1.0])


def _size(stage: Stage, one, value) -> np.ndarray:
    """Lengths [m], which must be positive."""
    size = np.asarray(value, dtype=float) * stage.length
    if not (np.isfinite(size).all() and (size > 0.0).all()):
        stage.problem("the size of the collider must be positive", one.primPath, size.tolist(), "correct size and scale")
        return np.ones_like(size)
    return size


def _radii(stage: Stage, kind: str, one) -> tuple[float, float]:
    if kind == "ConeShape":
        return float(_size(stage, one, one.radius)), 0.0
    if kind in ("CylinderShape", "CapsuleShape"):
        radius = float(_size(stage, one, one.radius))
        return radius, radius
    return float(_size(stage, one, one.bottomRadius)), float(_size(stage, one, one.topRadius))


def _capsule(stage: Stage, kind: str, one, out: Collider) -> Collider:
    half = float(_size(stage, one, one.halfHeight))
    low, high = _radii(stage, kind, one)
    if low == high:
        out.make_capsule(low, 2.0 * half)
        return out
    # the hull of two balls
    ball = shapes.sphere(1.0, SUBDIVISIONS)[0]
    ends = np.concatenate([low * ball - [0.0, 0.0, half], high * ball + [0.0, 0.0, half]])
    out.make_solid(*hull(ends))
    return out


def _sphere_points(stage: Stage, one, out: Collider) -> Collider | None:
    """Balls about points."""
    centers = stage.finite([point.center for point in one.spherePoints], one.primPath, "a point").reshape(-1, 3)
    radii = _size(stage, one, [point.radius for point in one.spherePoints])
    if len(centers) == 0:
        return None
    centers = centers * stage.length
    balls = [shapes.sphere(radius, SUBDIVISIONS) for radius in radii]
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in balls)])
    out.vertices = np.concatenate([vertices + center for (vertices, _), center in zip(balls, centers)])
    out.triangles = np.concatenate([faces + start for (_, faces), start in zip(balls, starts)])
    numbers = np.arange(len(centers))
    if (radii == radii[0]).all():
        out.round_vertices, out.points, out.radius = centers, numbers, float(radii[0])
    parts = [mass.thick(centers, numbers[k : k + 1, None], 1.0, float(radii[k])) for k in numbers]
    out.matter = mass.united(parts)
    return out


def _mesh(stage: Stage, one, out: Collider) -> Collider | None:
    """Return a mesh, or its hull, box or ball; for decompositions and simplifications the mesh itself."""
    mesh = UsdGeom.Mesh(stage.prim(one.primPath))
    attributes = mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()
    points, counts, corners = (attribute.Get() for attribute in attributes)
    if points is None or counts is None or corners is None or len(points) == 0:
        stage.problem("the mesh must have points and faces", one.primPath, remedy="correct the stage")
        return None
    vertices, scales = stage.finite(points, one.primPath, "a point of the mesh"), np.diag(np.array(one.meshScale, dtype=float))
    if stage.is_sheared(one.primPath):
        scales = _axes(stage, one, out)
    vertices = vertices @ scales.T * stage.length
    counts, corners = np.array(counts, dtype=np.int64), np.array(corners, dtype=np.int64)
    if (
        (counts < 3).any()
        or counts.sum() != len(corners)
        or corners.min(initial=0) < 0
        or corners.max() >= len(vertices)
    ):
        stage.problem("a face of the mesh has an index beyond its points", one.primPath, remedy="correct the stage")
        return None
    if counts.sum() - 2 * len(counts) > MOST_TRIANGLES:
        stage.problem(f"has more than {MOST_TRIANGLES} triangles", one.primPath, len(counts), "simplify the mesh")
        return None
    triangles = fans(counts, corners)
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        triangles = triangles[:, ::-1]
    if np.linalg.det(scales) < 0.0:
        triangles = triangles[:, ::-1]
    if mesh.GetHoleIndicesAttr().Get():
        stage.notes.append(f"{one.primPath}: holeIndices are ignored: its holes are closed by faces")
    how = str(one.approximation or "none")
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    if how in ("convexHull", "boundingCube", "boundingSphere"):
        if (high - low).min() <= 0.0 and how != "boundingSphere":
            stage.problem(f"a flat mesh cannot have a {how}", one.primPath, remedy='use the approximation "none"')
            return None
        if how == "convexHull":
            out.make_solid(*hull(vertices))
        elif how == "boundingCube":
            out.place = out.place @ pose(np.eye(3), 0.5 * (low + high))
            out.make_box(high - low)
        else:
            middle = 0.5 * (low + high)
            out.place = out.place @ pose(np.eye(3), middle)
            out.make_sphere(float(np.linalg.norm(vertices - middle, axis=1).max()))
        return out
    if how != "none":
        stage.notes.append(f"{one.primPath}: contact uses the mesh, not its {how}")
    if not out.make_mesh(vertices, triangles) and (high - low).min() > 0.0:
        out.matter = mass.solid(*hull(vertices), 1.0)
        stage.notes.append(f"{one.primPath} is open: without an explicit mass, the mass of its convex hull is used")
    return out


def _axes(stage: Stage, one, out: Collider) -> np.ndarray:
    """(3, 3) map from a prim to the frame of its collider, with scale and shear."""
    own, body = stage.to_world(one.primPath), stage.prim(one.rigidBody)
    frame = stage.placed(stage.to_world(one.rigidBody)) @ out.place if body else stage.placed(own)
    return frame[:3, :3].T @ own[:3, :3]
