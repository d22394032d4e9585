"""Reference lengths and masses of bodies and joints.

They scale residuals, lever arms and speeds, the stiffness of exact rows, and dampings given as fractions of critical
damping.

The half length of a body is that of a thin rod with the same largest moment of S, ``l = sqrt(3 max(S) / m)``: half the
longest edge of a box, 1.3 radii of a sphere. It does not depend on the surface mesh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from abd.joint_list import JointList
from abd.joint_model import Joint
from abd.joints.closure.link_graph import joined_components, link_graph
from abd.joints.measures.measures import Measure
from abd.joints.rows.table import by_twists, linearize, tabulate
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, Model

LINEAR_SHARE = 1e-9
"""Tolerance of exact linear rows in half lengths: 1e-9 rad for hinges of two points at that distance."""
MEASURED_SHARE = 1e-8
"""Default tolerance of exact measured rows [rad], or in full lengths."""
RESIDUAL_FACTOR = 100.0
"""Residual scale over a h^2; with bodies of 1e4 m/h^2 (`abd.scene.compile.scales`) its force is 1e-3 of ``m a``."""
EXACT_RATIO = 1e2
"""Stiffness of exact rows over the largest mass among the connected bodies.

With a larger value, rows whose residual grows with the square of a rotation shorten Newton's steps (1e3 takes 40 % more
iterations in the impacts of a figure with fourteen joints); with a smaller one, directions take more solves to close the rows.
"""
AXIS_GROWTH = 2.0
"""Growth of alternating moments by the rotation of a held axis, measured on 88 runs of chains of three bars on hinges or
universal joints: 30 gained energy before held axes were considered, 4 do with this factor."""
SHORT_CHAIN = 10
"""Largest number of bodies connected by joints for which exact rows need no additional stiffness."""
ROUNDING = 64.0 * np.finfo(float).eps
"""Smallest attainable residual, relative to the size of the coordinates."""


def half_length(mass, moment) -> np.ndarray:
    """(n,) half lengths [m] of bodies of mass (n,) [kg] and moment (n, 3) [kg m^2]; 0 for massless bodies."""
    largest = np.max(np.asarray(moment, dtype=float), axis=-1)
    mass = np.asarray(mass, dtype=float)
    return np.sqrt(3.0 * largest / np.where(mass > 0.0, mass, np.inf))


def reaches(model: Model) -> np.ndarray:
    """(n,) longest lever arms [m] of forces on bodies: half length, or distance of the farthest joint anchor."""
    joints = JointList.of(model.joints)
    out = half_length(model.bodies.mass, model.bodies.moment)
    for side in ("parent", "child"):
        body = joints.column(side)
        inner = body != WORLD
        np.maximum.at(out, body[inner], np.linalg.norm(joints.column(f"{side}_frame")[inner, :3, 3], axis=1))
    return out


def at_joints(model: Model) -> np.ndarray:
    """(n,) bool, bodies with joints."""
    held = np.zeros(len(model.bodies) + 1, dtype=bool)
    held[JointList.of(model.joints).bodies] = True  # the last one: the world
    return held[:-1]


def held_axes(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Axes of dynamic bodies that a joint holds at an angle to an axis of its other body (`JointType.held_axes`).

    Returns:
        (k,) bodies, and (k, 3) unit vectors in body axes.
    """
    joints = JointList.of(model.joints)
    held = np.array([TYPES[joint.type].held_axes(joint) for joint in joints]).reshape(-1, 2, 3)
    body, frame = _ends(joints)
    axis = np.einsum("kij,kj->ki", frame[:, :3, :3], np.concatenate([held[:, 0], held[:, 1]]))
    moving = _is_dynamic(model, body) & axis.any(axis=1)
    return body[moving], axis[moving]


