"""An opened stage: its units, the objects that UsdPhysics finds, and the notes and problems of its import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from abd.errors import Problem, SceneError
from abd.optional import required
from abd.rotations import polar, pose
from abd.scene.importers.formats import ImportOptions, check_size, free_name

Tf, Usd, UsdGeom, UsdPhysics, UsdShade, UsdUtils = (
    required(f"pxr.{name}", "usd", "usd-core", "reading USD")
    for name in ("Tf", "Usd", "UsdGeom", "UsdPhysics", "UsdShade", "UsdUtils")
)

STANDARD_GRAVITY = 9.81
"""Default gravity of a stage [m/s^2]."""
SHEAR = 1e-6
"""Cosine between two axes of a prim above which it is sheared."""
MOST_BYTES = 1 << 30
"""Size of a stage's file [bytes]."""


@dataclass
class Stage:
    """An open stage.

    Attributes:
        usd: the `Usd.Stage`; path: its file; options: of the import.
        length: metres per unit; mass: kilograms per unit.
        found: descriptions of the UsdPhysics parser by type, such as "RigidBody".
        notes, problems: for the user.
        consumed: names of supported attributes and schemas outside UsdPhysics.
    """

    usd: object
    path: Path
    options: ImportOptions
    length: float = 1.0
    mass: float = 1.0
    found: dict[str, list] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)

    def of(self, *kinds: str) -> list:
        """Descriptions of some kinds."""
        return [one for kind in kinds for one in self.found.get(kind, ())]

    def prim(self, path):
        """A prim by its path."""
        return self.usd.GetPrimAtPath(path)

    def to_world(self, path, time: float | None = None) -> np.ndarray:
        """(4, 4) map from a prim to the world, in units of the stage; by default at the start time code."""
        code = self.usd.GetStartTimeCode() if time is None else time
        return np.array(UsdGeom.XformCache(code).GetLocalToWorldTransform(self.prim(path)), dtype=float).T

    def placed(self, matrix: np.ndarray) -> np.ndarray:
        """(4, 4) pose [m] of a map to the world (4, 4), without its scale."""
        axes, lengths = matrix[:3, :3], np.linalg.norm(matrix[:3, :3], axis=0)
        sound = np.isfinite(axes).all() and lengths.all()
        return pose(polar((axes / lengths)[None])[0] if sound else np.eye(3), matrix[:3, 3] * self.length)

    def is_sheared(self, path) -> bool:
        """Return whether the axes of a prim are not perpendicular in the world."""
        axes = self.to_world(path)[:3, :3]
        products, lengths = np.abs(axes.T @ axes), np.linalg.norm(axes, axis=0)
        return bool((products - np.diag(np.diag(products)) > SHEAR * np.outer(lengths, lengths)).any())

    def free_name(self, path: str, used: set[str]) -> str:
        """A name for a prim that is not among the used ones: its own, or the end of its path, with a note."""
        parts = path.strip("/").split("/")
        longer = ("_".join(parts[-k:]) for k in range(2, len(parts) + 1))
        names = (parts[-1], *(name for name in longer if name not in self._own_names))
        name = free_name(next((name for name in names if name not in used), "_".join(parts)), used)
        if name != parts[-1]:
            self.notes.append(f"{path} has the name '{name}' here")
        return name

    @cached_property
    def _own_names(self) -> set[str]:
        """Names of all prims that UsdPhysics finds."""
        return {str(one.primPath).rpartition("/")[2] for one in self.of(*self.found)}

    def newton(self, prim, name: str, default=None):
        """Return an attribute ``newton:name`` of a supported kind, if it is given."""
        self.consumed.add(f"newton:{name}")
        attribute = prim.GetAttribute(f"newton:{name}")
        return attribute.Get() if attribute and attribute.HasAuthoredValue() else default

    def newton_number(self, prim, name: str) -> float | None:
        """The same, of a number above 0; None for others."""
        value = self.newton(prim, name)
        return float(value) if value is not None and np.isfinite(value) and value > 0.0 else None

    def problem(self, message: str, path: object, value: object = None, remedy: str = "") -> None:
        """Add a problem of a prim."""
        self.problems.append(Problem(message, key=str(path), value=value, file=str(self.path), remedy=remedy))

    def finite(self, value, path: object, what: str) -> np.ndarray:
        """Return the value as numbers; zeros and a problem if they are not finite."""
        numbers = np.asarray(value, dtype=float)
        if not np.isfinite(numbers).all():
            self.problem(f"{what} is not finite", path, numbers.tolist(), "correct the stage")
            return np.zeros_like(numbers)
        return numbers

    def gravity(self) -> tuple[float, float, float]:
        """Return the gravity [m/s^2] of the scene prim; by default standard gravity along the up axis."""
        down = np.array([0.0, -1.0, 0.0] if UsdGeom.GetStageUpAxis(self.usd) == "Y" else [0.0, 0.0, -1.0])
        scenes = self.of("Scene")
        if len(scenes) > 1:
            self.notes.append(
                f"there are {len(scenes)} physics scenes; the settings of the first are used: {scenes[0].primPath}"
            )
        if not scenes:
            return tuple((STANDARD_GRAVITY * down).tolist())
        one, prim = scenes[0], self.prim(scenes[0].primPath)
        if self.newton(prim, "gravityEnabled", True) is False:
            return (0.0, 0.0, 0.0)
        direction = np.array(one.gravityDirection, dtype=float)
        magnitude = float(one.gravityMagnitude) * self.length
        if magnitude < 0.0:  # -inf: not given
            magnitude = STANDARD_GRAVITY
        size = np.linalg.norm(direction)
        magnitude = float(self.finite(magnitude, one.primPath, "gravity"))
        return tuple((magnitude * (direction / size if np.isfinite(size) and size > 0.0 else down)).tolist())

    def solver(self) -> dict:
        """Return the solver keys of the stage: its time step, if any."""
        for scene in self.of("Scene")[:1]:
            rate = self.newton(self.prim(scene.primPath), "timeStepsPerSecond")
            if rate is not None and rate > 0:
                return {"dt": 1.0 / float(rate)}
        return {}

    def output(self) -> dict:
        """Return the output keys of the stage: the length of its time range, if any."""
        if not self.usd.HasAuthoredTimeCodeRange():
            return {}
        span = (self.usd.GetEndTimeCode() - self.usd.GetStartTimeCode()) / self.usd.GetTimeCodesPerSecond()
        return {"duration": float(span)} if np.isfinite(span) and span > 0.0 else {}


