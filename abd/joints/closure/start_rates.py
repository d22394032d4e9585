"""Initial velocities that satisfy the joints.

Constraints and couplings hold from the start. Velocities that violate them are projected as in an inelastic impact:
``u = u0 + M^-1 J^T y`` with ``J u = r``. r is zero for constraints, couplings and locked coordinates, and the initial
rate of a coordinate that has one; y are the impulses. Compliant rows are no constraints. In articulations with an initial rate
they keep their rates, so that the bodies move with the joint.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsmr

from abd.errors import SceneError
from abd.joint_list import JointList
from abd.joints.closure.link_graph import connected_labels, joined_components, members
from abd.joints.rows.batches import batches
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import RigidRows, rigid_rows, rotations_and_spins, single_clusters
from abd.joints.rows.sizes import at_joints
from abd.joints.rows.springs import mobility_roots
from abd.model import Kind, Model

NEGLIGIBLE_CHANGE = 1e-6
"""Largest change of a velocity, relative to the largest velocity of its world [1/s and per length], without a note."""
OPEN_RATE = 1e-6
"""Largest remaining rate of a row, relative to the largest requested rate."""
DENSE = 1500
"""Largest number of unknowns for a dense solution."""


def fitting_velocities(model: Model) -> tuple[Model, list[str]]:
    """The model with velocities that satisfy its joints, and notes on changes if no rates were requested.

    Raises:
        SceneError: no velocities have the given initial rates.
    """
    joints, bodies = JointList.of(model.joints), model.bodies
    if not len(joints):
        return model, []
    requested = _requested_rates(joints)
    moving = at_joints(model) & (bodies.kind != Kind.STATIC) & bodies.qd.any(axis=1)
    if not moving.any() and not any(rate is not None for rate in requested.values()):
        return model, []
    qd, linear, angular = _consistent_velocities(model, requested)
    given = [key for key, rate in requested.items() if rate is not None]
    size, change = np.maximum(np.abs(bodies.qd), np.abs(qd)).max(axis=1), np.abs(qd - bodies.qd).max(axis=1)
    largest = np.zeros((2, bodies.world.max() + 1))
    np.maximum.at(largest[0], bodies.world, size)
    np.maximum.at(largest[1], bodies.world, change)
    changed = (largest[1] > NEGLIGIBLE_CHANGE * largest[0])[bodies.world]
    if not changed.any():
        return model, []
    notes = []
    if not given:
        worst = int(change.argmax())
        metres, radians = (float(np.linalg.norm(one[worst])) for one in (linear, angular))
        notes.append(
            f"initial velocities violate joints: they are projected as in an inelastic impact, '{bodies.names[worst]}' "
            f"changed by {metres:.3g} m/s, {radians:.3g} rad/s"
        )
    return replace(model, bodies=replace(bodies, qd=np.where(changed[:, None], qd, bodies.qd))), notes


def _requested_rates(joints: JointList) -> dict[tuple[int, str], float | None]:
    """Coordinates with an initial rate, or None for locked coordinates, by joint and name."""
    found: dict[tuple[int, str], float | None] = {}
    for batch in batches(joints):
        for one in batch.first.coordinates:
            if one.initial_rate is not None or one.locked:
                found.update({(int(k), one.name): one.initial_rate for k in batch.index})
    return found


def _consistent_velocities(
    model: Model, requested: dict[tuple[int, str], float | None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities qd (n, 12) that satisfy the joints, and their changes: (n, 3) [m/s] and (n, 3) [rad/s]."""
    q, qd, bodies = model.bodies.q, model.bodies.qd, model.bodies
    rows = rigid_rows(model, q)
    A = q[:, 3:].reshape(-1, 3, 3)
    u = np.concatenate([qd[:, :3] / rows.length, rotations_and_spins(q, qd)[1]], axis=1)
    chosen, rate = _rows(model, rows, requested)
    clusters = single_clusters(rows)
    J = rows.jacobian(q)[chosen]
    missing = np.where(np.isnan(rate), 0.0, rate * rows.scale[chosen] - J @ u.ravel())
    spread = clusters.spread(q, rows.length)
    # lengths are in units of `rows.length`
    roots = mobility_roots(model)[clusters.of >= 0] / np.repeat([rows.length, 1.0], 3)
    root = sparse.block_diag(list(roots), format="csr")
    change, residual = _least_norm((J @ spread @ root).tocsr(), missing)
    worst = int(np.abs(residual).argmax()) if len(residual) else 0
    if len(residual) and np.abs(residual[worst]) > OPEN_RATE * max(np.abs(missing).max(), 1e-12) and any(rate != 0.0):
        row = chosen[worst]
        joint = model.joints[int(rows.joint[row])].name
        message = f"no velocities have these initial rates: '{rows.name[row]}' of joint '{joint}' would be violated"
        raise SceneError.of(message, f"joint.{joint}", remedy="drop some of the rates, or let them agree")
    delta = (spread @ (root @ change)).reshape(-1, 6)
    linear, angular = rows.length * delta[:, :3], delta[:, 3:]
    out = qd.copy()
    out[:, :3] += linear
    out[:, 3:] += np.cross(angular[:, :, None], A, axis=1).reshape(-1, 9)
    return np.where((bodies.kind == Kind.DYNAMIC)[:, None], out, qd), linear, angular


