"""Types of the keyword arguments of `Scene.add_body`, `add_material` and of the settings of a scene.

Written by tools/make/typed_keys.py from the schema: `abd schema` tells the same in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Required, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""A list of numbers."""
Rows: TypeAlias = Sequence[Sequence[float] | NDArray[np.floating[Any]]] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""Rows of numbers."""
Table: TypeAlias = Mapping[str, object]
"""A table of keys that are not known before it runs."""


class HasFaces(Protocol):
    """A mesh in memory, such as a `trimesh.Trimesh`."""

    @property
    def vertices(self) -> Any:
        """(v, 3) [m]."""

    @property
    def faces(self) -> Any:
        """(f, 3) vertex numbers."""


class AxisAngleKeys(TypedDict, total=False):
    """Rotation by an angle about an axis."""

    # axis; its length does not matter
    axis: Required[Numbers]
    # angle, counter-clockwise about the axis [deg]
    degrees: Required[float]


class EulerKeys(TypedDict, total=False):
    """Rotation by three successive angles, in the notation of scipy."""

    # axes in the order of turning: lower case about the fixed world axes, upper case about the moving axes
    order: str
    # one angle per letter of order [deg]
    degrees: Required[Numbers]


class SphereKeys(TypedDict, total=False):
    """Sphere about the origin: exact, or as a mesh, a subdivided icosahedron with its vertices on the sphere."""

    # radius [m]
    radius: Required[float]
    # asks for a mesh: each multiplies the 20 triangles of the icosahedron by 4
    subdivisions: int | None


class CapsuleKeys(TypedDict, total=False):
    """Cylinder along z with two half-spheres as ends, centred at the origin: exact, or as a mesh."""

    # radius [m]
    radius: Required[float]
    # length of the cylindrical part, without the ends [m]
    length: Required[float]
    # asks for a mesh: number of facets around the axis
    segments: int | None


class CylinderKeys(TypedDict, total=False):
    """Cylinder along z, centred at the origin."""

    # radius [m]
    radius: Required[float]
    # full length [m]
    length: Required[float]
    # facets around the axis; 32 do for what does not roll, and cost a third to a seventh where many touch each other
    segments: int


class ConeKeys(TypedDict, total=False):
    """Cone along z with its tip up, its axis centred at the origin."""

    # radius of the base [m]
    radius: Required[float]
    # from base to tip [m]
    length: Required[float]
    # facets around the axis; 32 do for what does not roll, and cost a third to a seventh where many touch each other
    segments: int


class HalfSpaceKeys(TypedDict, total=False):
    """Everything below a plane is solid: bodies stay where ``normal . x >= offset``. The pose does not apply to it."""

    # outward normal, world axes; its length does not matter
    normal: Numbers
    # distance of the plane from the world's origin along the unit normal [m]
    offset: float


class SurfaceKeys(TypedDict, total=False):
    """A surface written out in the scene file, in the body's mesh frame."""

    # corner points [m]
    vertices: Required[Rows]
    # vertex numbers from 0, counter-clockwise from outside
    triangles: Rows
    # segments beyond those of the triangles (rods)
    edges: Rows
    # single points: vertices that belong to no triangle and no edge
    points: Numbers


class KeyframeKeys(TypedDict, total=False):
    """Pose at one instant."""

    # instant [s]
    time: Required[float]
    # position of the moved frame; default: where it starts [m]
    position: Numbers | None
    # (w, x, y, z); normalised when read
    quaternion: Numbers | None
    # rotation matrix, three rows
    matrix: Rows | None
    # axis and angle in degrees
    axis_angle: AxisAngleKeys | Table | None
    # Euler angles in degrees
    euler: EulerKeys | Table | None


class FormulasKeys(TypedDict, total=False):
    """Displacement from the initial pose by formulas of t [s]: ``+ - * / ** ( )``, numbers, t, pi and the functions"""

    # displacement along world x [m]
    x: str
    # displacement along world y [m]
    y: str
    # displacement along world z [m]
    z: str
    # rotation vector, world x [rad]
    rx: str
    # rotation vector, world y [rad]
    ry: str
    # rotation vector, world z [rad]
    rz: str


class MotionKeys(TypedDict, total=False):
    """Prescribed motion of a kinematic body: velocities, or keyframes, or a file, or formulas."""

    # constant velocity of the moved frame's origin, world axes [m/s]
    velocity: Numbers | None
    # constant, world axes, about the moved frame's origin [rad/s]
    angular_velocity: Numbers | None
    # the same in degrees [deg/s]
    angular_velocity_deg: Numbers | None
    # poses with growing times; positions interpolate linearly, rotations along the shortest arc
    keyframes: Sequence[KeyframeKeys | Table] | None
    # CSV or NPZ of poses with the columns (arrays) time,x,y,z,qw,qx,qy,qz [s, m]; interpolated like keyframes; relative
    # to the scene file
    file: str | None
    # displacement from the initial pose as formulas of t
    formulas: FormulasKeys | Table | None
    # which frame is moved: the mesh frame, or the one with the same axes at the centre of mass
    frame: Literal["mesh", "center_of_mass"]
    # after the last keyframe or line of the file: stay or go on with the velocities given here, else the last ones
    after: Literal["hold", "continue"]
    # time after which the body stays where it is [s]
    until: float | None


