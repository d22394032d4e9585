"""What a scene file may say about joints, their coordinates and what couples them; see `abd.scene.schema.schema`.

An angle has two keys, one in radians and one in degrees whose name ends in ``_deg``; at most one of them is given.
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
"""What a joint calls the world, where a body's name is expected."""

RANGE = "two numbers [lower, upper], -inf or inf where there is no end"
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

    position: Vector = entry((0.0, 0.0, 0.0), "its origin", unit="m")


class DriveSpec(Spec):
    """What moves a coordinate on purpose. Targets and rates are numbers or formulas of t, as in a body's motion."""

    mode: Literal["position", "velocity", "pd", "force", "brake"] = entry(
        ...,
        "position, velocity: the target is kept as stiffly as the joint is enforced; pd: by stiffness and damping; "
        "force: the target is the force or torque itself; brake: the coordinate is held, up to effort",
    )
    target: Formula = entry(0.0, "value, speed of a velocity drive, or effort of a force drive", unit="m, rad, N, N m")
    target_deg: Formula | None = entry(None, "the same in degrees: value, or speed of a velocity drive", unit="deg")
    rate: Formula | None = entry(None, "speed of the target of position and pd drives; default 0", unit="m/s or rad/s")
    rate_deg: Formula | None = entry(None, "the same in degrees", unit="deg/s")
    stiffness: Number = entry(0.0, "gain of pd", unit="N/m or N m/rad", ge=0)
    damping: Number = entry(
        0.0, "gain of pd on the speed; of a velocity drive: softer than the joint", unit="N s/m or N m s/rad", ge=0
    )
    effort: Number | None = entry(None, "largest force or torque; default: no limit", unit="N or N m", gt=0)
    uid: Count = entry(
        0,
        "19, 21: the published driving joints, stiffness strength_ratio (m_parent + m_child); 667, 668: force along a "
        "slider, torque of a hinge",
    )
    strength_ratio: Number = entry(100.0, "gamma of those", gt=0)


class CoordinateKeys(Spec):
    """Keys of a coordinate that a joint with a single one may carry itself."""

    initial: Number | None = entry(None, "value at t = 0; default 0", unit="m or rad")
    initial_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    initial_rate: Number | None = entry(
        None, "speed at t = 0, which impulses along the coordinate give both sides", unit="m/s or rad/s"
    )
    initial_rate_deg: Number | None = entry(None, "the same in degrees", unit="deg/s")
    range: Range | None = entry(
        None, "[lower, upper], inf where there is no end; angles count over any number of turns", unit="m or rad"
    )
    range_deg: Range | None = entry(None, "the same in degrees", unit="deg")
    locked: Flag = entry(False, "whether the coordinate is held")
    friction: Number = entry(0.0, "effort of dry friction", unit="N or N m", ge=0)
    friction_load: Number = entry(
        0.0,
        "what dry friction has more per newton that the joint's constraints carried in the last step: mu of a slider, mu times "
        "the radius of a bearing",
        unit="1 or m",
        ge=0,
    )
    armature: Number = entry(0.0, "inertia of a rotor that turns with the coordinate", unit="kg or kg m^2", ge=0)
    drive: DriveSpec | None = entry(None, "what moves the coordinate on purpose")


Limit = Literal[
    "barrier",
    "compliant",
    "cubic",
]
"""What the ends of a range are: kinds of `abd.joints.rows.build`."""


class CoordinateSpec(CoordinateKeys):
    """Settings of one coordinate of a joint; the table's name is the coordinate's."""

    limit: Limit = entry("barrier", "ends of the range: never passed, soft, or the cubic penalty of uids 669 and 670")
    limit_distance: Number | None = entry(
        None, "distance from an end at which a barrier begins to act; default: chosen", unit="m or rad", gt=0
    )
    limit_distance_deg: Number | None = entry(None, "the same in degrees", unit="deg", gt=0)
    limit_compliance: Number = entry(0.0, "of compliant ends", unit="m/N or rad/(N m)", ge=0)
    limit_damping: Number = entry(
        0.0,
        "acts on the way into an end, of a barrier as well; negative: that share of critical damping, of compliant ends",
        unit="N s/m or N m s/rad",
    )
    limit_restitution: Number = entry(
        0.0, "share of the speed that a barrier gives back to what strikes it; 0: nothing", ge=0, le=1
    )
    limit_strength: Number = entry(1.0, "s of the cubic penalty s (v / (upper - lower))^3", unit="kg m^2", gt=0)
    lock_value: Number | None = entry(None, "where it is held; default: where it is", unit="m or rad")
    lock_value_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    stiffness: Number = entry(0.0, "of a spring along the coordinate", unit="N/m or N m/rad", ge=0)
    rest: Number | None = entry(None, "value at which the spring is slack; default 0", unit="m or rad")
    rest_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    damping: Number = entry(0.0, "along the coordinate", unit="N s/m or N m s/rad", ge=0)
    force_formula: str | None = entry(
        None,
        "force or torque along the coordinate as a formula of its value q, its rate and t, such as '-20 * q**3 - 5 * rate'",
        unit="N or N m",
    )
    force_function: str | None = entry(
        None, "the same by name, of a function that abd.coupling_function defines in Python"
    )
    velocity_limit: Number | None = entry(None, "speed that is reported when exceeded", unit="m/s or rad/s", gt=0)
    velocity_limit_deg: Number | None = entry(None, "the same in degrees", unit="deg/s", gt=0)
    effort_limit: Number | None = entry(None, "largest effort of the drive", unit="N or N m", gt=0)


