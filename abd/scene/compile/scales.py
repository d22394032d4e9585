"""Defaults of `tolerance` and `kappa` from the bodies of a scene.

`tolerance`: with L the median full length of the dynamic bodies (`abd.joints.rows.sizes`) and g gravity,

    tolerance = min(clip(1e-3 m/s, s_1, s_2), 1e-4 L / dt),    s_1, s_2 = 3.2e-4, 9.6e-4 times sqrt(g L)

It is 1e-3 m/s for bodies of 0.11 m to 1 m. The second bound limits the displacement of bodies that fall by more than their
size in a step. Without gravity, the largest initial speed or the speed that forces produce replaces sqrt(g L); without any known
speed it is min(1e-3 m/s, 1e-5 L / dt).

`kappa`: a body of volume v and half length or lever arm l has the strain |A A^T - 1| of ``F l / (2 kappa v)`` under a force F,
and ``m u^2 / (12 kappa v)`` at the speed u of its end. Kappa limits both to `STRAIN`.

Bodies at joints use

    F     M (3 g + u^2 / D) + forces, with M, D mass and extent of all bodies joined to the body, and u the largest initial
          speed among them: the load of the lowest point of a pendulum. Forces include those of drives, springs and friction
          along coordinates (`efforts`); torques are divided by the shorter arm of the two bodies
    u^2   at least that of a rotation by `TURN` per step

The largest of this kappa and `RIGID_IN_STEP` rho l^2 / h^2 is used, since softer bodies oscillate in their strain, and the joint
forces with them. The contribution of effort limits is at most `STIFFEST` rho l^2 / h^2.

Bodies without joints use their weight, forces and initial spin, and at least 1e9 Pa times the mass of the heaviest body of
their world over their own, so that heavy bodies do not crush light ones. The bound ``ROUNDED tolerance / (eps h) rho l``,
with the precision eps of double numbers, limits this to the stiffness at which rounding of the stress is negligible.

These loads do not include contacts, or drives without a limit that follow a target. Runs warn of strain (`abd.step.warnings`).
"""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointList
from abd.joint_model import CoordinateSettings, Joint
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.sizes import at_joints, half_length, reaches
from abd.joints.types import TYPES
from abd.model import Kind, Model

USUAL_TOLERANCE = 1e-3
"""Tolerance [m/s] of bodies of usual size."""
SPEED_RATIOS = np.array([1e-3, 3e-3]) / np.sqrt(9.81)
"""Smallest and largest tolerance relative to the speed sqrt(g L)."""
DISPLACEMENT_RATIO = 1e-4
"""Largest displacement per step within the tolerance, relative to body size; a tenth of it without a known speed."""
STRAIN = 5e-6
"""Strain allowed by the default kappa."""
TURN = 0.1
"""Rotation per step [rad] for which bodies at joints are always stiff enough."""
USUAL_KAPPA = 1e9
"""Smallest kappa [Pa] of bodies of usual size without joints, in worlds without heavier bodies."""
ROUNDED = 0.01
"""Largest speed from rounding of a body's stress in a step, relative to Newton's tolerance."""
STIFFEST = 1e7
"""Largest kappa from effort limits, relative to rho l^2 / h^2."""
RIGID_IN_STEP = 1e4
"""Smallest kappa of bodies at joints over rho l^2 / h^2, at which joint forces equal those of rigid bodies to 2e-3."""

HEAVIER = 100.0
"""Largest factor of kappa for bodies that are connected to heavier ones, which their strain would move."""


def default_tolerance(model: Model) -> float:
    """Return the default tolerance [m/s]."""
    length = _typical_length(model)
    if length == 0.0:
        return USUAL_TOLERANCE  # there are no dynamic bodies
    speed = np.sqrt(np.linalg.norm(model.settings.gravity) * length) or _initial_speed(model)
    size_speed = length / model.settings.dt
    if speed == 0.0:
        return float(min(USUAL_TOLERANCE, 0.1 * DISPLACEMENT_RATIO * size_speed))
    return float(min(np.clip(USUAL_TOLERANCE, *SPEED_RATIOS * speed), DISPLACEMENT_RATIO * size_speed))


