"""Probable causes of a failed step: loads, speeds and drives that are out of proportion to the bodies they act on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from abd.api.joints.coordinate_view import CoordinateView
from abd.api.simulation_base import SimulationBase
from abd.errors import StepFailure
from abd.joints.rows.sizes import half_length
from abd.model import Kind

LARGEST_MOTION = 100.0
"""Motion of a free body under its loads within a step, in sizes of the body or radians, above which the loads are named."""
LARGEST_TRAVEL = 1e5
"""Motion of a body by its velocity within a step, in sizes of the body, above which the velocity is named."""
NEAR_LIMIT = 0.01
"""Distance of a coordinate from a limit, over its range, within which the limit is named."""
NAMED = 3
"""Largest number of causes, drives and limits in a message."""


def explained(sim: SimulationBase, failure: StepFailure) -> str:
    """Return the message of a failed step with its probable causes in the last converged state."""
    bodies = sim.model.bodies
    chosen = bodies.kind == Kind.DYNAMIC
    if failure.concerned is not None:
        chosen = chosen & failure.concerned
    causes = [*_loads(sim, chosen), *_drives(sim, chosen)]
    names = [name for name in failure.bodies if f"'{name}'" not in str(failure)]
    if names and not causes:
        causes = ["bodies: " + ", ".join(f"'{name}'" for name in names)]
    return "; ".join([str(failure), *causes[:NAMED]])


def _loads(sim: SimulationBase, chosen: np.ndarray) -> Iterator[str]:
    """Yield the loads and velocities that move a chosen body (n,) far within one step."""
    bodies, names = sim.model.bodies, sim.model.bodies.names
    force, torque, speed = (np.linalg.norm(one, axis=1) for one in (sim.loads.force, sim.loads.torque, sim.stepper.qd[:, :3]))
    mass, inertia = bodies.mass, np.sort(bodies.moment, axis=1)[:, :2].sum(axis=1)
    size, h = 2.0 * half_length(mass, bodies.moment), np.broadcast_to(sim.stepper.worlds.lengths, len(mass))
    for k in np.flatnonzero(chosen & (h**2 * force > LARGEST_MOTION * size * mass)):
        far = h[k] ** 2 * force[k] / mass[k]
        yield f"the force of {force[k]:.3g} N on '{names[k]}', which has {mass[k]:.3g} kg, moves it by {far:.3g} m within a step"
    for k in np.flatnonzero(chosen & (h**2 * torque > LARGEST_MOTION * inertia)):
        far = h[k] ** 2 * torque[k] / inertia[k]
        yield f"the torque of {torque[k]:.3g} N m on '{names[k]}' turns it by {far:.3g} rad within a step"
    for k in np.flatnonzero(chosen & (h * speed > LARGEST_TRAVEL * size)):
        yield f"'{names[k]}' moves by {h[k] * speed[k]:.3g} m within a step, at {speed[k]:.3g} m/s"


def _drives(sim: SimulationBase, chosen: np.ndarray) -> Iterator[str]:
    """Yield a text about strong drives of joints of chosen bodies (n,), with the limits against which they act."""
    chosen = np.append(chosen, False)  # of the world
    joints = [view for view in sim.joints.values() if chosen[[view.joint.parent, view.joint.child]].any() and view.joint.active]
    coordinates = [view.coordinate(name) for view in joints for name in view.coordinate_names]
    drives = [text for one in coordinates if (text := _strong_drive(sim, one))]
    limits = [text for one in coordinates if (text := _near_limit(sim, one))]
    if drives and limits:
        yield (
            f"{' and '.join(drives[:NAMED])} may act against {' and '.join(limits[:NAMED])}; give the drive a smaller effort, "
            "or a target that the mechanism can reach"
        )


def _strong_drive(sim: SimulationBase, one: CoordinateView) -> str:
    """Return a name of a drive without effort, or whose effort moves the coordinate far within a step; else nothing."""
    drive, name = one.settings.drive, f"the drive of '{one.joint.name}' ({one.name}"
    if drive is None:
        return ""
    effort, unit = min(drive.effort, one.settings.effort_limit), "N m" if one.motion_type == "rotary" else "N"
    if not np.isfinite(effort):
        return f"{name}, without effort limit)"
    h = float(np.max(sim.stepper.worlds.lengths))
    return f"{name}, effort {effort:.3g} {unit})" if h * h * effort > LARGEST_MOTION * one.reduced_mass() else ""


def _near_limit(sim: SimulationBase, one: CoordinateView) -> str:
    """Return a name of a limit that the coordinate or its target has reached, or reaches in a step; else nothing."""
    (lower, upper), drive, unit = one.range, one.settings.drive, "rad" if one.motion_type == "rotary" else "m"
    values = [one.value, *([drive.target(sim.time)] if drive is not None and drive.mode in ("position", "pd") else [])]
    near = float(np.max(sim.stepper.worlds.lengths)) * abs(one.speed)
    near += NEAR_LIMIT * (upper - lower) if np.isfinite(upper - lower) else 0.0
    for side, bound, sign in (("lower", lower, 1.0), ("upper", upper, -1.0)):
        if any(sign * (value - bound) <= near for value in values):
            return f"the {side} limit of '{one.joint.name}' ({one.name}, {bound:.4g} {unit})"
    return ""
