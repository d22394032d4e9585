"""Joints, their coordinates and couplings in scene files; see `abd.scene.schema.schema`.

An angle has two keys, one in radians and one in degrees whose name ends in ``_deg``; at most one may be given.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from abd.joints.types import ALIASES, TYPES
from abd.scene.schema.fields import (
    AxisName,
    Color,
    Count,
    Direction,
    Extents,
    Flag,
    Formula,
    Number,
    Orientation,
    Spec,
    Triple,
    Vector,
    entry,
)
from abd.scene.schema.joint_types import type_value, with_own_keys
from abd.scene.schema.values import axes_value, grid_value, numbers_value, points_value

WORLD_NAME = "world"
"""Name of the world as parent of a joint."""

RANGE = "two numbers [lower, upper], with -inf or inf for no bound"
GAINS = "a number, a list of numbers or six rows of six numbers"
Range = Annotated[tuple[float, float], BeforeValidator(numbers_value(RANGE, (2,), largest=math.inf))]
Numbers = Annotated[
    float | tuple[float, ...], BeforeValidator(numbers_value("a number or a list of numbers", (), (None,)))
]
Gains = Annotated[
    float | tuple[float, ...] | tuple[tuple[float, ...], ...],
    BeforeValidator(numbers_value(GAINS, (), (None,), (6, 6))),
]
Profile = Annotated[tuple[tuple[float, float], ...], BeforeValidator(points_value)]
AxisNames = Annotated[tuple[AxisName, ...], BeforeValidator(axes_value)]
TypeName = Annotated[str, BeforeValidator(type_value), WithJsonSchema({"type": "string", "enum": [*TYPES, *ALIASES]})]
Enforcement = Literal["penalty", "exact", "compliant"]
Arrows = Literal["off", "line", "arrow"]


class FrameSpec(Orientation):
    """A frame: an origin and a rotation."""

    position: Vector = entry((0.0, 0.0, 0.0), "origin of the frame", unit="m")


class DriveSpec(Spec):
    """Drive of a coordinate. Targets and rates are numbers or formulas of t, as in the motion of a body."""

    mode: Literal["position", "velocity", "pd", "force", "brake"] = entry(
        ...,
        "position, velocity: the target is enforced like the constraints of the joint; pd: proportional-derivative control "
        "with stiffness and damping; force: the target is the force or torque; brake: the coordinate is locked, up to effort",
    )
    target: Formula = entry(0.0, "target value, rate (velocity drive), or force or torque (force drive)", unit="m, rad, N, N m")
    target_deg: Formula | None = entry(None, "target value, or rate of a velocity drive, in degrees", unit="deg")
    rate: Formula | None = entry(None, "rate of the target of position and pd drives; default 0", unit="m/s or rad/s")
    rate_deg: Formula | None = entry(None, "the same in degrees", unit="deg/s")
    stiffness: Number = entry(0.0, "proportional gain of a pd drive", unit="N/m or N m/rad", ge=0)
    damping: Number = entry(
        0.0,
        "derivative gain of a pd drive; gain of a velocity drive that is softer than the joint",
        unit="N s/m or N m s/rad",
        ge=0,
    )
    effort: Number | None = entry(None, "largest force or torque; default: no limit", unit="N or N m", gt=0)
    uid: Count = entry(
        0,
        "19, 21: published driving joints of stiffness strength_ratio (m_parent + m_child); 667, 668: published force of a "
        "slider, torque of a hinge; 0: none",
    )
    strength_ratio: Number = entry(100.0, "strength ratio of the driving joints 19 and 21", gt=0)


class CoordinateKeys(Spec):
    """Keys of a coordinate; a joint with a single coordinate may have them itself."""

    initial: Number | None = entry(None, "value at t = 0; default 0", unit="m or rad")
    initial_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    initial_rate: Number | None = entry(
        None, "rate at t = 0, from impulses on both bodies along the coordinate", unit="m/s or rad/s"
    )
    initial_rate_deg: Number | None = entry(None, "the same in degrees", unit="deg/s")
    range: Range | None = entry(
        None, "[lower, upper], inf for no bound; angles count full turns", unit="m or rad"
    )
    range_deg: Range | None = entry(None, "the same in degrees", unit="deg")
    locked: Flag = entry(False, "true: the coordinate is fixed at `lock_value`")
    friction: Number = entry(0.0, "Coulomb friction force or torque", unit="N or N m", ge=0)
    friction_load: Number = entry(
        0.0,
        "additional Coulomb friction per constraint force of the joint in the last step: mu of a slider, mu times radius of a "
        "bearing",
        unit="1 or m",
        ge=0,
    )
    armature: Number = entry(0.0, "rotor inertia that moves with the coordinate", unit="kg or kg m^2", ge=0)
    drive: DriveSpec | None = entry(None, "drive of the coordinate")


Limit = Literal["barrier", "compliant", "cubic"]
"""Types of limits, in `abd.joints.rows.build`."""


class CoordinateSpec(CoordinateKeys):
    """Settings of the coordinate of a joint with the name of the table."""

    limit: Limit = entry("barrier", "type of limit; barrier: hard; compliant: soft; cubic: cubic penalty of uids 669 and 670")
    limit_distance: Number | None = entry(
        None, "activation distance of barrier limits; default: solver.limit_distance or limit_angle", unit="m or rad", gt=0
    )
    limit_distance_deg: Number | None = entry(None, "the same in degrees", unit="deg", gt=0)
    limit_compliance: Number = entry(0.0, "compliance of compliant limits", unit="m/N or rad/(N m)", ge=0)
    limit_damping: Number = entry(
        0.0,
        "damping of motion towards a bound, of barrier and compliant limits; negative, compliant limits: damping ratio",
        unit="N s/m or N m s/rad",
    )
    limit_restitution: Number = entry(
        0.0, "coefficient of restitution of barrier limits", ge=0, le=1
    )
    limit_strength: Number = entry(1.0, "coefficient s of the cubic penalty s (v / (upper - lower))^3", unit="kg m^2", gt=0)
    lock_value: Number | None = entry(None, "value of a locked coordinate; default: initial value", unit="m or rad")
    lock_value_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    stiffness: Number = entry(0.0, "stiffness of a spring along the coordinate", unit="N/m or N m/rad", ge=0)
    rest: Number | None = entry(None, "value at which the spring force is zero; default 0", unit="m or rad")
    rest_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    damping: Number = entry(0.0, "viscous damping along the coordinate", unit="N s/m or N m s/rad", ge=0)
    force_formula: str | None = entry(
        None,
        "force or torque along the coordinate as a formula of its value q, its rate and t, such as '-20 * q**3 - 5 * rate'",
        unit="N or N m",
    )
    force_function: str | None = entry(
        None, "name of a function defined by abd.coupling_function in Python, instead of a formula"
    )
    velocity_limit: Number | None = entry(None, "rate above which steps report a warning", unit="m/s or rad/s", gt=0)
    velocity_limit_deg: Number | None = entry(None, "the same in degrees", unit="deg/s", gt=0)
    effort_limit: Number | None = entry(None, "largest force or torque of the drive", unit="N or N m", gt=0)


class JointFrames(Spec):
    """Frames of a joint: in the world at t = 0, or on each of its bodies."""

    anchor: Vector | None = entry(None, "world point at t = 0", unit="m")
    parent_anchor: Vector | None = entry(None, "point in the parent's mesh frame (world: world point)", unit="m")
    child_anchor: Vector | None = entry(None, "point in the child's mesh frame", unit="m")
    axis: Direction | None = entry(None, "world axis z of the joint at t = 0; its length does not matter")
    parent_axis: Direction | None = entry(None, "the axis in the parent's mesh frame")
    child_axis: Direction | None = entry(None, "the axis in the child's mesh frame")
    x_axis: Direction | None = entry(
        None,
        "world direction whose projection normal to z is x of the joint; default: smallest rotation of the world axes to z",
    )
    parent_x_axis: Direction | None = entry(None, "the same direction in the parent's mesh frame")
    child_x_axis: Direction | None = entry(None, "the same direction in the child's mesh frame")
    parent_frame: FrameSpec | None = entry(None, "frame D in the parent's mesh frame, instead of anchors and axes")
    world_frame: FrameSpec | None = entry(None, "frame D in the world at t = 0, instead of anchors and axes")
    child_frame: FrameSpec | None = entry(
        None, "frame C in the child's mesh frame, with frame D; default: from D and the initial values"
    )
    child_world_frame: FrameSpec | None = entry(None, "frame C in the world at t = 0, with frame D")


class JointParameters(Spec):
    """Parameters of single joint types."""

    axes: str | None = entry(None, "order of the rotation axes; universal: 'zy' or 'xy'; gimbal: 'zyx' or 'xyz'")
    skew: Number | None = entry(None, "deviation of the two axes of a universal joint from a right angle", unit="rad")
    skew_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    radii: Vector | None = entry(None, "semi-axes of the ellipsoid", unit="m")
    alpha: Number | None = entry(None, "angle of the tilt axis of an ellipsoid joint", unit="rad")
    alpha_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    open_sim: Flag | None = entry(None, "ellipsoid joint as in OpenSim, whose z is not the surface normal")
    max_tilt: Number | None = entry(None, "largest angle between the z axes of both frames", unit="rad", gt=0)
    max_tilt_deg: Number | None = entry(None, "the same in degrees", unit="deg", gt=0)
    max_rotation: Extents | None = entry(None, "largest rotations about x, y and z", unit="rad")
    max_rotation_deg: Extents | None = entry(None, "the same in degrees", unit="deg")
    limit_compliance: Number | None = entry(
        None,
        "compliance of max_tilt and max_rotation; default: barriers (hard limits)",
        unit="rad/(N m)",
        gt=0,
    )
    limit_damping: Number | None = entry(
        None, "damping towards these limits; negative: damping ratio", unit="N m s/rad"
    )
    unilateral: Flag | None = entry(None, "true: the point stays on or above the plane; false: on it")
    segments: Profile | None = entry(None, "corners (x, z) of the profile in frame D", unit="m")
    distance: Number | None = entry(None, "length of a rod, largest length of a rope", unit="m", gt=0)
    lead: Number | None = entry(None, "advance of a screw per radian; negative: left-handed", unit="m/rad")
    constrained: AxisNames | None = entry(
        None,
        "constrained axes: some of x, y, z, rx, ry, rz, or true or false (1 or 0) for each of them in this order",
    )
    frame: Literal["parent", "world"] | None = entry(
        None, "frame of the constrained axes; default: parent, for spherical joints world"
    )
    rest: Numbers | None = entry(
        None, "displacement and angles (x, y, z, rx, ry, rz) at which the bushing force is zero; default 0", unit="m, rad"
    )
    linear_damping: Number | None = entry(
        None, "damper: force per velocity of the child's point in the parent", unit="N s/m", ge=0
    )
    rotary_damping: Number | None = entry(
        None, "damper, spherical: torque per angular velocity of the child in the parent", unit="N m s", ge=0
    )
    rotary_stiffness: Number | None = entry(None, "spherical: restoring torque per rotation vector", unit="N m/rad", ge=0)
    rotary_friction: Number | None = entry(
        None, "spherical: Coulomb friction torque about each axis of the child", unit="N m", ge=0
    )
    rotary_armature: Number | None = entry(
        None, "spherical: rotor inertia", unit="kg m^2", ge=0
    )
    rest_length: Number | None = entry(None, "distance at which the spring force is zero; default 0", unit="m", ge=0)
    force_formula: str | None = entry(
        None,
        "springs: force between the points as a formula of length, gap = length - rest_length, speed = d length / dt and t, such "
        "as '-400 * max(0, gap)' or '-30 * speed * abs(speed)'; positive pushes them apart",
        unit="N",
    )
    force_function: str | None = entry(
        None, "name of a function defined by abd.coupling_function in Python, instead of a formula"
    )


class JointDrawing(Spec):
    """Display of a joint; without effect on the simulation."""

    show: Flag | None = entry(None, "true: the joint is drawn; default true")
    color: Color | None = entry(
        None, "colour, as of a body; default, and if the first number is -1: colour of joints"
    )
    joint_radius: Number | None = entry(
        None, "radius of the ball at the joint's point; default: from the size of the bodies", unit="m", ge=0
    )
    axis_length: Number | None = entry(None, "length of drawn frame axes; default: from the size of the bodies", unit="m", ge=0)
    shaft_length: Number | None = entry(
        None, "length of the shaft along the axis; default: only hinges and similar types have one", unit="m", ge=0
    )
    shaft_radius: Number | None = entry(None, "radius of the shaft; default: from the size of the thinner body", unit="m", ge=0)
    draw_frame_c: Arrows | None = entry(None, "display of the child's frame; default off")
    draw_frame_d: Arrows | None = entry(None, "display of the parent's frame; default off")
    plane_size: Number | None = entry(
        None, "edge length of a drawn plane x-y of D; default: no plane", unit="m", ge=0
    )
    slot_width: Number | None = entry(
        None, "width of a drawn slot along x of D; default: no slot", unit="m", ge=0
    )
    slot_depth: Number | None = entry(None, "depth of the slot", unit="m", ge=0)
    slot_range: Range | None = entry(None, "start and end of the slot along x", unit="m")
    draw_ellipsoid: Flag | None = entry(None, "true: the surface of an ellipsoid joint is drawn; default false")


class JointRepeatSpec(Spec):
    """Copies of a joint on a grid, named name_0_0_0, name_0_0_1 and so on.

    If parent or child is a copy of a repeated body, its grid index increases with that of the joint: `parent =
    "link_0_0_0"`, `child = "link_1_0_0"` and `count = [9, 1, 1]` make a chain of ten links.
    """

    count: Annotated[Triple, BeforeValidator(grid_value)] = entry(
        ..., "number of copies along x, y, z; each at least 1"
    )
    step: Vector | None = entry(
        None,
        "distance between copies of world points along x, y, z; default: step of the child, otherwise of the parent",
        unit="m",
    )


class JointSpec(JointDrawing, CoordinateKeys, JointParameters, JointFrames):
    """A joint between frame D of a parent (a body or the world) and frame C of a child.

    The point of the joint is one world point at t = 0 (`anchor`), or one point of each body (`parent_anchor`,
    `child_anchor`); two points with a small initial distance are pulled together. The axis (z of both frames) and the
    direction of x are given in the same two ways, or both frames are given completely. With `anchor`, the initial values
    of the coordinates determine the initial pose of the child. A joint with a single coordinate may have the keys
    initial, range, locked, friction, armature and drive (`_deg` included) of the coordinate itself.
    """

    name: str = entry(..., "unique name", min_length=1)
    type: TypeName = entry(..., "joint type; see Joint types")
    parent: str = entry(WORLD_NAME, "name of a body, or world")
    child: str = entry(..., "name of a body")
    active: Flag = entry(True, "false: the joint has no effect")
    collide: Flag = entry(False, "true: contact between the two bodies")
    enforcement: Enforcement = entry(
        "penalty",
        "method for the constraints; penalty: stiffness strength_ratio (m_parent + m_child) / h^2; exact: Lagrange "
        "multipliers; compliant: given compliance",
    )
    strength_ratio: Number = entry(
        100.0,
        "gamma of the penalty stiffness gamma (m_parent + m_child); the mass of the world is 0, that of a static or kinematic "
        "body as given",
        gt=0,
    )
    length: Number | None = entry(
        None,
        "hinge: half distance of its two points, default 0.5; others: lever arm of rotary constraints, default the mean "
        "radius of gyration of the bodies",
        unit="m",
        gt=0,
    )
    compliance: Numbers | None = entry(
        None, "compliance of all constraint rows, or a list; rows beyond the list are exact", unit="m/N or rad/(N m)"
    )
    linear_compliance: Number | None = entry(
        None, "compliance of all linear rows, with critical damping of the reduced mass of the two bodies", unit="m/N", ge=0
    )
    rotary_compliance: Number | None = entry(
        None,
        "compliance of all rotary rows, with critical damping of the reduced inertia of the two bodies about the joint's point",
        unit="rad/(N m)",
        ge=0,
    )
    stiffness: Gains | None = entry(
        None, "compliant joints: 1/compliance; bushing: one, six or 6x6 numbers; spring: one number", unit="N/m or N m/rad"
    )
    damping: Gains | None = entry(
        None, "compliant joints: damping of all rows or a list; bushing, spring: as stiffness", unit="N s/m or N m s/rad"
    )
    critical_damping: Flag | Number | None = entry(
        None, "true, or damping ratio zeta: damping 2 zeta sqrt(m / compliance) of every row, with the reduced mass m"
    )
    break_force: Number | None = entry(None, "force above which the joint breaks", unit="N", gt=0)
    break_torque: Number | None = entry(None, "torque above which the joint breaks", unit="N m", gt=0)
    parameters: dict[str, Number] = entry({}, "parameters of a user-defined joint type")
    coordinate: dict[str, CoordinateSpec] = entry(
        {}, "settings of coordinates by name, such as [joint.coordinate.theta]"
    )
    repeat: JointRepeatSpec | None = entry(None, "copies on a grid, between copies of bodies")

    @model_validator(mode="before")
    @classmethod
    def _with_own_keys(cls, data: Any) -> Any:
        return with_own_keys(data) if isinstance(data, dict) else data


class CouplingTermSpec(Spec):
    """A term f(q) of a coupling, for a coordinate q; f is a factor, polynomial or table."""

    coordinate: str = entry(..., "joint and coordinate, such as 'wheel.theta'; the joint suffices if it has one coordinate")
    factor: Number | None = entry(None, "f = factor q; default 1")
    polynomial: tuple[Number, ...] | None = entry(None, "coefficients of f, lowest order first: [0, 2] is 2 q")
    table: Profile | None = entry(None, "points [q, f] with increasing q of a natural cubic spline, extended by straight lines")


class CouplingSpec(Spec):
    """A relation q0 = scale (f1(q1) + f2(q2) + ...) between coordinates [m or rad] of joints: gears, racks, mimics.

    Or q0 = scale f(q1, q2, ...) by a formula of named variables, on the devices numpy and cpu.
    """

    name: str = entry(..., "unique name", min_length=1)
    coordinate: str = entry(..., "q0: joint and coordinate, such as 'rack.z'; the joint suffices if it has one coordinate")
    terms: list[CouplingTermSpec] = entry([], "terms of the sum")
    formula: str | None = entry(None, "formula f of the variables instead of terms, such as 'a * sin(b)'")
    function: str | None = entry(None, "name of a function f defined by abd.coupling_function in Python, instead of terms")
    variables: dict[str, str] = entry({}, "variables of f with joint and coordinate: { a = 'wheel.theta' }")
    scale: Number = entry(1.0, "factor of the sum")
    enforcement: Enforcement = entry("penalty", "as in a joint")
    strength_ratio: Number = entry(100.0, "gamma of the penalty stiffness", gt=0)
    compliance: Number = entry(0.0, "compliance of a compliant coupling", unit="m/N or rad/(N m)", ge=0)
    damping: Number = entry(0.0, "damping of a compliant coupling", unit="N s/m or N m s/rad", ge=0)
    active: Flag = entry(True, "false: the coupling has no effect")