def default_kappa(model: Model) -> np.ndarray:
    """Return the default kappa (n,) [Pa]."""
    bodies = model.bodies
    n, g = len(bodies), float(np.linalg.norm(model.settings.gravity))
    half = half_length(bodies.mass, bodies.moment)
    dynamic = (bodies.kind == Kind.DYNAMIC) & (half > 0.0) & (bodies.volume > 0.0)
    volume, length = np.where(dynamic, bodies.volume, 1.0), np.where(dynamic, reaches(model), 1.0)
    density = bodies.mass / volume
    label = joined_components(model)
    extent = _extents(bodies.q[:, :3], half, label, dynamic)
    mass, force, speed = np.zeros(n), np.zeros(n), np.zeros(n)
    own = np.linalg.norm(bodies.force, axis=1) + np.linalg.norm(bodies.torque, axis=1) / length
    np.add.at(mass, label[dynamic], bodies.mass[dynamic])
    np.add.at(force, label[dynamic], own[dynamic])
    np.maximum.at(speed, label[dynamic], _speeds(model, half)[dynamic])
    M, F, u, D = mass[label], force[label], speed[label], extent[label]
    joined = at_joints(model)
    hanging = M * (3.0 * g + np.divide(u * u, D, out=np.zeros(n), where=D > 0.0))
    load = np.where(joined, F + hanging, own + bodies.mass * g)
    fastest = np.where(joined, np.maximum(u, TURN * length / model.step_lengths), _spin(model, half))
    stress = np.maximum(load * length / (2.0 * volume), density * fastest**2 / 12.0)
    inertial = density * (length / model.step_lengths) ** 2
    pushed = np.bincount(label, _exerted(model, length, dynamic), minlength=n)[label] * length / (2.0 * volume)
    stress = np.maximum(stress, np.minimum(stress + pushed, STRAIN * STIFFEST * inertial))
    unrounded = ROUNDED * model.settings.tolerance / (np.finfo(float).eps * model.step_lengths)
    uncrushed = np.minimum(USUAL_KAPPA * _outweighed(model, dynamic), unrounded * density * length)
    least = np.where(joined, RIGID_IN_STEP * _carried(model, dynamic) * inertial, uncrushed)
    return np.where(dynamic, np.maximum(stress / STRAIN, least), USUAL_KAPPA)


def _outweighed(model: Model, dynamic: np.ndarray) -> np.ndarray:
    """Return the ratio (n,) of the largest mass of the body's world to its own; 1 for bodies that are not dynamic."""
    bodies, heaviest = model.bodies, np.zeros(model.bodies.world.max(initial=0) + 1)
    np.maximum.at(heaviest, bodies.world[dynamic], bodies.mass[dynamic])
    return np.divide(heaviest[bodies.world], bodies.mass, out=np.ones(len(bodies)), where=dynamic)


def _carried(model: Model, dynamic: np.ndarray) -> np.ndarray:
    """Return the ratio (n,) of the largest mass of connected dynamic bodies to the own mass, from 1 to `HEAVIER`."""
    mass = np.append(np.where(dynamic, model.bodies.mass, 0.0), 0.0)  # the last one: the world
    heaviest = np.zeros(len(mass))
    parent, child = JointList.of(model.joints).bodies.T
    for one, other in ((parent, child), (child, parent)):
        np.maximum.at(heaviest, one, mass[other])
    return np.clip(np.divide(heaviest, mass, out=np.ones(len(mass)), where=mass > 0.0), 1.0, HEAVIER)[:-1]


