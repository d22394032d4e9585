"""Keys of scene files: the single declarative source of the parser, of `abd schema` and of its documentation.

Field names are the keys of the TOML (or JSON) file; `[[body]]` is the list ``SceneSpec.body``. Every field has its
meaning, unit, default and range. SI units; quaternions are (w, x, y, z); a field with ``_deg`` in its name is in
degrees. These models check single values; `abd.scene.checks.checks` checks relations between keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from abd.scene.schema.fields import (
    LARGEST_INTEGER,
    AxisName,
    Color,
    Count,
    Direction,
    Extents,
    Flag,
    Formula,
    Inertia,
    Number,
    Orientation,
    Pair,
    PositiveNumber,
    Scale,
    Spec,
    Triple,
    Vector,
    entry,
)
from abd.scene.schema.joint_schema import CouplingSpec, JointSpec
from abd.scene.schema.sensor_schema import SensorSpec
from abd.scene.schema.solver_schema import SolverSpec
from abd.scene.schema.values import grid_value, names_value

DEFAULT_MATERIAL = "default"
"""Material of bodies without the key `material`; it exists in every scene."""
GROUND_AXIS = (0.0, 0.0, 1.0)


class Sphere(Spec):
    """Sphere about the origin: exact, or as a mesh, a subdivided icosahedron with its vertices on the sphere."""

    radius: Number = entry(..., "radius", unit="m", gt=0)
    subdivisions: Count | None = entry(
        None, "mesh instead of the exact sphere: subdivisions of an icosahedron (20 4^n triangles)", ge=0, le=7
    )


class Capsule(Spec):
    """Cylinder along z with two half-spheres as ends, centred at the origin: exact, or as a mesh."""

    radius: Number = entry(..., "radius", unit="m", gt=0)
    length: Number = entry(..., "length of the cylindrical part, without the ends", unit="m", gt=0)
    segments: Count | None = entry(None, "mesh instead of the exact capsule: facets around the axis", ge=3, le=1024)


ROUND = 384
"""Default facets of cylinders and cones: rolling within 0.5 % of smooth ones (`docs/concepts/contact.md`)."""
FACETS = "facets around the axis; 32 are enough for bodies that do not roll, and faster"


class Cylinder(Spec):
    """Cylinder along z, centred at the origin."""

    radius: Number = entry(..., "radius", unit="m", gt=0)
    length: Number = entry(..., "full length", unit="m", gt=0)
    segments: Count = entry(ROUND, FACETS, ge=3, le=1024)


class Cone(Spec):
    """Cone along z with its tip up, its axis centred at the origin."""

    radius: Number = entry(..., "radius of the base", unit="m", gt=0)
    length: Number = entry(..., "from base to tip", unit="m", gt=0)
    segments: Count = entry(ROUND, FACETS, ge=3, le=1024)


class HalfSpace(Spec):
    """Solid below a plane: bodies stay where ``normal . x >= offset``. The pose of the body has no effect on it."""

    normal: Direction = entry(GROUND_AXIS, "outward normal, world axes; its length does not matter")
    offset: Number = entry(0.0, "distance of the plane from the world's origin along the unit normal", unit="m")


class Surface(Spec):
    """A surface written out in the scene file, in the body's mesh frame."""

    vertices: list[Vector] = entry(..., "vertices", unit="m", min_length=1)
    triangles: list[Triple] = entry([], "vertex indices from 0, counter-clockwise as seen from outside")
    edges: list[Pair] = entry([], "edges in addition to those of the triangles (rods)")
    points: list[Count] = entry([], "isolated points: vertices without triangle or edge")

    def content(self, *without: str) -> Hashable:
        """Return the identity of the table: it can be large, and copies of a body share it."""
        return id(self)

    def independent(self, **changes: Any) -> Self:
        """Return the table itself, or a copy that shares its lists."""
        return self.model_copy(update=changes) if changes else self


class Keyframe(Orientation):
    """Pose at a time."""

    time: Number = entry(..., "time", unit="s")
    position: Vector | None = entry(None, "position of the moved frame; default: initial position", unit="m")


class Formulas(Spec):
    """Displacement from the initial pose by formulas of t [s]: ``+ - * / ** ( )``, numbers, t, pi and the functions
    sin cos tan exp log sqrt abs min max step(t - a) smoothstep(a, b, t)."""

    x: Formula = entry("0", "displacement along world x", unit="m")
    y: Formula = entry("0", "displacement along world y", unit="m")
    z: Formula = entry("0", "displacement along world z", unit="m")
    rx: Formula = entry("0", "rotation vector, world x", unit="rad")
    ry: Formula = entry("0", "rotation vector, world y", unit="rad")
    rz: Formula = entry("0", "rotation vector, world z", unit="rad")