class JointFrames(Spec):
    """Where a joint is: in the world at t = 0, or on each of its bodies."""

    anchor: Vector | None = entry(None, "world point at t = 0", unit="m")
    parent_anchor: Vector | None = entry(None, "point in the parent's mesh frame (world: world point)", unit="m")
    child_anchor: Vector | None = entry(None, "point in the child's mesh frame", unit="m")
    axis: Vector | None = entry(None, "world axis z of the joint at t = 0; its length does not matter")
    parent_axis: Vector | None = entry(None, "the axis in the parent's mesh frame")
    child_axis: Vector | None = entry(None, "the axis in the child's mesh frame")
    x_axis: Vector | None = entry(
        None,
        "world direction that x of the joint comes as close to as z allows; default: world axes turned least onto z",
    )
    parent_x_axis: Vector | None = entry(None, "the same direction in the parent's mesh frame")
    child_x_axis: Vector | None = entry(None, "the same direction in the child's mesh frame")
    parent_frame: FrameSpec | None = entry(None, "all of frame D in the parent's mesh frame, instead of these")
    world_frame: FrameSpec | None = entry(None, "all of frame D in the world at t = 0")
    child_frame: FrameSpec | None = entry(
        None, "with one of them: frame C in the child's mesh frame; default: where the initial values put it"
    )
    child_world_frame: FrameSpec | None = entry(None, "with one of them: frame C in the world at t = 0")


class JointParameters(Spec):
    """Numbers of single joint types."""

    axes: str | None = entry(None, "universal: 'zy' or 'xy'; gimbal: 'zyx' or 'xyz'; order of the rotation axes")
    skew: Number | None = entry(None, "angle between the second axis and its place at right angles", unit="rad")
    skew_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    radii: Vector | None = entry(None, "semi-axes of the ellipsoid", unit="m")
    alpha: Number | None = entry(None, "angle of the tilt axis of an ellipsoid joint", unit="rad")
    alpha_deg: Number | None = entry(None, "the same in degrees", unit="deg")
    open_sim: Flag | None = entry(None, "ellipsoid joint after OpenSim, whose z is not the surface's normal")
    max_tilt: Number | None = entry(None, "largest angle between the z axes of both frames", unit="rad", gt=0)
    max_tilt_deg: Number | None = entry(None, "the same in degrees", unit="deg", gt=0)
    max_rotation: Extents | None = entry(None, "largest rotations about x, y and z", unit="rad")
    max_rotation_deg: Extents | None = entry(None, "the same in degrees", unit="deg")
    limit_compliance: Number | None = entry(
        None,
        "of soft ends of max_tilt and max_rotation; default: barriers, which are never passed",
        unit="rad/(N m)",
        gt=0,
    )
    limit_damping: Number | None = entry(
        None, "on the way into them; negative: that share of critical damping", unit="N m s/rad"
    )
    unilateral: Flag | None = entry(None, "the point stays on or above the plane, instead of on it")
    segments: Profile | None = entry(None, "corners (x, z) of the profile in frame D", unit="m")
    distance: Number | None = entry(None, "length of the rod, largest length of the rope", unit="m", gt=0)
    lead: Number | None = entry(None, "advance of a screw per radian; negative: left-handed", unit="m/rad")
    constrained: AxisNames | None = entry(
        None,
        "axes that are held: some of x, y, z, rx, ry, rz, or true or false (1 or 0) for each of them in this order",
    )
    frame: Literal["parent", "world"] | None = entry(
        None, "whose axes x, y, z those are; default: parent, of spherical joints world"
    )
    rest: Numbers | None = entry(
        None, "displacement and angles (x, y, z, rx, ry, rz) at which a bushing is slack; default 0", unit="m, rad"
    )
    linear_damping: Number | None = entry(
        None, "of a damper: force against the velocity of the child's point in the parent", unit="N s/m", ge=0
    )
    rotary_damping: Number | None = entry(
        None, "of a damper or ball: torque against the angular velocity of the child in the parent", unit="N m s", ge=0
    )
    rotary_stiffness: Number | None = entry(None, "of a ball: torque against the rotation vector", unit="N m/rad", ge=0)
    rotary_friction: Number | None = entry(
        None, "of a ball: Coulomb friction about each axis of the child", unit="N m", ge=0
    )
    rotary_armature: Number | None = entry(
        None, "of a ball: inertia of a rotor that turns with it", unit="kg m^2", ge=0
    )
    rest_length: Number | None = entry(None, "distance at which a spring is slack", unit="m", ge=0)
    force_formula: str | None = entry(
        None,
        "springs: force between the ends as a formula of length, gap = length - rest_length, speed = d length / dt and t, such "
        "as '-400 * max(0, gap)' or '-30 * speed * abs(speed)'; positive pushes them apart",
        unit="N",
    )
    force_function: str | None = entry(
        None, "the same by name, of a function that abd.coupling_function defines in Python"
    )