def _rows(
    model: Model, rows: RigidRows, requested: dict[tuple[int, str], float | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that constrain velocities, and their rates [m/s or rad/s]; NaN for rows that keep the given ones."""
    held = rows.held & ~rows.yields & ((rows.role == Role.CONSTRAINT) | (rows.role == Role.COUPLING))
    coordinates = [row for row in rows.coordinates().tolist() if (int(rows.joint[row]), rows.name[row]) in requested]
    compliant = _compliant_rows(model, rows, requested)
    chosen = np.concatenate([np.flatnonzero(held), np.array(coordinates, dtype=int), compliant])
    rates = [requested[int(rows.joint[row]), rows.name[row]] or 0.0 for row in coordinates]
    return chosen, np.concatenate([np.zeros(np.count_nonzero(held)), rates, np.full(len(compliant), np.nan)])


def _compliant_rows(model: Model, rows: RigidRows, requested: dict[tuple[int, str], float | None]) -> np.ndarray:
    """Compliant rows of the articulations that have a coordinate with an initial rate."""
    ends, component = JointList.of(model.joints).bodies, np.append(joined_components(model), -1)  # the last entry is the world
    moves = np.append(model.bodies.kind == Kind.DYNAMIC, False)
    of_joint = np.where(moves[ends], component[ends], -1).max(axis=1)
    given = [joint for (joint, _), rate in requested.items() if rate is not None]
    return np.flatnonzero(rows.held & rows.yields & np.isin(of_joint, of_joint[given])[rows.joint])


def _least_norm(J: sparse.csr_matrix, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimum-norm least-squares solution x of ``J x = missing``, and the residual.

    Rows without common unknowns are solved independently, so that no mechanism affects another one."""
    count, entries, x = J.shape[0], J.tocoo(), np.zeros(J.shape[1])
    labels = connected_labels(count + len(x), np.stack([entries.row, count + entries.col], axis=1))
    for nodes in members(labels):
        rows, columns = nodes[nodes < count], nodes[nodes >= count] - count
        block, aim = J[rows][:, columns], missing[rows]
        if len(rows) and max(block.shape) <= DENSE:
            x[columns] = np.linalg.lstsq(block.toarray(), aim, rcond=1e-10)[0]
        elif len(rows):
            x[columns] = lsmr(block, aim, atol=1e-13, btol=1e-13, maxiter=20 * max(block.shape))[0]
    return x, missing - J @ x