class MotionSpec(Spec):
    """Prescribed motion of a kinematic body: velocities, or keyframes, or a file, or formulas."""

    velocity: Vector | None = entry(None, "constant velocity of the moved frame's origin, world axes", unit="m/s")
    angular_velocity: Vector | None = entry(None, "constant angular velocity, world axes", unit="rad/s")
    angular_velocity_deg: Vector | None = entry(None, "the same in degrees", unit="deg/s")
    keyframes: list[Keyframe] | None = entry(
        None, "poses at increasing times; linear interpolation of positions, rotations along the shortest arc", min_length=1
    )
    file: str | None = entry(
        None,
        "CSV or NPZ file of poses with the columns (arrays) time,x,y,z,qw,qx,qy,qz [s, m]; interpolated like keyframes; "
        "relative to the scene file",
    )
    formulas: Formulas | None = entry(None, "displacement from the initial pose as formulas of t")
    frame: Literal["mesh", "center_of_mass"] = entry(
        "mesh", "moved frame: the mesh frame, or the frame with the same axes at the centre of mass"
    )
    after: Literal["hold", "continue"] = entry(
        "hold",
        "motion after the last pose: hold: at rest; continue: with the given velocities, otherwise the last ones",
    )
    until: Number | None = entry(None, "time at which the motion stops", unit="s", ge=0)


class RepeatSpec(Spec):
    """Copies of a body on a grid, named name_0_0_0, name_0_0_1 and so on."""

    count: Annotated[Triple, BeforeValidator(grid_value)] = entry(
        ..., "number of copies along x, y, z; each at least 1"
    )
    step: Vector = entry(..., "distance from one copy to the next along x, y, z", unit="m")


VELOCITIES = ("velocity", "angular_velocity", "angular_velocity_deg")
"""Keys of velocities of bodies and motions."""
LOADS = ("force", "torque")
SHAPES = ("box", "sphere", "capsule", "cylinder", "cone")
SURFACE_KEYS = (*SHAPES, "half_space", "mesh", "surface", "proxy")
"""Keys of a body's surface; exactly one is given."""