class JointDrawing(Spec):
    """How a viewer draws a joint; nothing here acts on the simulation."""

    show: Flag | None = entry(None, "whether it is drawn; default true")
    color: Color | None = entry(
        None, "as that of a body; default: the colour of joints, also where the first number is -1"
    )
    joint_radius: Number | None = entry(
        None, "of the ball at the joint's point; default: fits the bodies", unit="m", ge=0
    )
    axis_length: Number | None = entry(None, "of the axes of drawn frames; default: fits the bodies", unit="m", ge=0)
    shaft_length: Number | None = entry(
        None, "of the shaft along the axis; default: pins have one that fits", unit="m", ge=0
    )
    shaft_radius: Number | None = entry(None, "its radius; default: fits the thinner body", unit="m", ge=0)
    draw_frame_c: Arrows | None = entry(None, "whether and how the child's frame is drawn; default off")
    draw_frame_d: Arrows | None = entry(None, "whether and how the parent's frame is drawn; default off")
    plane_size: Number | None = entry(
        None, "edge length of the plane x-y of D that is drawn; default: none is", unit="m", ge=0
    )
    slot_width: Number | None = entry(
        None, "width of the slot along x of D that is drawn; default: none is", unit="m", ge=0
    )
    slot_depth: Number | None = entry(None, "depth of the slot", unit="m", ge=0)
    slot_range: Range | None = entry(None, "where the slot begins and ends", unit="m")
    draw_ellipsoid: Flag | None = entry(None, "whether the surface of an ellipsoid joint is drawn; default false")


class JointRepeatSpec(Spec):
    """Copies of a joint on a grid, named name_0_0_0, name_0_0_1 and so on.

    Where parent or child is a copy of a repeated body, its place on that grid counts up with the joint's: `parent =
    "link_0_0_0"`, `child = "link_1_0_0"` and `count = [9, 1, 1]` make a chain of ten links.
    """

    count: Annotated[Triple, BeforeValidator(grid_value)] = entry(
        ..., "number of copies along x, y, z; each at least 1"
    )
    step: Vector | None = entry(
        None,
        "how far places in the world move from one copy to the next along x, y, z; default: as the child, else the parent",
        unit="m",
    )


