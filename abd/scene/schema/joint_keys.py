"""Types of the keyword arguments of `Scene.add_joint`, `add_coupling` and their kin.

Written by tools/make/typed_keys.py from the schema: `abd schema` tells the same in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict

from abd.scene.schema.body_keys import AxisAngleKeys, EulerKeys, Numbers, Rows, Table


class FrameKeys(TypedDict, total=False):
    """A frame: an origin and a rotation."""

    # its origin [m]
    position: Numbers
    # (w, x, y, z); normalised when read
    quaternion: Numbers | None
    # rotation matrix, three rows
    matrix: Rows | None
    # axis and angle in degrees
    axis_angle: AxisAngleKeys | Table | None
    # Euler angles in degrees
    euler: EulerKeys | Table | None


class DriveKeys(TypedDict, total=False):
    """What moves a coordinate on purpose. Targets and rates are numbers or formulas of t, as in a body's motion."""

    # position, velocity: the target is kept as stiffly as the joint is enforced; pd: by stiffness and damping; force:
    # the target is the force or torque itself; brake: the coordinate is held, up to effort
    mode: Required[Literal["position", "velocity", "pd", "force", "brake"]]
    # value, speed of a velocity drive, or effort of a force drive [m, rad, N, N m]
    target: float | str
    # the same in degrees: value, or speed of a velocity drive [deg]
    target_deg: float | str | None
    # speed of the target of position and pd drives; default 0 [m/s or rad/s]
    rate: float | str | None
    # the same in degrees [deg/s]
    rate_deg: float | str | None
    # gain of pd [N/m or N m/rad]
    stiffness: float
    # gain of pd on the speed; of a velocity drive: softer than the joint [N s/m or N m s/rad]
    damping: float
    # largest force or torque; default: no limit [N or N m]
    effort: float | None
    # 19, 21: the published driving joints, stiffness strength_ratio (m_parent + m_child); 667, 668: force along a
    # slider, torque of a hinge
    uid: int
    # gamma of those
    strength_ratio: float


class CoordinateKeys(TypedDict, total=False):
    """Settings of one coordinate of a joint; the table's name is the coordinate's."""

    # ends of the range: never passed, soft, or the cubic penalty of uids 669 and 670
    limit: Literal["barrier", "compliant", "cubic"]
    # distance from an end at which a barrier begins to act; default: chosen [m or rad]
    limit_distance: float | None
    # the same in degrees [deg]
    limit_distance_deg: float | None
    # of compliant ends [m/N or rad/(N m)]
    limit_compliance: float
    # acts on the way into an end, of a barrier as well; negative: that share of critical damping, of compliant ends [N
    # s/m or N m s/rad]
    limit_damping: float
    # share of the speed that a barrier gives back to what strikes it; 0: nothing
    limit_restitution: float
    # s of the cubic penalty s (v / (upper - lower))^3 [kg m^2]
    limit_strength: float
    # where it is held; default: where it is [m or rad]
    lock_value: float | None
    # the same in degrees [deg]
    lock_value_deg: float | None
    # of a spring along the coordinate [N/m or N m/rad]
    stiffness: float
    # value at which the spring is slack; default 0 [m or rad]
    rest: float | None
    # the same in degrees [deg]
    rest_deg: float | None
    # along the coordinate [N s/m or N m s/rad]
    damping: float
    # force or torque along the coordinate as a formula of its value q, its rate and t, such as '-20 * q**3 - 5 * rate'
    # [N or N m]
    force_formula: str | None
    # the same by name, of a function that abd.coupling_function defines in Python
    force_function: str | None
    # speed that is reported when exceeded [m/s or rad/s]
    velocity_limit: float | None
    # the same in degrees [deg/s]
    velocity_limit_deg: float | None
    # largest effort of the drive [N or N m]
    effort_limit: float | None
    # value at t = 0; default 0 [m or rad]
    initial: float | None
    # the same in degrees [deg]
    initial_deg: float | None
    # speed at t = 0, which impulses along the coordinate give both sides [m/s or rad/s]
    initial_rate: float | None
    # the same in degrees [deg/s]
    initial_rate_deg: float | None
    # [lower, upper], inf where there is no end; angles count over any number of turns [m or rad]
    range: Numbers | None
    # the same in degrees [deg]
    range_deg: Numbers | None
    # whether the coordinate is held
    locked: bool
    # effort of dry friction [N or N m]
    friction: float
    # what dry friction has more per newton that the joint's constraints carried in the last step: mu of a slider, mu
    # times the radius of a bearing [1 or m]
    friction_load: float
    # inertia of a rotor that turns with the coordinate [kg or kg m^2]
    armature: float
    # what moves the coordinate on purpose
    drive: DriveKeys | Table | None


class JointRepeatKeys(TypedDict, total=False):
    """Copies of a joint on a grid, named name_0_0_0, name_0_0_1 and so on."""

    # number of copies along x, y, z; each at least 1
    count: Required[Numbers]
    # how far places in the world move from one copy to the next along x, y, z; default: as the child, else the parent
    # [m]
    step: Numbers | None