def open_stage(path: Path, options: ImportOptions) -> Stage:
    """Open and parse a stage.

    Raises:
        SceneError: the stage cannot be opened, or refers to files that are missing or not allowed.
    """
    check_size(path, MOST_BYTES)
    # messages of OpenUSD become notes instead of terminal output
    diagnostics = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        stage = Usd.Stage.Open(str(path))
        parsed = _parse(stage)
    except Tf.ErrorException as error:
        raise SceneError.of(f"OpenUSD cannot read the stage: {_reason(error)}", file=str(path)) from None
    warnings = [_plain(message.commentary) for message in diagnostics.TakeUncoalescedDiagnostics()]
    out = Stage(stage, path, options, found=parsed)
    _refuse_elsewhere(out)
    missing = [_plain(str(error)) for error in stage.GetCompositionErrors()]
    if missing and options.missing_meshes == "fail":
        remedy = "correct the paths, give --assets DIR, or ignore them with --missing-meshes boxes"
        raise SceneError([Problem(f"a file of the stage is missing: {one}", file=str(path), remedy=remedy)
                          for one in dict.fromkeys(missing)])  # fmt: skip
    out.notes += [f"missing file is ignored: {one}" for one in dict.fromkeys(missing)]
    out.notes += [f"OpenUSD: {one}" for one in dict.fromkeys(warnings) if not missing]
    out.length, out.mass = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    for name, value in (("metersPerUnit", out.length), ("kilogramsPerUnit", out.mass)):
        if not (np.isfinite(value) and value > 0.0):
            raise SceneError.of(f"{name} must be positive, not {value}", file=str(path), value=value)
    return out


