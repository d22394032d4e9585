"""Bodies of a stage: rigid bodies with colliders, mass and motion; colliders without a rigid body become static bodies.

Masses follow `UsdPhysics.RigidBodyAPI.ComputeMassProperties`. The mass of a body replaces those of its colliders; otherwise each
collider has its own mass, or a mass from the first density of collider, body, material and 1000 kg/m^3. Centre of mass and
inertia of a body are given ones, or those of the colliders, which are given ones, or those of their shapes. If only the centre is
given, the inertia is about it, by the theorem of parallel axes.

A kinematic body moves by keyframes: its poses at the time samples, and between them where it does not move uniformly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from abd.errors import SceneError
from abd.rotations import pose, quaternion, rotation_vector, rotations
from abd.scene.geometry import mass
from abd.scene.geometry.mass import MassProperties
from abd.scene.importers.compound import Collider, frame_keys, keys
from abd.scene.importers.usd.shapes import KINDS, Materials, collider, color_of, rotation_of
from abd.scene.importers.usd.stage import Stage, UsdGeom, UsdPhysics
from abd.scene.schema.joint_schema import WORLD_NAME

DISTANCE, ANGLE = 1e-5, 1e-3
"""Largest deviations of position [m] and rotation [rad] from the motion of the stage."""
TESTED = (0.5, 0.382)
"""Fractions of the time between two keyframes at which they are compared with the stage; the second one finds full turns."""
DEEPEST = 16
"""Largest number of bisections between two time samples."""


def keyframes(stage: Stage, path: str) -> tuple[list[dict], np.ndarray] | None:
    """Return the keyframes of a prim that has time samples or is below one, and its pose (4, 4) at the start; None for others."""
    prim, samples = stage.prim(path), set()
    while prim and not prim.IsPseudoRoot():
        for op in UsdGeom.Xformable(prim).GetOrderedXformOps() if prim.IsA(UsdGeom.Xformable) else ():
            samples.update(op.GetTimeSamples())
        prim = prim.GetParent()
    if len(samples) < 2:
        return None
    rate, start = stage.usd.GetTimeCodesPerSecond(), stage.usd.GetStartTimeCode()
    start = start if stage.usd.HasAuthoredTimeCodeRange() else min(samples)

    def at(code: float) -> np.ndarray:
        return stage.placed(stage.to_world(path, code))

    codes = sorted({start, *(code for code in samples if code > start)})
    poses = [(start, at(start))]
    for end in codes[1:]:
        poses += _between(at, *poses[-1], end, at(end), DEEPEST)
    frames = [
        {"time": (code - start) / rate, "position": pose[:3, 3].tolist(), "quaternion": quaternion(pose[:3, :3]).tolist()}
        for code, pose in poses
    ]
    return frames, poses[0][1]


def _between(at: Callable[[float], np.ndarray], begin: float, first: np.ndarray, end: float, last: np.ndarray, depth: int):
    """Return the times and poses after the first one, up to the last one, whose interpolation is the motion of the stage."""
    turn = rotation_vector(last[:3, :3] @ first[:3, :3].T)
    for fraction in TESTED:
        exact = at(begin + fraction * (end - begin))
        rotation = rotations(fraction * turn[None])[0] @ first[:3, :3]
        position = (1.0 - fraction) * first[:3, 3] + fraction * last[:3, 3]
        turned = np.abs(exact[:3, :3] - rotation).max()
        if depth and (turned > ANGLE or np.linalg.norm(exact[:3, 3] - position) > DISTANCE):
            middle = 0.5 * (begin + end)
            pose = at(middle)
            return _between(at, begin, first, middle, pose, depth - 1) + _between(at, middle, pose, end, last, depth - 1)
    return [(end, last)]


WATER = 1000.0
"""Default density [kg/m^3]."""
EXACT = {"box", "sphere", "capsule"}
"""Shapes whose mass properties follow from their density in a scene; those of others are written as keys."""


@dataclass
class Body:
    """A body: name, path of its prim, pose (4, 4) [m], colliders, and whether it is dynamic."""

    name: str
    path: str
    pose: np.ndarray
    colliders: list[Collider] = field(default_factory=list)
    dynamic: bool = True
    keys: dict = field(default_factory=dict)


class Bodies:
    """All bodies of a stage.

    Attributes:
        all: in order; by_path: rigid bodies by the paths of their prims; of_collider: body by the path of a collider.
        names: used names; materials: of the bodies; prototypes: paths of bodies that exist as instances only.
    """

    def __init__(self, stage: Stage):
        self.stage, self.materials = stage, Materials(stage)
        self.all: list[Body] = []
        self.by_path: dict[str, Body] = {}
        self.of_collider: dict[str, Body] = {}
        self.prototypes: set[str] = set()
        self.names = {WORLD_NAME}
        for one in stage.of("RigidBody"):
            self._add_rigid(one)
        for kind in KINDS:
            for one in stage.of(kind):
                self._add_collider(kind, one)

    def tables(self) -> list[dict]:
        """Tables of the scene, with mass, colliders and materials."""
        for body in self.all:
            self._complete(body)
        return [{"name": body.name, **body.keys} for body in self.all]

    def _add_rigid(self, one) -> None:
        stage, path = self.stage, str(one.primPath)
        place = stage.placed(stage.finite(stage.to_world(path), path, "its transform"))
        body = Body(stage.free_name(path, self.names), path, place)
        body.dynamic = one.rigidBodyEnabled and not one.kinematicBody
        rotation = body.pose[:3, :3]
        velocity = rotation @ stage.finite(one.linearVelocity, path, "its velocity") * stage.length
        spin = rotation @ stage.finite(one.angularVelocity, path, "its angular velocity")
        if body.dynamic:
            body.keys["velocity"] = velocity.tolist()
            body.keys |= {"angular_velocity_deg": spin.tolist()} if spin.any() else {}
        elif not one.rigidBodyEnabled:
            body.keys["kind"] = "static"
            stage.notes.append(f"rigid body {path} is disabled and therefore static")
        else:
            body.keys |= self._motion(path, body, velocity, spin)
        if one.startsAsleep:
            stage.notes.append(f"rigid body {path}: startsAsleep is ignored")
        matrix = stage.to_world(path)[:3, :3].T
        if not np.isfinite(matrix).all() or np.linalg.det(matrix) <= 0.0:
            message = "the transform of a rigid body must be finite and must not mirror or flatten it"
            stage.problem(message, path, matrix.tolist(), "apply the scale to its geometry")
        if stage.is_sheared(path):
            stage.notes.append(f"rigid body {path} is sheared: the places of its colliders and joints are approximate")
        self.all.append(body)
        self.by_path[path] = body

    def _motion(self, path: str, body: Body, velocity: np.ndarray, spin: np.ndarray) -> dict:
        """Keys of a kinematic body: its time samples as keyframes, or its velocity."""
        found = keyframes(self.stage, path)
        if found is not None:
            frames, body.pose = found
            return {"kind": "kinematic", "motion": {"keyframes": frames}}
        if not velocity.any() and not spin.any():
            return {"kind": "static"}
        return {"kind": "kinematic", "motion": {"velocity": velocity.tolist(), "angular_velocity_deg": spin.tolist()}}

    def _add_collider(self, kind: str, one) -> None:
        stage, path = self.stage, str(one.primPath)
        shape = collider(stage, kind, one)
        if shape is None:
            return
        body = self.by_path.get(str(one.rigidBody))
        if body is None:
            # a collider by itself is its own body, or part of a disabled one: the description places it in neither
            place = stage.placed(stage.finite(stage.to_world(path), path, "its transform"))
            body = None if shape.plane else self._disabled_above(path)
            if body is None:
                own = np.eye(4) if shape.plane else place  # half-spaces have the frame of the world
                body = Body(stage.free_name(path, self.names), path, own, dynamic=False, keys={"kind": "static"})
                self.all.append(body)
            local = pose(rotation_of(one.localRot), np.array(one.localPos, dtype=float) * stage.length)
            shape.place = np.linalg.inv(body.pose) @ place @ np.linalg.inv(local) @ shape.place
        elif shape.plane:
            stage.notes.append(f"plane {path} of a rigid body is ignored: half-spaces cannot move")
            return
        self.of_collider[path] = body
        body.colliders.append(shape)

    def _disabled_above(self, path: str) -> Body | None:
        """The disabled rigid body that a prim is, or is below: UsdPhysics' parser attributes no collider to it."""
        while path:
            if path in self.by_path and self.by_path[path].keys.get("kind") == "static":
                return self.by_path[path]
            path = path.rpartition("/")[0]
        return None

    def _complete(self, body: Body) -> None:
        """Shape, pose, mass, material and colour of a body."""
        stage = self.stage
        planes = [one for one in body.colliders if one.plane]
        if planes:
            frame = body.pose @ planes[0].place
            normal, point = frame[:3, 2], frame[:3, 3]
            body.keys["half_space"] = {"normal": normal.tolist(), "offset": float(normal @ point)}
        else:
            body.keys |= keys(body.colliders) | frame_keys(body.pose)
            if body.dynamic:
                body.keys |= self._matter(body)
        names = {self.materials.names.get(one.material, "") for one in body.colliders}
        if len(names) > 1:
            stage.notes.append(
                f"{body.path} has colliders of several materials; that of {body.colliders[0].path} is used"
            )
        if body.colliders:
            name = self.materials.names.get(body.colliders[0].material)
            body.keys |= {"material": name} if name else {}
        color = next((found for one in body.colliders if (found := color_of(stage, one.path))), None)
        color = color or color_of(stage, body.path)
        body.keys |= {"color": color} if color else {}

    def _matter(self, body: Body) -> dict:
        """Return the mass keys: only the density if it suffices."""
        stage = self.stage
        own = _mass_api(stage, body.path)
        parts = [part for one in body.colliders if (part := self._part(one, body, own)) is not None]
        given = own.get("mass", 0.0)
        center, inertia = own.get("center"), self._inertia(body, own)
        if not parts:
            if given <= 0.0 or inertia is None:
                message = "a rigid body without a collider with a volume needs mass and inertia"
                stage.problem(message, body.path, given, "give physics:mass and physics:diagonalInertia, or a collider")
                return {}
            return {"mass": given, "center_of_mass": (np.zeros(3) if center is None else center).tolist(),
                    "inertia": inertia.tolist()}  # fmt: skip
        whole = mass.united([part for part, _ in parts])
        densities = {density for _, density in parts}
        if center is None and inertia is None and body.keys.keys() & EXACT and None not in densities:
            if given > 0.0:
                return {"mass": given}
            density = densities.pop()
            return {} if density == WATER else {"density": density}
        total = given if given > 0.0 else whole.mass
        middle = whole.center if center is None else center
        if inertia is None:
            arm = whole.center - middle
            inertia = total * (whole.inertia / whole.mass + arm @ arm * np.eye(3) - np.outer(arm, arm))
        inertia = 0.5 * (inertia + inertia.T)
        try:
            mass.second_moment_of_inertia(inertia)
        except SceneError as error:
            nearest = mass.nearest_inertia(inertia, 1e-3)
            message = (
                f"{error.problems[0].message}; the nearest possible one is {np.round(nearest, 9).tolist()}"
            )
            stage.problem(message, body.path, inertia.tolist(), "use it, or correct the inertia")
        return {"mass": float(total), "center_of_mass": middle.tolist(), "inertia": inertia.tolist()}

    def _part(self, one: Collider, body: Body, own: dict) -> tuple[MassProperties, float | None] | None:
        """Return the matter of a collider in its body, with its density, None if more than that is given."""
        stage, matter = self.stage, one.matter_in_body
        if matter is None:
            return None
        given = _mass_api(stage, one.path) if one.path != body.path else {}
        if given.get("mass", 0.0) > 0.0:
            density, known = given["mass"] / matter.mass, None
        else:
            candidates = (
                given.get("density", 0.0),
                own.get("density", 0.0),
                self.materials.densities.get(one.material, 0.0),
                WATER,
            )
            density = known = next(value for value in candidates if value > 0.0)
        total, center, second = density * matter.mass, matter.center, density * matter.second_moment
        if "center" in given:
            arm = center - (one.frame[:3, :3] @ given["center"] + one.frame[:3, 3])
            center, second, known = center - arm, second + total * np.outer(arm, arm), None
        if "inertia" in given:
            axes = one.frame[:3, :3] @ given.get("axes", np.eye(3))
            second, known = axes @ np.diag(0.5 * given["inertia"].sum() - given["inertia"]) @ axes.T, None
        return MassProperties(total, matter.volume, center, second), known

    def _inertia(self, body: Body, own: dict) -> np.ndarray | None:
        """(3, 3) inertia about the centre of mass that a body is given [kg m^2]; Newton's full tensor counts first."""
        stage = self.stage
        unit = stage.mass * stage.length**2
        full = stage.newton(stage.prim(body.path), "inertia")
        if full is not None and len(full) in (6, 9):
            values = stage.finite(full, body.path, "its inertia") * unit
            return values.reshape(3, 3) if len(values) == 9 else mass.symmetric_tensor(*values)
        if "inertia" not in own:
            return None
        R = own.get("axes", np.eye(3))
        return R @ np.diag(own["inertia"]) @ R.T