def _exerted(model: Model, length: np.ndarray, dynamic: np.ndarray) -> np.ndarray:
    """Return the largest forces (n,) [N] of joints along their coordinates, each assigned to one of its bodies.

    Args:
        length: (n,) lever arms [m]; dynamic: (n,) bool, bodies that have one.
    """
    arms, out = np.append(np.where(dynamic, length, np.inf), np.inf), np.zeros(len(length))
    for part in JointList.of(model.joints).parts:
        joint = part if isinstance(part, Joint) else part.first
        if not joint.coordinates:
            continue
        rotary = {measure.name: measure.rotary for measure in TYPES[joint.type].coordinates(joint)}
        pushes, turns = (sum(efforts(c) for c in joint.coordinates if rotary[c.name] == kind) for kind in (False, True))
        ends = np.atleast_2d(np.stack([part.child, part.parent], axis=-1))
        arm = arms[ends]
        some = np.isfinite(arm).any(axis=1)
        owner = np.where(np.isfinite(arm[:, 0]), ends[:, 0], ends[:, 1])
        np.add.at(out, owner[some], pushes + turns / arm[some].min(axis=1))
    return out


def efforts(settings: CoordinateSettings) -> float:
    """Return the largest known effort along a coordinate [N or N m]: constant force, friction, initial effort of the spring, and
    the limit or else the initial effort of the drive."""
    drive, limit = settings.drive, settings.effort_limit
    total = abs(settings.force or 0.0) + settings.friction
    total += settings.stiffness * abs(settings.rest - settings.initial)
    if drive is None:
        return total
    limit = min(limit, drive.effort)
    if np.isfinite(limit):
        return total + limit
    speed = settings.initial_rate or 0.0
    if drive.mode == "force":
        return total + abs(drive.target(0.0))
    if drive.mode == "pd":
        rate = drive.rate(0.0) if drive.rate else 0.0
        return total + drive.stiffness * abs(drive.target(0.0) - settings.initial) + drive.damping * abs(rate - speed)
    if drive.mode == "velocity":
        return total + drive.damping * abs(drive.target(0.0) - speed)
    return total


def _typical_length(model: Model) -> float:
    """Return the median full length [m] of the dynamic bodies; 0 without any."""
    bodies = model.bodies
    half = half_length(bodies.mass, bodies.moment)[bodies.kind == Kind.DYNAMIC]
    return 2.0 * float(np.median(half[half > 0.0])) if (half > 0.0).any() else 0.0


def _spin(model: Model, half: np.ndarray) -> np.ndarray:
    """Return the initial speeds (n,) [m/s] of the bodies' ends relative to their centres."""
    return half * np.linalg.norm(model.bodies.qd[:, 3:], axis=1) / np.sqrt(2.0)


def _speeds(model: Model, half: np.ndarray) -> np.ndarray:
    """Return the initial speeds (n,) [m/s] of the bodies' ends."""
    return np.linalg.norm(model.bodies.qd[:, :3], axis=1) + _spin(model, half)


def _initial_speed(model: Model) -> float:
    """Return the largest initial speed [m/s] of the dynamic bodies, or that from their forces over their length."""
    bodies = model.bodies
    dynamic = (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
    half = half_length(bodies.mass, bodies.moment)
    work = np.linalg.norm(bodies.force, axis=1) * half + np.linalg.norm(bodies.torque, axis=1)
    driven = np.sqrt(work / np.where(bodies.mass > 0.0, bodies.mass, np.inf))
    return float(np.maximum(_speeds(model, half), driven)[dynamic].max(initial=0.0))


def _extents(p: np.ndarray, half: np.ndarray, label: np.ndarray, dynamic: np.ndarray) -> np.ndarray:
    """Return the extents (n,) [m] of groups of bodies at positions p (n, 3), by their labels (n,)."""
    n = len(p)
    low, high, longest = np.full((n, 3), np.inf), np.full((n, 3), -np.inf), np.zeros(n)
    np.minimum.at(low, label[dynamic], p[dynamic])
    np.maximum.at(high, label[dynamic], p[dynamic])
    np.maximum.at(longest, label[dynamic], half[dynamic])
    some = np.isfinite(low).all(axis=1)
    out = 2.0 * longest
    out[some] += np.linalg.norm(high[some] - low[some], axis=1)
    return out
