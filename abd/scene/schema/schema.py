"""What a scene file may say: the one declarative source of the parser, of `abd schema` and of its documentation.

Field names are the keys of the TOML (or JSON) file; `[[body]]` is the list ``SceneSpec.body``. Every field carries its
meaning, unit, default and range. SI units; quaternions are (w, x, y, z); a field with ``_deg`` in its name is in
degrees. These models check values one by one; what concerns several keys at once is in `abd.scene.checks.checks`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from abd.scene.schema.fields import (
    LARGEST,
    AxisName,
    Color,
    Count,
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
"""Of bodies that name none; there without being listed."""
GROUND_AXIS = (0.0, 0.0, 1.0)


class Sphere(Spec):
    """Sphere about the origin: exact, or as a mesh, a subdivided icosahedron with its vertices on the sphere."""

    radius: Number = entry(..., "radius", unit="m", gt=0)
    subdivisions: Count | None = entry(
        None, "asks for a mesh: each multiplies the 20 triangles of the icosahedron by 4", ge=0, le=7
    )


class Capsule(Spec):
    """Cylinder along z with two half-spheres as ends, centred at the origin: exact, or as a mesh."""

    radius: Number = entry(..., "radius", unit="m", gt=0)
    length: Number = entry(..., "length of the cylindrical part, without the ends", unit="m", gt=0)
    segments: Count | None = entry(None, "asks for a mesh: number of facets around the axis", ge=3, le=1024)


ROUND = 384
"""Facets of cylinders and cones: so many that what they roll like is within 0.5 % of smooth ones (`docs/concepts/contact.md`)."""
FACETS = (
    "facets around the axis; 32 do for what does not roll, and cost a third to a seventh where many touch each other"
)


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
    """Everything below a plane is solid: bodies stay where ``normal . x >= offset``. The pose does not apply to it."""

    normal: Vector = entry(GROUND_AXIS, "outward normal, world axes; its length does not matter")
    offset: Number = entry(0.0, "distance of the plane from the world's origin along the unit normal", unit="m")


class Surface(Spec):
    """A surface written out in the scene file, in the body's mesh frame."""

    vertices: list[Vector] = entry(..., "corner points", unit="m", min_length=1)
    triangles: list[Triple] = entry([], "vertex numbers from 0, counter-clockwise from outside")
    edges: list[Pair] = entry([], "segments beyond those of the triangles (rods)")
    points: list[Count] = entry([], "single points: vertices that belong to no triangle and no edge")

    def content(self, *without: str) -> Hashable:
        """The table itself: it may be long, and copies of a body share it."""
        return id(self)

    def independent(self, **changes: Any) -> Self:
        """The table itself, or a copy that shares its lists."""
        return self.model_copy(update=changes) if changes else self


class Keyframe(Orientation):
    """Pose at one instant."""

    time: Number = entry(..., "instant", unit="s")
    position: Vector | None = entry(None, "position of the moved frame; default: where it starts", unit="m")


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
    angular_velocity: Vector | None = entry(None, "constant, world axes, about the moved frame's origin", unit="rad/s")
    angular_velocity_deg: Vector | None = entry(None, "the same in degrees", unit="deg/s")
    keyframes: list[Keyframe] | None = entry(
        None, "poses with growing times; positions interpolate linearly, rotations along the shortest arc", min_length=1
    )
    file: str | None = entry(
        None,
        "CSV or NPZ of poses with the columns (arrays) time,x,y,z,qw,qx,qy,qz [s, m]; interpolated like keyframes; "
        "relative to the scene file",
    )
    formulas: Formulas | None = entry(None, "displacement from the initial pose as formulas of t")
    frame: Literal["mesh", "center_of_mass"] = entry(
        "mesh", "which frame is moved: the mesh frame, or the one with the same axes at the centre of mass"
    )
    after: Literal["hold", "continue"] = entry(
        "hold",
        "after the last keyframe or line of the file: stay or go on with the velocities given here, else the last ones",
    )
    until: Number | None = entry(None, "time after which the body stays where it is", unit="s", ge=0)