def turning_arms(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Lever arms and axes at which joints hold dynamic bodies.

    Returns:
        (k,) bodies, and (k, 3) directions in body axes, times the growth of alternating forces by their rotation, relative to
        a force at the end of an arm without inertia about it (`abd.potentials.integrators`).

        - From the centre of mass to the joint, the factor is the cube root of ``m r^2 / (m r^2 + 4 J)``. J is the middle moment
          of the body. To 1 % it is at least the largest ``Re u^(1/2) / 3^(1/2)`` of the roots of
          ``(1 + s) u^3 + 3 (1 - s) u^2 + 3 u + 1``, ``s = m r^2 / J``.
        - `AXIS_GROWTH` for `held_axes`.
    """
    bodies = model.bodies
    body, frame = _ends(JointList.of(model.joints))
    r = frame[:, :3, 3]
    square = np.append(bodies.mass, 0.0)[body] * np.sum(r**2, axis=1)
    moving = _is_dynamic(model, body) & (square > 0.0)
    body, r, square = body[moving], r[moving], square[moving]
    middle = (bodies.moment.sum(axis=1) - np.sort(bodies.moment, axis=1)[:, 1])[body]
    fraction = np.cbrt(square / (square + 4.0 * middle))
    arms = fraction[:, None] * r / np.linalg.norm(r, axis=1, keepdims=True)
    held, axes = held_axes(model)
    return np.concatenate([body, held]), np.concatenate([arms, AXIS_GROWTH * axes])


def _ends(joints: JointList) -> tuple[np.ndarray, np.ndarray]:
    """(2 j,) bodies and (2 j, 4, 4) frames of the parents, then of the children."""
    columns = ([joints.column(f"{side}{name}") for side in ("parent", "child")] for name in ("", "_frame"))
    body, frame = (np.concatenate(one) for one in columns)
    return body.astype(np.int64), frame


def _is_dynamic(model: Model, body: np.ndarray) -> np.ndarray:
    """(k,) bool of bodies (k,)."""
    return (body != WORLD) & (np.append(model.bodies.kind, -1)[body] == Kind.DYNAMIC)


def joint_sizes(model: Model) -> np.ndarray:
    """(j,) half length [m] of the smaller dynamic body at every joint; 1 if there is none with mass."""
    half = _dynamic_half_lengths(model)
    length = np.append(np.where(half > 0.0, half, np.inf), np.inf)  # the last entry is the world
    smaller = length[JointList.of(model.joints).bodies].min(axis=1)
    return np.where(np.isfinite(smaller), smaller, 1.0)


def _dynamic_half_lengths(model: Model) -> np.ndarray:
    """(n,) half lengths [m]; 0 for massless bodies and those that are not dynamic."""
    bodies = model.bodies
    return np.where(bodies.kind == Kind.DYNAMIC, half_length(bodies.mass, bodies.moment), 0.0)


def residual_scales(model: Model, label: np.ndarray) -> np.ndarray:
    """(j,) reference length [m] of the residuals of every joint.

    It is the size of the joint, or `RESIDUAL_FACTOR` a h^2 if that is less. Bodies are so stiff relative to their inertia in a
    step of h that a larger residual causes a considerable force, mainly in overconstrained loops. If coordinates are so large
    that rounding alone exceeds `LINEAR_SHARE` of this length, the length is increased accordingly.

    Args:
        label: (n,) connected component of each body.
    """
    felt = RESIDUAL_FACTOR * model.step_lengths**2 * _accelerations(model, label)
    ends = JointList.of(model.joints).bodies
    reach = np.append(np.abs(model.bodies.q[:, :3]).max(axis=1), 0.0)[ends].max(axis=1)
    least = np.append(np.where(felt > 0.0, felt, np.inf), np.inf)[ends].min(axis=1)
    return np.maximum(np.minimum(joint_sizes(model), least), ROUNDING * reach / LINEAR_SHARE)


def _accelerations(model: Model, label: np.ndarray) -> np.ndarray:
    """(n,) magnitude of accelerations [m/s^2] within the connected component of a body.

    It sums gravity, u^2/l of the fastest body (speed u of its ends, half length l), and external forces over masses.
    """
    bodies, half = model.bodies, _dynamic_half_lengths(model)
    moving = half > 0.0
    rate = np.linalg.norm(bodies.qd[:, 3:].reshape(-1, 9), axis=1) / np.sqrt(2.0)
    speed = np.linalg.norm(bodies.qd[:, :3], axis=1) + half * rate
    own, length = np.zeros(len(half)), np.where(moving, half, 1.0)
    pushed = np.linalg.norm(bodies.force, axis=1) + np.linalg.norm(bodies.torque, axis=1) / length
    np.maximum.at(own, label[moving], (speed**2 / length)[moving])
    mass, force = (np.bincount(label[moving], values[moving], len(half)) for values in (bodies.mass, pushed))
    own += np.divide(force, mass, out=np.zeros(len(half)), where=mass > 0.0)
    return np.where(bodies.kind == Kind.DYNAMIC, float(np.linalg.norm(model.settings.gravity)) + own[label], 0.0)


def masses_and_scales(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """`carried_masses` (j,) and `residual_scales` (j,) of the joints of a model."""
    if not len(model.joints):
        return np.zeros(0), np.zeros(0)
    label = joined_components(model)
    return carried_masses(model, label), residual_scales(model, label)


def carried_masses(model: Model, label: np.ndarray) -> np.ndarray:
    """(j,) mass [kg] for the stiffness of the exact rows of a joint: the largest mass among the connected dynamic
    bodies.

    Static and kinematic bodies do not connect and do not count.

    A long chain is softer than one joint: beyond `SHORT_CHAIN` bodies the mass grows with their number.
    Joints on loops with welds are at least as stiff as the stiffer one of their bodies. Redundant rows share forces
    that only strain the bodies, with stiffness k; a solve that closes the rows transfers ``K / (K + k h^2)`` of their
    missing part. Without welds, bodies rotate about the joints, and stiffer rows would shorten Newton's steps.

    Args:
        label: (n,) connected component of each body.
    """
    n, mass = len(model.bodies), model.bodies.mass
    dynamic = np.append(model.bodies.kind == Kind.DYNAMIC, False)  # the last entry is the world
    joints = JointList.of(model.joints)
    ends, largest = joints.bodies, np.zeros(n)
    np.maximum.at(largest, label, mass)
    growth = np.maximum(1.0, np.bincount(label, minlength=n) / SHORT_CHAIN)
    own = np.where(dynamic[ends], mass[ends], 0.0).sum(axis=1)
    moved = np.where(dynamic[ends[:, 0]], ends[:, 0], ends[:, 1])
    carried = growth[label[moved]] * np.maximum(own, largest[label[moved]])
    welded = (joints.column("type") == "fixed") & (joints.column("enforcement") == "exact") & joints.column("active")
    if not welded.any():
        return carried
    graph = link_graph(ends[:, 0], ends[:, 1], dynamic[:-1])
    shared = np.isin(graph.block, graph.block[welded & ~graph.bridge])
    stiffer = np.append(_stiffness_in_step(model), 0.0)[ends].max(axis=1)
    return np.where(shared, np.maximum(carried, stiffer / EXACT_RATIO), carried)


def _stiffness_in_step(model: Model) -> np.ndarray:
    """(n,) stiffness of near-rigidity ``k = 8 kappa V / l^2`` [N/m] at the half length l, times h^2 [kg]; 0 without
    elasticity.
    """
    bodies, half = model.bodies, _dynamic_half_lengths(model)
    stiffness = 8.0 * bodies.kappa * bodies.volume * model.step_lengths**2
    return np.divide(stiffness, half**2, out=np.zeros(len(bodies)), where=half > 0.0)


Inertias = Mapping[int, tuple[float, np.ndarray]]
"""Mass [kg] and moments (3,) of S [kg m^2] of the dynamic bodies of a joint, by their rows in the states."""


def reduced_masses(joint: Joint, measures: Sequence[Measure], q: np.ndarray, ends: Inertias) -> np.ndarray:
    """(k,) reduced mass of the bodies of a joint for every measure [kg].

    For angles it is the reduced moment of inertia about the axis of the angle through the joint's point [kg m^2], over
    the square of the angle's rate per rad/s. If the gradient of the angle vanishes, it is the mean over all axes.

    Args:
        q: (n, 12) states; `joint.parent` and `joint.child` are rows of it.
    """
    mass = _reduced([one for one, _ in ends.values()])
    if not measures:
        return np.zeros(0)
    table = tabulate([joint], [(0, one) for one in measures])
    _, child, _ = linearize(table, q)
    turning = by_twists(child, q, table.child)[:, 3:]
    inertias = point_inertias(joint, q, ends)
    out = np.full(len(measures), mass)
    for k, (one, w) in enumerate(zip(measures, turning, strict=True)):
        if one.rotary:
            square = float(w @ w)
            along = [w @ I @ w / square**2 if square > 0.0 else np.trace(I) / 3.0 for I in inertias]
            out[k] = _reduced(along)
    return out


def critical_damping(mass, compliance, zeta: float):
    """Damping ``2 zeta sqrt(m / c)`` of rows with these reduced masses and compliances; 0 for rows without a compliance."""
    soft = np.asarray(compliance) > 0.0
    return np.where(soft, 2.0 * zeta * np.sqrt(mass / np.where(soft, compliance, 1.0)), 0.0)


def per_row(values, count: int) -> np.ndarray:
    """(count,) values of rows from a number for all rows, or a list for the first rows; 0 for the others."""
    out, values = np.zeros(count), np.asarray(values, dtype=float)
    out[: count if values.ndim == 0 else values.size] = values[:count] if values.ndim else values
    return out


def mean_inertia(joint: Joint, q: np.ndarray, ends: Inertias) -> float:
    """Reduced mean moment of inertia of the bodies over all axes about the joint's point [kg m^2]."""
    return _reduced([np.trace(I) / 3.0 for I in point_inertias(joint, q, ends)])


def point_inertias(joint: Joint, q: np.ndarray, ends: Inertias) -> list[np.ndarray]:
    """(3, 3) moments of inertia of the bodies about the joint's point, world axes [kg m^2]."""
    R = q[joint.child, 3:].reshape(3, 3)
    point = q[joint.child, :3] + R @ joint.child_frame[:3, 3]
    out = []
    for body, (mass, moment) in ends.items():
        R, arm = q[body, 3:].reshape(3, 3), point - q[body, :3]
        own = R @ np.diag(np.sum(moment) - np.asarray(moment)) @ R.T
        out.append(own + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm)))
    return out


def _reduced(values: Sequence[float]) -> float:
    """``1 / (1/m_1 + 1/m_2)``; bodies that are not in the list have infinite mass."""
    return 1.0 / sum(1.0 / one for one in values)