def _parse(stage) -> dict[str, list]:
    """Return the objects that the parser of UsdPhysics finds, by type."""
    load = getattr(UsdPhysics, "UsdPhysicsLoadStageFromPrimRange", None) or UsdPhysics.LoadUsdPhysicsFromRange
    found: dict[str, list] = {}
    # it does not look below point instancers
    for kind, (_, descriptions) in load(stage, ["/", *hidden_prototypes(stage)]).items():
        found.setdefault(str(kind).rsplit(".", 1)[-1], []).extend(
            sorted(descriptions, key=lambda one: str(one.primPath))
        )
    return found


def hidden_prototypes(stage) -> list[str]:
    """Paths of the prototypes below a point instancer, which are not drawn themselves."""
    found: dict[str, None] = {}
    instancers = [prim for prim in Usd.PrimRange(stage.GetPseudoRoot()) if prim.IsA(UsdGeom.PointInstancer)]
    above = [str(prim.GetPath()) + "/" for prim in instancers]
    for prim in instancers:
        for path in map(str, UsdGeom.PointInstancer(prim).GetPrototypesRel().GetForwardedTargets()):
            if stage.GetPrimAtPath(path) and path.startswith(tuple(above)):
                found[path] = None
    return list(found)


def _refuse_elsewhere(stage: Stage) -> None:
    """Refuse layers outside of the stage's folder and of those that the user allows."""
    roots = [stage.path.resolve().parent, *(folder.resolve() for folder in stage.options.assets)]
    for layer in stage.usd.GetUsedLayers():
        if layer.anonymous or not layer.realPath:
            continue
        file = Path(layer.realPath).resolve()
        if not any(file.is_relative_to(root) for root in roots):
            message = f"refers to {file}, outside of its folder"
            raise SceneError.of(message, file=str(stage.path), remedy=f"allow it with --assets {file.parent}")


def _reason(error: Exception) -> str:
    """Message of an error of OpenUSD, without its source location."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    texts = [line.split(" : ", 1)[1] for line in lines if " : " in line]
    return _plain(texts[0]) if texts else _plain(lines[0] if lines else "no reason given")


def _plain(text: str) -> str:
    return " ".join(text.split()).strip("' ")[:300]


FOREIGN = ("physx", "newton", "mjc", "omni", "isaac")
"""Beginnings of the names of schemas and attributes that other simulators bring."""
FOLLOWED = ("NewtonSceneAPI", "NewtonArticulationRootAPI", "NewtonJointAPI", "NewtonMassAPI", "NewtonMimicAPI")


def note_ignored(stage: Stage) -> None:
    """Add to the notes what was not supported."""
    schemas, attributes, types = Counter(), Counter(), Counter()
    moved = []
    bodies = {str(one.primPath) for one in stage.of("RigidBody") if not one.kinematicBody}
    colliders = [one for kind in stage.found if kind.endswith("Shape") for one in stage.of(kind)]
    bodies |= {str(one.primPath) for one in colliders if not str(one.rigidBody)}
    for prim in Usd.PrimRange(stage.usd.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
        kind = str(prim.GetTypeName())
        if kind.lower().startswith(FOREIGN):
            types[kind] += 1
        for schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            name = str(schema).split(":", 1)[0]
            if name.lower().startswith(FOREIGN) and name not in FOLLOWED:
                schemas[name] += 1
        for attribute in prim.GetAuthoredProperties():
            name = attribute.GetName()
            if name.lower().startswith(FOREIGN) and name not in stage.consumed and ":" in name:
                attributes[name] += 1
        if str(prim.GetPath()) in bodies and _is_animated(prim):
            moved.append(str(prim.GetPath()))
    for one in stage.of("CustomJoint"):
        stage.notes.append(f"joint {one.primPath} is ignored: custom joint types are not supported")
    for what, found in (("prims of type", types), ("schema", schemas), ("attribute", attributes)):
        stage.notes += [f"{what} {name} is ignored ({count} times)" for name, count in sorted(found.items())]
    if moved:
        stage.notes.append(f"time samples of dynamic bodies and static colliders are ignored: {', '.join(moved[:5])}"
                           + (f" and {len(moved) - 5} more" if len(moved) > 5 else ""))  # fmt: skip


def _is_animated(prim) -> bool:
    """Return whether a prim has a transform with time samples, or is below one."""
    while prim and not (prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).TransformMightBeTimeVarying()):
        prim = prim.GetParent()
    return bool(prim)