class BodySpec(Orientation):
    """A body: surface, mass properties, pose and motion.

    Exactly one of box, sphere, capsule, cylinder, cone, half_space, mesh, surface and proxy must be given.
    """

    name: str = entry(..., "unique name", min_length=1)
    kind: Literal["dynamic", "kinematic", "static"] = entry(
        "dynamic", "dynamic: moved by forces; kinematic: moved by its `motion`; static: fixed; a half-space is static by default"
    )
    enabled: Flag = entry(True, "false: the body is not part of the scene")

    box: Extents | None = entry(None, "full extents of a box centred at the origin", unit="m")
    sphere: Sphere | None = entry(None, "sphere")
    capsule: Capsule | None = entry(None, "capsule along z")
    cylinder: Cylinder | None = entry(None, "cylinder along z")
    cone: Cone | None = entry(None, "cone along z, tip up")
    half_space: HalfSpace | None = entry(None, "half-space, such as the ground or a wall")
    mesh: str | None = entry(None, "file .obj .stl .ply .off or .glb, relative to the scene file")
    surface: Surface | None = entry(None, "surface written out in the scene")
    proxy: Flag = entry(False, "body without a surface; needs mass and inertia if it is dynamic")

    scale: Scale = entry(
        1.0, "scale factor of the surface, or one per axis; negative: mirrored"
    )
    split_components: Flag = entry(False, "one body per connected component of the mesh, named name_0, name_1 and so on")
    thickness: Number = entry(
        0.0, "thickness of an open surface (shell); its contact radius is half of it", unit="m", ge=0
    )
    radius: Number = entry(0.0, "radius of rods and points, for mass and contact", unit="m", ge=0)

    rounding: Number = entry(
        0.0,
        "radius of a ball by which the surface is enlarged for contact (Minkowski sum); mass and inertia are those of the "
        "surface without it",
        unit="m",
        ge=0,
    )

    density: Number = entry(
        1000.0,
        "density; with an explicit mass it only determines the volume of bodies whose surface encloses none",
        unit="kg/m^3",
        gt=0,
    )
    mass: Number | None = entry(None, "mass; default: from the density", unit="kg", gt=0)
    center_of_mass: Vector | None = entry(None, "centre of mass in the mesh frame, scale included", unit="m")
    inertia: Inertia | None = entry(
        None, "[Ixx, Iyy, Izz] or 3x3 about the centre of mass, mesh axes; needs mass", unit="kg m^2"
    )

    position: Vector = entry((0.0, 0.0, 0.0), "position of the mesh origin", unit="m")
    velocity: Vector = entry((0.0, 0.0, 0.0), "initial velocity of the centre of mass", unit="m/s")
    angular_velocity: Vector = entry((0.0, 0.0, 0.0), "initial angular velocity, world axes", unit="rad/s")
    angular_velocity_deg: Vector | None = entry(None, "the same in degrees", unit="deg/s")
    force: Vector = entry((0.0, 0.0, 0.0), "constant force at the centre of mass, world axes", unit="N")
    torque: Vector = entry((0.0, 0.0, 0.0), "constant torque, world axes", unit="N m")
    linear_damping: Number = entry(0.0, "force per velocity of the centre of mass, opposite to it", unit="N s/m", ge=0)
    rotary_damping: Number = entry(0.0, "torque per angular velocity, opposite to it", unit="N m s", ge=0)
    inertial_damping: Number = entry(
        0.0,
        "mass-proportional damping: force and torque opposite to the momenta, per momentum",
        unit="1/s",
        ge=0,
    )
    fix: list[AxisName] = entry(
        [],
        "fixed degrees of freedom: translations of the centre of mass along world axes, rotations about world axes "
        "through it; none, two (a hinge about the third) or all three rotations",
    )
    motion: MotionSpec | None = entry(None, "prescribed motion of a kinematic body")

    kappa: Literal["auto"] | PositiveNumber = entry(
        "auto",
        "stiffness of the near-rigidity energy; auto: for bodies with joints from weight, forces and initial speeds of the "
        "connected bodies, so that their strain is at most 1e-5; for others 1e9 times the ratio of the largest mass of the "
        "world to their own, more for large weight, forces or spin",
        unit="Pa",
    )
    elasticity: Literal["orthogonal", "arap"] = entry("orthogonal", "form of the near-rigidity energy")
    material: str = entry(DEFAULT_MATERIAL, "name of a [[material]]")
    surface_velocity: Vector = entry(
        (0.0, 0.0, 0.0), "velocity of the surface in the body for friction (conveyor belt), mesh axes", unit="m/s"
    )
    color: Color | None = entry(
        None,
        "colour: [red, green, blue] or with opacity, from 0 to 1; a CSS name; or '#rrggbb'; default: that of the material",
    )
    group: Count = entry(-1, "bodies of the same group >= 0 do not collide; -1: no group", ge=-1, le=LARGEST_INTEGER)
    world: Count = entry(0, "number of the world; bodies of different worlds do not interact", ge=0, le=1_000_000)
    repeat: RepeatSpec | None = entry(None, "copies on a grid")

    @model_validator(mode="before")
    @classmethod
    def _half_space_is_static(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("half_space") is not None and "kind" not in data:
            return {**data, "kind": "static"}
        return data


class MaterialSpec(Spec):
    """A material; contact of two materials has the geometric mean of each coefficient, unless a [[material_pair]] sets it."""

    name: str = entry(..., "unique name; `default` is the material of bodies without the key `material`", min_length=1)
    mu: Number = entry(0.0, "coefficient of friction against itself", ge=0)
    rolling: Number = entry(
        0.0,
        "coefficient of rolling resistance against itself: largest rolling torque divided by the normal force",
        unit="m",
        ge=0,
    )
    spinning: Number = entry(
        0.0,
        "coefficient of spinning resistance against itself: largest torque about the normal divided by the normal force",
        unit="m",
        ge=0,
    )
    restitution: Number = entry(
        0.0, "coefficient of restitution against itself: normal speed after an impact divided by that before", ge=0, le=1
    )
    color: Color | None = entry(None, "colour of bodies without their own")


class MaterialPairSpec(Spec):
    """Contact between two materials."""

    between: Annotated[tuple[str, str], BeforeValidator(names_value)] = entry(
        ..., "names of two materials; the same name twice for contact of a material with itself"
    )
    mu: Number | None = entry(None, "coefficient of friction; default sqrt(mu_a mu_b)", ge=0)
    rolling: Number | None = entry(None, "coefficient of rolling resistance; default: geometric mean", unit="m", ge=0)
    spinning: Number | None = entry(None, "coefficient of spinning resistance; default: geometric mean", unit="m", ge=0)
    restitution: Number | None = entry(
        None,
        "coefficient of restitution, 0 for impacts slower than 2 g dt or 2 solver.tolerance; default sqrt(e_a e_b)",
        ge=0,
        le=1,
    )
    stiffness: Number = entry(1.0, "factor of the contact stiffness", gt=0)
    enabled: Flag = entry(True, "false: no contact between these materials")


class ContactFilterSpec(Spec):
    """Bodies without contact with each other."""

    bodies: list[str] = entry(..., "names of the bodies", min_length=2)


class OutputSpec(Spec):
    """Length and output of a run; at most one of frames and duration is given."""

    frames: Count | None = entry(None, "number of steps; default 100", ge=1)
    duration: Number | None = entry(None, "simulated time", unit="s", gt=0)
    every: Count = entry(1, "number of steps between two written frames", ge=1)
    contacts: bool = entry(False, "write contact points and forces to /contacts of the trajectory")
    certificate: bool = entry(False, "check the run after its end (`abd run`); result at /certificate of the trajectory")


class CameraSpec(Spec):
    """Camera of pictures, films and the viewer; default: the whole scene is visible.

    The camera is at `position`, by default in the direction of the two angles at the distance at which the scene is visible.
    """

    position: Vector | None = entry(None, "position of the camera", unit="m")
    target: Vector | None = entry(None, "point in the middle of the picture", unit="m")
    azimuth_deg: Number = entry(-60.0, "azimuth of the camera as seen from the target, about z; 0 is +x", unit="deg")
    elevation_deg: Number = entry(16.0, "elevation of the camera above the x-y plane", unit="deg", ge=-90, le=90)
    zoom: Number = entry(1.0, "zoom factor; 1: the whole scene fits into the picture", gt=0)
    fov_deg: Number = entry(38.0, "vertical field of view", unit="deg", gt=1, lt=150)
    follow: str | None = entry(None, "name of a body that remains in the middle of the picture")
    orbit_deg: Number = entry(0.0, "angle by which the camera turns about the target during a film", unit="deg")

    @model_validator(mode="after")
    def _not_into_itself(self) -> CameraSpec:
        if self.position is not None and self.position == self.target:
            raise PydanticCustomError("camera", "should be a table whose position and target are not the same point")
        return self


class JointTypeSpec(Spec):
    """A joint type defined in Python; the code runs only with ``--allow-code``."""

    name: str = entry(..., "name of the type, for joints of this scene", min_length=1)
    file: str = entry(..., "path of the Python file, relative to the scene file", min_length=1)
    function: str = entry(
        ..., "function of the file that takes the name and calls abd.joint_type(name, ...)", min_length=1
    )


class SceneSpec(Spec):
    """A scene."""

    name: str = entry("", "name of the scene; default: name of the file")
    gravity: Vector = entry((0.0, 0.0, -9.81), "gravity", unit="m/s^2")
    solver: SolverSpec = entry(SolverSpec(), "solver settings")
    output: OutputSpec = entry(OutputSpec(), "length and output of the run")
    camera: CameraSpec = entry(CameraSpec(), "camera of pictures")
    material: list[MaterialSpec] = entry([], "materials; `default` (mu = 0) always exists and can be redefined")
    material_pair: list[MaterialPairSpec] = entry([], "contact parameters of pairs of materials")
    body: list[BodySpec] = entry([], "bodies")
    contact_filter: list[ContactFilterSpec] = entry([], "bodies without contact, in addition to groups and materials")
    joint_type: list[JointTypeSpec] = entry([], "user-defined joint types")
    joint: list[JointSpec] = entry([], "joints")
    coupling: list[CouplingSpec] = entry([], "relations between coordinates of joints: gears, racks, mimics")
    sensor: list[SensorSpec] = entry([], "recorded quantities")


def with_paths(spec: SceneSpec, change: Callable[[str], str]) -> SceneSpec:
    """Return the scene with changed paths of meshes, pose files and code; bodies without paths are shared."""
    types = [one.model_copy(update={"file": change(one.file)}) for one in spec.joint_type]
    return spec.model_copy(update={"body": [body_with_paths(body, change) for body in spec.body], "joint_type": types})


def body_with_paths(body: BodySpec, change: Callable[[str], str]) -> BodySpec:
    """Return the body with changed paths of its mesh and pose file."""
    changed: dict[str, Any] = {}
    if body.mesh is not None:
        changed["mesh"] = change(body.mesh)
    if body.motion is not None and body.motion.file is not None:
        changed["motion"] = body.motion.model_copy(update={"file": change(body.motion.file)})
    return body.model_copy(update=changed) if changed else body


def absolute_in(directory: Path) -> Callable[[str], str]:
    """Return the function that resolves paths relative to a directory."""
    return lambda path: os.path.abspath(directory / path)
