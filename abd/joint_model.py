"""Joints and couplings of the compiled scene (`abd.model.Model`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Drive:
    """Drive of a coordinate.

    Attributes:
        mode: "position" or "velocity" (enforced like the constraints of the joint), "pd" (gains below),
            "force" (`target` is the effort), or "brake" (the coordinate is locked up to `effort`).
        target: function of t [s]: value [m or rad], speed of a velocity drive, effort [N or N m] of a force drive.
        rate: function of t [s]: speed [m/s or rad/s] of the target of a position or pd drive; None for zero.
        stiffness, damping: gains of "pd" [N/m, N s/m or N m/rad, N m s/rad]; `damping` also of a velocity drive with a
            gain.
        effort: largest force or torque [N or N m].
        uid: 19 or 21 for the published driving joints, with K = strength_ratio (m_i + m_j); 667 or 668 for the force
            along a slider or the torque of a hinge, with the true lever arm; 0 for none of them.
        strength_ratio: gamma of uids 19 and 21 [-].
    """

    mode: str
    target: Callable[[float], float]
    rate: Callable[[float], float] | None = None
    stiffness: float = 0.0
    damping: float = 0.0
    effort: float = np.inf
    uid: int = 0
    strength_ratio: float = 100.0


@dataclass(frozen=True)
class CoordinateSettings:
    """Settings of one coordinate of a joint; units m or rad, N or N m, kg or kg m^2.

    Attributes:
        name: of the coordinate, such as "theta".
        initial: value in the initial pose of the scene; initial_rate: its rate, None if the velocities of the bodies
            determine it.
        lower, upper: range; angles count full turns.
        lower_end, upper_end: position of a barrier that moves to its bound, otherwise None; a range set while the value is
            outside moves the value back in this way.
        limit: "barrier" (never violated), "compliant", or "cubic" (uids 669 and 670).
        limit_distance: activation distance of the barriers of the range; None = automatic.
        limit_compliance, limit_damping: of compliant limits; the damping acts towards the bound, for barriers as well.
        limit_restitution: coefficient of restitution of barrier limits (`abd.step.impacts.restitution`).
        limit_strength: s of the cubic penalty ``s (v / (upper - lower))^3`` in the incremental potential [kg m^2].
        locked: whether the coordinate is fixed; lock_value: its value, None for the initial value.
        stiffness, rest, damping: of a spring along the coordinate.
        friction: Coulomb friction force or torque; friction_load: its increase per constraint force of the joint [-] or [m].
        armature: rotor inertia that moves with the coordinate.
        law: force or torque along it as a function of (value, t, rate).
        drive: drive of the coordinate; force: additional constant effort, None for no such row.
        velocity_limit, effort_limit: rate above which steps warn; largest effort of the drive.
    """

    name: str
    initial: float = 0.0
    initial_rate: float | None = None
    lower: float = -np.inf
    upper: float = np.inf
    lower_end: float | None = None
    upper_end: float | None = None
    limit: str = "barrier"
    limit_distance: float | None = None
    limit_compliance: float = 0.0
    limit_damping: float = 0.0
    limit_restitution: float = 0.0
    limit_strength: float = 1.0
    locked: bool = False
    lock_value: float | None = None
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    friction_load: float = 0.0
    armature: float = 0.0
    law: Callable[[Sequence[float]], float] | None = None
    drive: Drive | None = None
    force: float | None = None
    velocity_limit: float = np.inf
    effort_limit: float = np.inf


@dataclass(frozen=True)
class Joint:
    """One joint, frames in internal rest coordinates of its bodies (world coordinates for `WORLD`).

    Attributes:
        name, type: unique name; a key of `abd.joints.types.TYPES`.
        uid: constitution number of the penalty (26, 25, 18, 20; 0 for types without one).
        parent, child: body indices, `WORLD` allowed for the parent.
        parent_frame, child_frame: (4, 4); column 3 the anchor, columns 0..2 the triad (n, b, t), t the joint's axis.
            The child's frame is the one at zero coordinates, whatever their initial values.
        strength_ratio: gamma [-]; stiffness of the penalty K = gamma (m_i + m_j) [kg], with m = 0 for the world.
        length: [m] half distance of the hinge's two points from the anchor; lever arm of every other rotary row.
        collide: whether contact between the two bodies is enabled.
        stiffness_mass: m_i + m_j [kg] of the formula above, with explicit masses of static and kinematic bodies.
        enforcement: "penalty", "exact" or "compliant".
        compliance: (k,) of the constraint rows [m/N or rad/(N m)], in their order, then of gaps that are lengths; rows
            beyond the end are exact. damping: (k,) [N s/m or N m s/rad].
        parameters: numbers of the type, such as ``skew`` or ``radii``; see the type's file.
        coordinates: settings of those coordinates that have any.
        active: whether the joint has an effect; read-outs are always available.
        break_force, break_torque: force [N] and torque [N m] at the joint's point above which it breaks.
        drawing: attributes for viewers, by name.
    """

    name: str
    type: str
    uid: int
    parent: int
    child: int
    parent_frame: np.ndarray
    child_frame: np.ndarray
    strength_ratio: float = 100.0
    length: float = 0.5
    collide: bool = False
    stiffness_mass: float = 0.0
    enforcement: str = "penalty"
    compliance: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    parameters: dict[str, object] = field(default_factory=dict)
    coordinates: tuple[CoordinateSettings, ...] = ()
    active: bool = True
    break_force: float = np.inf
    break_torque: float = np.inf
    drawing: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class CouplingTerm:
    """Term ``f(q)`` of a coupling, for a coordinate q: a polynomial, or a cubic spline through a table.

    Attributes:
        joint, coordinate: index into `Model.joints`, name of the coordinate.
        polynomial: (k,) coefficients, lowest order first; (0, w) is w q.
        table: (p, 2) knots (q, f) of a natural cubic spline, continued by straight lines; None without one.
    """

    joint: int
    coordinate: str
    polynomial: tuple[float, ...] = (0.0, 1.0)
    table: np.ndarray | None = None


@dataclass(frozen=True)
class Coupling:
    """Bilateral relation ``q0 = scale (f_1(q_1) + f_2(q_2) + ...)`` between coordinates: gears, racks, screws, mimics; or
    ``q0 = scale f(q_1, q_2, ...)``.

    Attributes:
        joint, coordinate: q0; terms: the right-hand side.
        function: f of the coordinates of the terms, whose own functions are then not used.
        enforcement, strength_ratio, compliance, damping: as in `Joint`, for its single row.
    """

    name: str
    joint: int
    coordinate: str
    terms: tuple[CouplingTerm, ...]
    scale: float = 1.0
    enforcement: str = "penalty"
    strength_ratio: float = 100.0
    compliance: float = 0.0
    damping: float = 0.0
    active: bool = True
    function: Callable[[Sequence[float]], float] | None = None