def _mass_api(stage: Stage, path: str) -> dict:
    """Return the values of a prim's MassAPI in SI: mass, density, center, inertia (3,) and axes (3, 3), as far as given."""
    prim = stage.prim(path)
    if not prim.HasAPI(UsdPhysics.MassAPI):
        return {}
    api, out, L, M = UsdPhysics.MassAPI(prim), {}, stage.length, stage.mass
    for name, attribute, unit in (("mass", api.GetMassAttr(), M), ("density", api.GetDensityAttr(), M / L**3)):
        value = attribute.Get()
        if value is not None and value != 0.0:
            value = float(stage.finite(value, path, f"its {name}")) * unit
            if value < 0.0:
                stage.problem(f"its {name} should not be negative", path, value, "correct the stage")
            out[name] = value
    center = api.GetCenterOfMassAttr().Get()
    if center is not None and api.GetCenterOfMassAttr().HasAuthoredValue() and not np.isneginf(list(center)).any():
        # given in the prim's own space, scale included
        scale = np.linalg.norm(stage.to_world(path)[:3, :3], axis=0)
        out["center"] = stage.finite(center, path, "its centre of mass") * scale * L
    inertia = api.GetDiagonalInertiaAttr().Get()
    if inertia is not None and any(value != 0.0 for value in inertia):
        out["inertia"] = stage.finite(inertia, path, "its inertia") * M * L**2
        axes = api.GetPrincipalAxesAttr().Get()
        if axes is not None and (axes.GetReal() or any(axes.GetImaginary())):
            out["axes"] = rotation_of(axes)
    return out