class RepeatSpec(Spec):
    """Copies of a body on a grid, named name_0_0_0, name_0_0_1 and so on."""

    count: Annotated[Triple, BeforeValidator(grid_value)] = entry(
        ..., "number of copies along x, y, z; each at least 1"
    )
    step: Vector = entry(..., "distance from one copy to the next along x, y, z", unit="m")


SHAPES = ("box", "sphere", "capsule", "cylinder", "cone")
SURFACE_KEYS = (*SHAPES, "half_space", "mesh", "surface", "proxy")
"""What a body may be made of, one of them."""


class BodySpec(Orientation):
    """One body: a surface, mass properties, a pose, and how it moves.

    Exactly one of box, sphere, capsule, cylinder, cone, half_space, mesh, surface and proxy says what it is made of.
    """

    name: str = entry(..., "unique name", min_length=1)
    kind: Literal["dynamic", "kinematic", "static"] = entry(
        "dynamic", "moved by forces, by its `motion`, or not at all; a half-space is static by default"
    )
    enabled: Flag = entry(True, "false leaves the body out of the scene")

    box: Extents | None = entry(None, "full extents of a box centred at the origin", unit="m")
    sphere: Sphere | None = entry(None, "sphere")
    capsule: Capsule | None = entry(None, "capsule along z")
    cylinder: Cylinder | None = entry(None, "cylinder along z")
    cone: Cone | None = entry(None, "cone along z, tip up")
    half_space: HalfSpace | None = entry(None, "the ground, a wall")
    mesh: str | None = entry(None, "file .obj .stl .ply .off or .glb, relative to the scene file")
    surface: Surface | None = entry(None, "surface written out in the scene")
    proxy: Flag = entry(False, "a body without surface; needs mass and inertia where it is dynamic")

    scale: Scale = entry(
        1.0, "factor, or one per axis, applied to the surface before the pose; negative ones mirror it"
    )
    split_components: Flag = entry(False, "one body per connected component, named name_0, name_1 and so on")
    thickness: Number = entry(
        0.0, "thickness of an open surface (shell); half of it is its contact radius", unit="m", ge=0
    )
    radius: Number = entry(0.0, "radius of rods and points, for their mass and for contact", unit="m", ge=0)

    rounding: Number = entry(
        0.0,
        "contact at this distance outside the surface: its Minkowski sum with a ball; mass and inertia stay those of the "
        "surface without it",
        unit="m",
        ge=0,
    )

    density: Number = entry(
        1000.0,
        "density; with an explicit mass it only gives the volume of bodies that enclose none",
        unit="kg/m^3",
        gt=0,
    )
    mass: Number | None = entry(None, "total mass instead of the one that follows from the density", unit="kg", gt=0)
    center_of_mass: Vector | None = entry(None, "in the mesh frame, scale included", unit="m")
    inertia: Inertia | None = entry(
        None, "[Ixx, Iyy, Izz] or 3x3 about the centre of mass, mesh axes; needs mass", unit="kg m^2"
    )

    position: Vector = entry((0.0, 0.0, 0.0), "position of the mesh origin", unit="m")
    velocity: Vector = entry((0.0, 0.0, 0.0), "initial velocity of the centre of mass", unit="m/s")
    angular_velocity: Vector = entry((0.0, 0.0, 0.0), "initial, world axes", unit="rad/s")
    angular_velocity_deg: Vector | None = entry(None, "the same in degrees", unit="deg/s")
    force: Vector = entry((0.0, 0.0, 0.0), "constant force at the centre of mass, world axes", unit="N")
    torque: Vector = entry((0.0, 0.0, 0.0), "constant torque, world axes", unit="N m")
    linear_damping: Number = entry(0.0, "force against the velocity of the centre of mass", unit="N s/m", ge=0)
    rotary_damping: Number = entry(0.0, "torque against the angular velocity", unit="N m s", ge=0)
    inertial_damping: Number = entry(
        0.0,
        "share of the momenta that is lost per second: force and torque of it times mass and inertia",
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
        "near-rigidity stiffness; auto: of bodies at joints from the weight, forces and initial speeds of all that is joined "
        "to them, so that they strain by 1e-5 at most; of others 1e9 times the heaviest mass of the world over their own, "
        "more if their weight, forces or spin ask for it",
        unit="Pa",
    )
    elasticity: Literal["orthogonal", "arap"] = entry("orthogonal", "near-rigidity energy")
    material: str = entry(DEFAULT_MATERIAL, "name of a [[material]], for friction")
    surface_velocity: Vector = entry(
        (0.0, 0.0, 0.0), "velocity of the surface's material for friction, mesh axes: a conveyor belt", unit="m/s"
    )
    color: Color | None = entry(
        None,
        "for pictures: [red, green, blue] or with opacity, from 0 to 1, or a name or '#rrggbb'; default: its material's",
    )
    group: Count = entry(-1, "bodies of the same group >= 0 do not collide; -1: no group", ge=-1, le=LARGEST)
    world: Count = entry(0, "bodies of different worlds never meet", ge=0, le=LARGEST)
    repeat: RepeatSpec | None = entry(None, "copies on a grid")

    @model_validator(mode="before")
    @classmethod
    def _half_space_is_static(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("half_space") is not None and "kind" not in data:
            return {**data, "kind": "static"}
        return data


class MaterialSpec(Spec):
    """A material; pairs combine by geometric means, mu = sqrt(mu_a mu_b), unless a [[material_pair]] says other."""

    name: str = entry(..., "unique name; `default` is that of bodies that name none", min_length=1)
    mu: Number = entry(0.0, "coefficient of friction against itself", ge=0)
    rolling: Number = entry(
        0.0,
        "of rolling resistance against itself: largest torque about the tangent plane over the normal force",
        unit="m",
        ge=0,
    )
    spinning: Number = entry(
        0.0,
        "of spinning resistance against itself: largest torque about the normal over the normal force",
        unit="m",
        ge=0,
    )
    restitution: Number = entry(
        0.0, "speed after an impact on itself over the speed before; pairs combine as those of mu do", ge=0, le=1
    )
    color: Color | None = entry(None, "of bodies that give none, as theirs")


class MaterialPairSpec(Spec):
    """Contact between two materials."""

    between: Annotated[tuple[str, str], BeforeValidator(names_value)] = entry(
        ..., "names of two materials, the same one twice for itself"
    )
    mu: Number | None = entry(None, "coefficient of friction; default sqrt(mu_a mu_b)", ge=0)
    rolling: Number | None = entry(None, "coefficient of rolling resistance; default as that of mu", unit="m", ge=0)
    spinning: Number | None = entry(None, "coefficient of spinning resistance; default as that of mu", unit="m", ge=0)
    restitution: Number | None = entry(
        None,
        "normal speed after an impact over that before; slow ones (2 g dt, 2 solver.tolerance) count as resting; default "
        "sqrt(e_a e_b)",
        ge=0,
        le=1,
    )
    stiffness: Number = entry(1.0, "factor on the contact stiffness", gt=0)
    enabled: Flag = entry(True, "false: these materials pass through each other")


class ContactFilterSpec(Spec):
    """Bodies that pass through one another."""

    bodies: list[str] = entry(..., "names of bodies; none of them collides with another one of them", min_length=2)


class OutputSpec(Spec):
    """How long to run and what to write; at most one of frames and duration."""

    frames: Count | None = entry(None, "number of steps; default 100", ge=1)
    duration: Number | None = entry(None, "simulated time", unit="s", gt=0)
    every: Count = entry(1, "write every so many steps", ge=1)
    contacts: bool = entry(False, "write points of contact and their forces, at /contacts of the trajectory")
    certificate: bool = entry(False, "`abd run` certifies the run when it has ended, at /certificate of the trajectory")


class CameraSpec(Spec):
    """Where pictures, films and views of this scene are taken from; what is not given is found, so that everything shows.

    The camera stands at `position`, or as far from the target as it takes, in the direction of the two angles.
    """

    position: Vector | None = entry(None, "where it stands", unit="m")
    target: Vector | None = entry(None, "point in the middle of the picture", unit="m")
    azimuth_deg: Number = entry(-60.0, "direction from the target to the camera about z; 0 is +x", unit="deg")
    elevation_deg: Number = entry(16.0, "the same above the x-y plane", unit="deg", ge=-90, le=90)
    zoom: Number = entry(1.0, "1: everything fits into the picture", gt=0)
    fov_deg: Number = entry(38.0, "field of view from the lower to the upper edge", unit="deg", gt=1, lt=150)
    follow: str | None = entry(None, "name of a body that stays in the middle")
    orbit_deg: Number = entry(0.0, "how far a film turns about the target from its start to its end", unit="deg")

    @model_validator(mode="after")
    def _not_into_itself(self) -> CameraSpec:
        if self.position is not None and self.position == self.target:
            raise PydanticCustomError("camera", "position and target are the same point")
        return self


class JointTypeSpec(Spec):
    """A joint type that Python code defines, which is run only with ``--allow-code``."""

    name: str = entry(..., "name of the type, for joints of this scene", min_length=1)
    file: str = entry(..., "path of the Python file, relative to the scene's", min_length=1)
    function: str = entry(
        ..., "function of the file; called with the name, it calls abd.joint_type(name, ...)", min_length=1
    )


class SceneSpec(Spec):
    """A scene."""

    name: str = entry("", "name of the scene; default: that of the file")
    gravity: Vector = entry((0.0, 0.0, -9.81), "gravity", unit="m/s^2")
    solver: SolverSpec = entry(SolverSpec(), "solver settings")
    output: OutputSpec = entry(OutputSpec(), "length of the run")
    camera: CameraSpec = entry(CameraSpec(), "where pictures are taken from")
    material: list[MaterialSpec] = entry([], "materials; `default` (mu = 0) exists always and may be redefined")
    material_pair: list[MaterialPairSpec] = entry([], "exceptions from the rule of combination")
    body: list[BodySpec] = entry([], "bodies")
    contact_filter: list[ContactFilterSpec] = entry([], "bodies that do not collide, in addition to groups and materials")
    joint_type: list[JointTypeSpec] = entry([], "joint types of your own")
    joint: list[JointSpec] = entry([], "joints")
    coupling: list[CouplingSpec] = entry([], "relations between coordinates of joints: gears, racks, mimics")
    sensor: list[SensorSpec] = entry([], "quantities that are recorded from the start")


def with_paths(spec: SceneSpec, change: Callable[[str], str]) -> SceneSpec:
    """The scene with its paths of meshes, pose files and code changed; what has none is shared with `spec`."""
    types = [one.model_copy(update={"file": change(one.file)}) for one in spec.joint_type]
    return spec.model_copy(update={"body": [body_with_paths(body, change) for body in spec.body], "joint_type": types})


def body_with_paths(body: BodySpec, change: Callable[[str], str]) -> BodySpec:
    """The same for one body."""
    changed: dict[str, Any] = {}
    if body.mesh is not None:
        changed["mesh"] = change(body.mesh)
    if body.motion is not None and body.motion.file is not None:
        changed["motion"] = body.motion.model_copy(update={"file": change(body.motion.file)})
    return body.model_copy(update=changed) if changed else body


def absolute_in(directory: Path) -> Callable[[str], str]:
    """The function that resolves paths which begin at a directory."""
    return lambda path: os.path.abspath(directory / path)