class CommonKeys(TypedDict, total=False):
    """A joint between a parent (a body or the world), which carries frame D, and a child, which carries frame C."""

    # false switches the joint off
    active: bool
    # whether the two bodies may touch each other
    collide: bool
    # penalty: stiffness strength_ratio (m_parent + m_child) / h^2; exact: as an equation; compliant: by compliance
    enforcement: Literal["penalty", "exact", "compliant"]
    # gamma of the penalty stiffness gamma (m_parent + m_child); the world counts 0, a static or kinematic body the mass
    # that it is given
    strength_ratio: float
    # hinge: half distance of the two points that define it, default 0.5; others: lever arm of rotary rows, default the
    # mean radius of gyration of the bodies [m]
    length: float | None
    # of all constraint rows, or of the first ones; rows beyond a list are exact [m/N or rad/(N m)]
    compliance: float | Numbers | None
    # of all linear rows, with critical damping of the reduced mass of the two ends [m/N]
    linear_compliance: float | None
    # of all rotary rows, with critical damping of the reduced inertia of the two ends about the joint's point [rad/(N
    # m)]
    rotary_compliance: float | None
    # compliant joints: of all rows or the first; bushing, spring: as stiffness [N s/m or N m s/rad]
    damping: float | Numbers | Rows | None
    # true, or the damping ratio zeta: damping 2 zeta sqrt(m / compliance) of every row, m as above
    critical_damping: bool | float | None
    # force at which the joint lets go for good [N]
    break_force: float | None
    # torque at which it does [N m]
    break_torque: float | None
    # numbers of a type that is defined in Python, by name
    parameters: Mapping[str, float]
    # what acts on its coordinates, by name, such as [joint.coordinate.theta]
    coordinate: Mapping[str, CoordinateKeys | Table]
    # copies on a grid, between copies of bodies
    repeat: JointRepeatKeys | Table | None
    # world point at t = 0 [m]
    anchor: Numbers | None
    # point in the parent's mesh frame (world: world point) [m]
    parent_anchor: Numbers | None
    # point in the child's mesh frame [m]
    child_anchor: Numbers | None
    # world axis z of the joint at t = 0; its length does not matter
    axis: Numbers | None
    # the axis in the parent's mesh frame
    parent_axis: Numbers | None
    # the axis in the child's mesh frame
    child_axis: Numbers | None
    # world direction that x of the joint comes as close to as z allows; default: world axes turned least onto z
    x_axis: Numbers | None
    # the same direction in the parent's mesh frame
    parent_x_axis: Numbers | None
    # the same direction in the child's mesh frame
    child_x_axis: Numbers | None
    # all of frame D in the parent's mesh frame, instead of these
    parent_frame: FrameKeys | Table | Rows | None
    # all of frame D in the world at t = 0
    world_frame: FrameKeys | Table | Rows | None
    # beside one of them: frame C in the child's mesh frame; default: where the initial values put it
    child_frame: FrameKeys | Table | Rows | None
    # beside one of them: frame C in the world at t = 0
    child_world_frame: FrameKeys | Table | Rows | None
    # universal: 'zy' or 'xy'; gimbal: 'zyx' or 'xyz'; order of the rotation axes
    axes: str | None
    # angle between the second axis and its place at right angles [rad]
    skew: float | None
    # the same in degrees [deg]
    skew_deg: float | None
    # semi-axes of the ellipsoid [m]
    radii: Numbers | None
    # angle of the tilt axis of an ellipsoid joint [rad]
    alpha: float | None
    # the same in degrees [deg]
    alpha_deg: float | None
    # ellipsoid joint after OpenSim, whose z is not the surface's normal
    open_sim: bool | None
    # largest angle between the z axes of both frames [rad]
    max_tilt: float | None
    # the same in degrees [deg]
    max_tilt_deg: float | None
    # largest rotations about x, y and z [rad]
    max_rotation: Numbers | None
    # the same in degrees [deg]
    max_rotation_deg: Numbers | None
    # of soft ends of max_tilt and max_rotation; default: barriers, which are never passed [rad/(N m)]
    limit_compliance: float | None
    # on the way into them; negative: that share of critical damping [N m s/rad]
    limit_damping: float | None
    # the point stays on or above the plane, instead of on it
    unilateral: bool | None
    # corners (x, z) of the profile in frame D [m]
    segments: Rows | None
    # advance of a screw per radian; negative: left-handed [m/rad]
    lead: float | None
    # axes that are held: some of x, y, z, rx, ry, rz, or true or false (1 or 0) for each of them in this order
    constrained: Sequence[Literal["x", "y", "z", "rx", "ry", "rz"]] | None
    # whose axes x, y, z those are; default: parent, of spherical joints world
    frame: Literal["parent", "world"] | None
    # displacement and angles (x, y, z, rx, ry, rz) at which a bushing is slack; default 0 [m, rad]
    rest: float | Numbers | None
    # of a damper: force against the velocity of the child's point in the parent [N s/m]
    linear_damping: float | None
    # of a damper or ball: torque against the angular velocity of the child in the parent [N m s]
    rotary_damping: float | None
    # of a ball: torque against the rotation vector [N m/rad]
    rotary_stiffness: float | None
    # of a ball: Coulomb friction about each axis of the child [N m]
    rotary_friction: float | None
    # of a ball: inertia of a rotor that turns with it [kg m^2]
    rotary_armature: float | None
    # distance at which a spring is slack [m]
    rest_length: float | None
    # springs: force between the ends as a formula of length, gap = length - rest_length, speed = d length / dt and t,
    # such as '-400 * max(0, gap)' or '-30 * speed * abs(speed)'; positive pushes them apart [N]
    force_formula: str | None
    # the same by name, of a function that abd.coupling_function defines in Python
    force_function: str | None
    # value at t = 0; default 0 [m or rad]
    initial: float | None
    # the same in degrees [deg]
    initial_deg: float | None
    # speed at t = 0, which impulses along the coordinate give both sides [m/s or rad/s]
    initial_rate: float | None
    # the same in degrees [deg/s]
    initial_rate_deg: float | None
    # [lower, upper], inf where there is no end; angles count over any number of turns [m or rad]
    range: Numbers | None
    # the same in degrees [deg]
    range_deg: Numbers | None
    # whether the coordinate is held
    locked: bool
    # effort of dry friction [N or N m]
    friction: float
    # what dry friction has more per newton that the joint's constraints carried in the last step: mu of a slider, mu
    # times the radius of a bearing [1 or m]
    friction_load: float
    # inertia of a rotor that turns with the coordinate [kg or kg m^2]
    armature: float
    # what moves the coordinate on purpose
    drive: DriveKeys | Table | None
    # whether it is drawn; default true
    show: bool | None
    # as that of a body; default: the colour of joints, also where the first number is -1
    color: Numbers | None
    # of the ball at the joint's point; default: fits the bodies [m]
    joint_radius: float | None
    # of the axes of drawn frames; default: fits the bodies [m]
    axis_length: float | None
    # of the shaft along the axis; default: pins have one that fits [m]
    shaft_length: float | None
    # its radius; default: fits the thinner body [m]
    shaft_radius: float | None
    # whether and how the child's frame is drawn; default off
    draw_frame_c: Literal["off", "line", "arrow"] | None
    # whether and how the parent's frame is drawn; default off
    draw_frame_d: Literal["off", "line", "arrow"] | None
    # edge length of the plane x-y of D that is drawn; default: none is [m]
    plane_size: float | None
    # width of the slot along x of D that is drawn; default: none is [m]
    slot_width: float | None
    # depth of the slot [m]
    slot_depth: float | None
    # where the slot begins and ends [m]
    slot_range: Numbers | None
    # whether the surface of an ellipsoid joint is drawn; default false
    draw_ellipsoid: bool | None


