"""Velocities at t = 0 that fit the joints.

Constraints and couplings hold from the start, so that velocities which would open them change at once, as they would in an
inelastic impact: ``u = u0 + M^-1 J^T y`` with ``J u = r``. r is zero for constraints, couplings and locked coordinates, and
the given rate of a coordinate that has one: what the impulses y along it give both sides of the joint.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.joint_list import JointList
from abd.joints.rows.batches import batches
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import RigidRows, rigid_rows, single_clusters
from abd.model import Kind, Model
from abd.rotations import axial

FITS = 1e-6
"""Change of a velocity, over the largest one [1/s and per length], up to which nothing is said."""
OPEN = 1e-6
"""Rate of a row that no velocities close, over the largest one asked for."""
DENSE = 1500
"""Unknowns up to which the impulses are found densely."""


def fitting_velocities(model: Model) -> tuple[Model, list[str]]:
    """The model with velocities that fit its joints, and a note of what changed where no rate was asked for.

    Raises:
        SceneError: no velocities have the initial rates that are given.
    """
    joints, bodies = JointList.of(model.joints), model.bodies
    if not len(joints):
        return model, []
    asked = _asked(joints)
    jointed = np.zeros(len(bodies), dtype=bool)
    ends = joints.bodies
    jointed[ends[ends >= 0]] = True
    moving = jointed & (bodies.kind == Kind.DYNAMIC) & bodies.qd.any(axis=1)
    if not moving.any() and not any(rate is not None for rate in asked.values()):
        return model, []
    qd, linear, angular = _fitted(model, asked)
    given = [key for key, rate in asked.items() if rate is not None]
    scale = max(np.abs(bodies.qd).max(), np.abs(qd).max())
    change = np.abs(qd - bodies.qd).max(axis=1)
    if change.max() <= FITS * scale:
        return model, []
    notes = []
    if not given:
        worst = int(change.argmax())
        metres, radians = (float(np.linalg.norm(one[worst])) for one in (linear, angular))
        notes.append(
            f"velocities at the start do not fit the joints: they go on as after an inelastic impact, '{bodies.names[worst]}' "
            f"changed by {metres:.3g} m/s, {radians:.3g} rad/s"
        )
    return replace(model, bodies=replace(bodies, qd=qd)), notes


def _asked(joints: JointList) -> dict[tuple[int, str], float | None]:
    """Coordinates that are given a rate, or None for those that are locked, by joint and name."""
    found: dict[tuple[int, str], float | None] = {}
    for batch in batches(joints):
        for one in batch.first.coordinates:
            if one.initial_rate is not None or one.locked:
                found.update({(int(k), one.name): one.initial_rate for k in batch.index})
    return found


def _fitted(model: Model, asked: dict[tuple[int, str], float | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities qd (n, 12) that fit, and their changes: (n, 3) [m/s] and (n, 3) [rad/s]."""
    q, qd, bodies = model.bodies.q, model.bodies.qd, model.bodies
    rows = rigid_rows(model, q)
    A = q[:, 3:].reshape(-1, 3, 3)
    W = qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(A)
    u = np.concatenate([qd[:, :3] / rows.length, axial(W)], axis=1)
    chosen, rate = _rows(rows, asked)
    clusters = single_clusters(rows)
    J = rows.jacobian(q)[chosen]
    missing = rate * rows.scale[chosen] - J @ u.ravel()
    spread = clusters.spread(q, rows.length)
    root = _root_mobility(model, rows, clusters)
    change, left = _least((J @ spread @ root).tocsr(), missing)
    worst = int(np.abs(left).argmax()) if len(left) else 0
    if len(left) and np.abs(left[worst]) > OPEN * max(np.abs(missing).max(), 1e-12) and any(rate != 0.0):
        row = chosen[worst]
        joint = model.joints[int(rows.joint[row])].name
        message = f"no velocities have these initial rates: '{rows.name[row]}' of joint '{joint}' would be violated"
        raise SceneError([Problem(message, key=f"joint.{joint}", remedy="drop some of the rates, or let them agree")])
    delta = (spread @ (root @ change)).reshape(-1, 6)
    linear, angular = rows.length * delta[:, :3], delta[:, 3:]
    out = qd.copy()
    out[:, :3] += linear
    out[:, 3:] += np.cross(angular[:, :, None], A, axis=1).reshape(-1, 9)
    return np.where((bodies.kind == Kind.DYNAMIC)[:, None], out, qd), linear, angular


def _rows(rows: RigidRows, asked: dict[tuple[int, str], float | None]) -> tuple[np.ndarray, np.ndarray]:
    """Rows that hold velocities, and their rates [m/s or rad/s]."""
    held = rows.held & ~rows.yields & ((rows.role == Role.CONSTRAINT) | (rows.role == Role.COUPLING))
    coordinates = [row for row in rows.coordinates().tolist() if (int(rows.joint[row]), rows.name[row]) in asked]
    chosen = np.concatenate([np.flatnonzero(held), np.array(coordinates, dtype=int)])
    rates = [asked[int(rows.joint[row]), rows.name[row]] or 0.0 for row in coordinates]
    return chosen, np.concatenate([np.zeros(np.count_nonzero(held)), rates])


def _root_mobility(model: Model, rows: RigidRows, clusters):
    """Sparse (6 c, 6 c) root of the inverse masses of the movable bodies, lengths in units of `rows.length`."""
    from scipy.sparse import block_diag

    bodies, roots = model.bodies, []
    for b in np.flatnonzero(clusters.of >= 0):
        R, S = bodies.q[b, 3:].reshape(3, 3), bodies.moment[b]
        inertia = R @ np.diag(S.sum() - S) @ R.T
        value, vector = np.linalg.eigh(inertia)
        root = np.zeros((6, 6))
        root[:3, :3] = np.eye(3) / (rows.length * np.sqrt(bodies.mass[b]))
        root[3:, 3:] = vector @ np.diag(1.0 / np.sqrt(np.maximum(value, 1e-12 * value.max()))) @ vector.T
        roots.append(root)
    return block_diag(roots, format="csr")


def _least(J, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least x with ``J x`` nearest to what is missing, and what is left of it."""
    if max(J.shape) <= DENSE:
        x = np.linalg.lstsq(J.toarray(), missing, rcond=1e-10)[0]
    else:
        from scipy.sparse.linalg import lsmr

        x = lsmr(J, missing, atol=1e-13, btol=1e-13, maxiter=20 * max(J.shape))[0]
    return x, missing - J @ x