class JointSpec(JointDrawing, CoordinateKeys, JointParameters, JointFrames):
    """A joint between a parent (a body or the world), which carries frame D, and a child, which carries frame C.

    Its point is either one world point at t = 0 (`anchor`), or a point of each body (`parent_anchor`, `child_anchor`),
    which may start a little apart and are then pulled together. Its axis, z of both frames, and the direction of x are
    given in the same two ways; or both frames are given as a whole. With `anchor`, the child starts where the initial
    values of the coordinates say. The keys initial, range, locked, friction, armature and drive (`_deg` included) stand
    for those of the coordinate where a joint has one only.
    """

    name: str = entry(..., "unique name", min_length=1)
    type: TypeName = entry(..., "what the joint leaves free; see Joint types")
    parent: str = entry(WORLD_NAME, "name of a body, or world")
    child: str = entry(..., "name of a body")
    active: Flag = entry(True, "false switches the joint off")
    collide: Flag = entry(False, "whether the two bodies may touch each other")
    enforcement: Enforcement = entry(
        "penalty",
        "penalty: stiffness strength_ratio (m_parent + m_child) / h^2; exact: as an equation; compliant: by compliance",
    )
    strength_ratio: Number = entry(
        100.0,
        "gamma of the penalty stiffness gamma (m_parent + m_child); the world counts 0, a static or kinematic body the mass "
        "that it is given",
        gt=0,
    )
    length: Number | None = entry(
        None,
        "hinge: half distance of the two points that define it, default 0.5; others: lever arm of rotary rows, default "
        "the mean radius of gyration of the bodies",
        unit="m",
        gt=0,
    )
    compliance: Numbers | None = entry(
        None, "of all constraint rows, or of the first ones; rows beyond a list are exact", unit="m/N or rad/(N m)"
    )
    linear_compliance: Number | None = entry(
        None, "of all linear rows, with critical damping of the reduced mass of the two ends", unit="m/N", ge=0
    )
    rotary_compliance: Number | None = entry(
        None,
        "of all rotary rows, with critical damping of the reduced inertia of the two ends about the joint's point",
        unit="rad/(N m)",
        ge=0,
    )
    stiffness: Gains | None = entry(
        None, "compliant joints: 1/compliance; bushing: one, six or 6x6; spring: one", unit="N/m or N m/rad"
    )
    damping: Gains | None = entry(
        None, "compliant joints: of all rows or the first; bushing, spring: as stiffness", unit="N s/m or N m s/rad"
    )
    critical_damping: Flag | Number | None = entry(
        None, "true, or the damping ratio zeta: damping 2 zeta sqrt(m / compliance) of every row, m as above"
    )
    break_force: Number | None = entry(None, "force at which the joint lets go for good", unit="N", gt=0)
    break_torque: Number | None = entry(None, "torque at which it does", unit="N m", gt=0)
    parameters: dict[str, Number] = entry({}, "numbers of a type that is defined in Python, by name")
    coordinate: dict[str, CoordinateSpec] = entry(
        {}, "settings of its coordinates by name, such as [joint.coordinate.theta]"
    )
    repeat: JointRepeatSpec | None = entry(None, "copies on a grid, between copies of bodies")

    @model_validator(mode="before")
    @classmethod
    def _with_own_keys(cls, data: Any) -> Any:
        return with_own_keys(data) if isinstance(data, dict) else data


class CouplingTermSpec(Spec):
    """One summand f(q) of a coupling, q a coordinate; factor, polynomial or table says what f is."""

    coordinate: str = entry(..., "joint and coordinate, such as 'wheel.theta'; the joint alone where it has one only")
    factor: Number | None = entry(None, "f = factor q; default 1")
    polynomial: tuple[Number, ...] | None = entry(None, "coefficients of f, lowest order first: [0, 2] is 2 q")
    table: Profile | None = entry(None, "points [q, f] with growing q of a natural cubic spline, straight beyond them")


class CouplingSpec(Spec):
    """A relation q0 = scale (f1(q1) + f2(q2) + ...) between coordinates [m or rad] of joints: gears, racks, mimics.

    Or q0 = scale f(q1, q2, ...), by a formula of named variables, on numpy and cpu.
    """

    name: str = entry(..., "unique name", min_length=1)
    coordinate: str = entry(..., "q0: joint and coordinate, such as 'rack.z'; the joint alone where it has one only")
    terms: list[CouplingTermSpec] = entry([], "the summands")
    formula: str | None = entry(None, "instead of terms: f as a formula of the variables, such as 'a * sin(b)'")
    function: str | None = entry(None, "instead of terms: name of an f that abd.coupling_function defines in Python")
    variables: dict[str, str] = entry({}, "names in f, with joint and coordinate: { a = 'wheel.theta' }")
    scale: Number = entry(1.0, "factor on their sum")
    enforcement: Enforcement = entry("penalty", "as in a joint")
    strength_ratio: Number = entry(100.0, "gamma of the penalty", gt=0)
    compliance: Number = entry(0.0, "of a compliant coupling", unit="m/N or rad/(N m)", ge=0)
    damping: Number = entry(0.0, "of a compliant coupling", unit="N s/m or N m s/rad", ge=0)
    active: Flag = entry(True, "false switches the coupling off")