class CouplingTermKeys(TypedDict, total=False):
    """One summand f(q) of a coupling, q a coordinate; factor, polynomial or table says what f is."""

    # joint and coordinate, such as 'wheel.theta'; the joint alone where it has one only
    coordinate: Required[str]
    # f = factor q; default 1
    factor: float | None
    # coefficients of f, lowest order first: [0, 2] is 2 q
    polynomial: Numbers | None
    # points [q, f] with growing q of a natural cubic spline, straight beyond them
    table: Rows | None


class CouplingKeys(TypedDict, total=False):
    """A relation q0 = scale (f1(q1) + f2(q2) + ...) between coordinates [m or rad] of joints: gears, racks, mimics."""

    # instead of terms: f as a formula of the variables, such as 'a * sin(b)'
    formula: str | None
    # instead of terms: name of an f that abd.coupling_function defines in Python
    function: str | None
    # names in f, with joint and coordinate: { a = 'wheel.theta' }
    variables: Mapping[str, str]
    # factor on their sum
    scale: float
    # as in a joint
    enforcement: Literal["penalty", "exact", "compliant"]
    # gamma of the penalty
    strength_ratio: float
    # of a compliant coupling [m/N or rad/(N m)]
    compliance: float
    # of a compliant coupling [N s/m or N m s/rad]
    damping: float
    # false switches the coupling off
    active: bool


class JointKeys(CommonKeys, total=False):
    """Keys of a joint."""

    # length of the rod, largest length of the rope [m]
    distance: float | None
    # compliant joints: 1/compliance; bushing: one, six or 6x6; spring: one [N/m or N m/rad]
    stiffness: float | Numbers | Rows | None


class DistanceKeys(CommonKeys, total=False):
    """Keys of a joint whose distance is an argument."""

    # compliant joints: 1/compliance; bushing: one, six or 6x6; spring: one [N/m or N m/rad]
    stiffness: float | Numbers | Rows | None


class SpringKeys(CommonKeys, total=False):
    """Keys of a joint whose stiffness is an argument."""

    # length of the rod, largest length of the rope [m]
    distance: float | None