class RepeatKeys(TypedDict, total=False):
    """Copies of a body on a grid, named name_0_0_0, name_0_0_1 and so on."""

    # number of copies along x, y, z; each at least 1
    count: Required[Numbers]
    # distance from one copy to the next along x, y, z [m]
    step: Required[Numbers]


class BodyKeys(TypedDict, total=False):
    """One body: a surface, mass properties, a pose, and how it moves."""

    # moved by forces, by its `motion`, or not at all; a half-space is static by default
    kind: Literal["dynamic", "kinematic", "static"]
    # false leaves the body out of the scene
    enabled: bool
    # full extents of a box centred at the origin [m]
    box: Numbers | None
    # sphere
    sphere: SphereKeys | Table | None
    # capsule along z
    capsule: CapsuleKeys | Table | None
    # cylinder along z
    cylinder: CylinderKeys | Table | None
    # cone along z, tip up
    cone: ConeKeys | Table | None
    # the ground, a wall
    half_space: HalfSpaceKeys | Table | None
    # file .obj .stl .ply .off or .glb, relative to the scene file
    mesh: str | Path | HasFaces | tuple[Rows, Rows] | None
    # surface written out in the scene
    surface: SurfaceKeys | Table | None
    # a body without surface; needs mass and inertia where it is dynamic
    proxy: bool
    # factor, or one per axis, applied to the surface before the pose; negative ones mirror it
    scale: float | Numbers
    # one body per connected component, named name_0, name_1 and so on
    split_components: bool
    # thickness of an open surface (shell); half of it is its contact radius [m]
    thickness: float
    # radius of rods and points, for their mass and for contact [m]
    radius: float
    # contact at this distance outside the surface: its Minkowski sum with a ball; mass and inertia stay those of the
    # surface without it [m]
    rounding: float
    # density; beside an explicit mass it only gives the volume of bodies that enclose none [kg/m^3]
    density: float
    # total mass instead of the one that follows from the density [kg]
    mass: float | None
    # in the mesh frame, scale included [m]
    center_of_mass: Numbers | None
    # [Ixx, Iyy, Izz] or 3x3 about the centre of mass, mesh axes; needs mass [kg m^2]
    inertia: Numbers | Rows | None
    # position of the mesh origin [m]
    position: Numbers
    # initial velocity of the centre of mass [m/s]
    velocity: Numbers
    # initial, world axes [rad/s]
    angular_velocity: Numbers
    # the same in degrees [deg/s]
    angular_velocity_deg: Numbers | None
    # constant force at the centre of mass, world axes [N]
    force: Numbers
    # constant torque, world axes [N m]
    torque: Numbers
    # force against the velocity of the centre of mass [N s/m]
    linear_damping: float
    # torque against the angular velocity [N m s]
    rotary_damping: float
    # share of the momenta that is lost per second: force and torque of it times mass and inertia [1/s]
    inertial_damping: float
    # fixed degrees of freedom: translations of the centre of mass along world axes, rotations about world axes through
    # it; none, two (a hinge about the third) or all three rotations
    fix: Sequence[Literal["x", "y", "z", "rx", "ry", "rz"]]
    # prescribed motion of a kinematic body
    motion: MotionKeys | Table | None
    # near-rigidity stiffness; auto: of bodies at joints from the weight, forces and initial speeds of all that is
    # joined to them, so that they strain by 1e-5 at most; of others 1e9 times the heaviest mass of the world over their
    # own, more if their weight, forces or spin ask for it [Pa]
    kappa: Literal["auto"] | float
    # near-rigidity energy
    elasticity: Literal["orthogonal", "arap"]
    # name of a [[material]], for friction
    material: str
    # for pictures: [red, green, blue] or with opacity, from 0 to 1, or a name or '#rrggbb'; default: its material's
    color: Numbers | None
    # bodies of the same group >= 0 do not collide; -1: no group
    group: int
    # bodies of different worlds never meet
    world: int
    # copies on a grid
    repeat: RepeatKeys | Table | None
    # (w, x, y, z); normalised when read
    quaternion: Numbers | None
    # rotation matrix, three rows
    matrix: Rows | None
    # axis and angle in degrees
    axis_angle: AxisAngleKeys | Table | None
    # Euler angles in degrees
    euler: EulerKeys | Table | None
    # (4, 4) pose of the mesh frame, instead of position and a rotation [m]
    transform: Rows


class MaterialKeys(TypedDict, total=False):
    """A material; pairs combine by geometric means, mu = sqrt(mu_a mu_b), unless a [[material_pair]] says other."""

    # coefficient of friction against itself
    mu: float
    # of rolling resistance against itself: largest torque about the tangent plane over the normal force [m]
    rolling: float
    # of spinning resistance against itself: largest torque about the normal over the normal force [m]
    spinning: float
    # speed after an impact on itself over the speed before; pairs combine as those of mu do
    restitution: float
    # of bodies that give none, as theirs
    color: Numbers | None


class MaterialPairKeys(TypedDict, total=False):
    """Contact between two materials."""

    # coefficient of friction; default sqrt(mu_a mu_b)
    mu: float | None
    # coefficient of rolling resistance; default as that of mu [m]
    rolling: float | None
    # coefficient of spinning resistance; default as that of mu [m]
    spinning: float | None
    # normal speed after an impact over that before; slow ones (2 g dt, 2 solver.tolerance) count as resting; default
    # sqrt(e_a e_b)
    restitution: float | None
    # factor on the contact stiffness
    stiffness: float
    # false: these materials pass through each other
    enabled: bool


class SolverKeys(TypedDict, total=False):
    """How a step is computed."""

    # time step [s]
    dt: float
    # time steps of all worlds, by their numbers, each of which is at a time of its own then; default: dt [s]
    world_dt: Numbers
    # second order, and implicit Euler where contacts begin or jump, limits or ropes act; implicit Euler everywhere
    # (bdf1); or the second-order formula on chords, which brakes rotation (bdf2)
    integrator: Literal["generalized_alpha", "bdf1", "bdf2"]
    # share of the fastest oscillations that a step of generalized_alpha keeps; 1 keeps them all; mechanisms whose
    # bodies turn about their joints by more than 0.14 rad in a step keep less (0.65, 0.5), with more than 0.8 from 0.06
    # rad on
    spectral_radius: float
    # distance at which contact of every pair begins to act; default by pair: 2 % of the thinnest extent of the two
    # bodies (closed meshes: smallest side of the box about them; others: thickness or diameter), less for pairs that
    # start closer, until they have separated [m]
    d_hat: float | None
    # distance that every pair keeps at least [m]
    minimum_separation: float
    # family of the contact barrier
    barrier: Literal["log", "log_sq", "cubic"]
    # what contact counts: every local minimum of distance once, however surfaces are cut into triangles, or all pairs
    # of primitives, as rigid-ipc does
    contact_set: Literal["minima", "ipc"]
    # stiffness of the barrier of every pair, J/m^2 for cubic; auto: by pair, from masses, gravity and loads of the two
    # bodies [J/m^4]
    contact_stiffness: Literal["auto"] | float
    # speed below which friction counts as static [m/s]
    eps_v: float
    # how contacts hold that do not slide: by a spring, stretched by at most eps_v dt, from where sticking began, so
    # that what rests stays; or by a viscous force, under which it creeps, by at most eps_v
    stick: Literal["elastic", "viscous"]
    # friction updates per step; 0: no friction; -1: until the forces balance
    friction_iterations: int
    # largest speed of a vertex in the last Newton step; default: 1e-3, but 3.2e-4 to 9.6e-4 of sqrt(g L), L the median
    # length of the bodies, and at most 1e-4 L per step: 1e-3 for bodies of 0.1 m to 1 m [m/s]
    tolerance: float | None
    # tolerance as a multiple of the scene's bounding-box diagonal, instead of `tolerance` [1/s]
    tolerance_relative: float | None
    # the same while friction acts; default: at most 0.05 eps_v, or the scene's own where it is relative [m/s]
    friction_tolerance: float | None
    # Newton iterations per step
    max_newton: int
    # how often a failed step is halved before the run stops
    retries: int
    # factorisation (direct), conjugate gradients (pcg), or by size and structure
    linear_solver: Literal["auto", "direct", "pcg"]
    # relative residual of pcg
    linear_tolerance: float
    # residual that the nonlinear rows of exact joints may keep after a step; default 1e-8 rad, and 1e-8 of the length
    # of the smaller body; linear ones hold to 1e-9 of half of it [m or rad]
    joint_tolerance: float | None
    # distance from the end of a coordinate's range at which its barrier begins to act, for all lengths that do not say
    # other; default: d_hat, or 1e-3 of the scene's diagonal or a share of its bodies; at most 0.05 of the range [m]
    limit_distance: float | None
    # the same for angles, and for the tilt and the rotation of balls [rad]
    limit_angle: float
    # when contact keeps a kinematic body from its target: stop the run, or let it lag behind
    kinematic_block: Literal["fail", "lag"]
    # bodies that hang together and are all slower for `sleep_time` rest until something comes near; 0: never [m/s]
    sleep_speed: float
    # how long they have to be slower [s]
    sleep_time: float


class OutputKeys(TypedDict, total=False):
    """How long to run and what to write; at most one of frames and duration."""

    # number of steps; default 100
    frames: int | None
    # simulated time [s]
    duration: float | None
    # write every so many steps
    every: int
    # write points of contact and their forces, at /contacts of the trajectory
    contacts: bool
    # `abd run` certifies the run when it has ended, at /certificate of the trajectory
    certificate: bool
