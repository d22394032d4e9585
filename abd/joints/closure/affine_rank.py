"""Rank of the rows that the solver holds stiffly, in the affine coordinates in which it steps.

Bodies may strain here, so that fewer rows are redundant than for rigid ones: a four-bar of hinges has 21 independent
rows of 24, and as a rigid mechanism 17 of 20 (`abd.joints.closure.redundancy`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from abd.joints.closure.independence import DENSE_ROWS, independence
from abd.joints.rows.build import build_system
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.rigid_build import freedoms
from abd.joints.rows.system import JointSystem, Role
from abd.joints.rows.table import linearize
from abd.model import WORLD, Model

HOLDING = (Role.CONSTRAINT, Role.COUPLING, Role.LOCK)
"""Roles of the measured rows that count, where they have no SI stiffness."""


@dataclass(frozen=True)
class AffineRank:
    """Outcome.

    Attributes:
        rows: number of scalar rows; rank: independent ones, None beyond `DENSE_ROWS` rows or unknowns.
        redundant: (joint or coupling name, row name) of those that the others imply; components of vector rows are
            named "point 0 x", "direction 1 z" and so on, in world axes.
    """

    rows: int
    rank: int | None
    redundant: list[tuple[str, str]]


def affine_rank(model: Model, q: np.ndarray, joints: Iterable[int] | None = None) -> AffineRank:
    """Rank at states q (n, 12) of the penalty and exact rows of some joints; default: of all active ones."""
    from scipy.sparse import csr_matrix, vstack

    system, q = build_system(model), np.asarray(q, dtype=float)
    wanted = np.arange(len(model.joints)) if joints is None else np.array(list(joints), dtype=int)
    parts = [_vector_rows(model, system, wanted, len(q)), _measured_rows(model, system, wanted, q)]
    J = csr_matrix(vstack([part for part, _ in parts]))
    names = [name for _, part in parts for name in part]
    J = J[:, np.flatnonzero(np.repeat(freedoms(model)[0], 12))]
    J = J[:, np.unique(J.indices)]
    found = independence(J.toarray()) if max(J.shape) <= DENSE_ROWS else None
    if found is None:
        return AffineRank(len(names), None, [])
    return AffineRank(len(names), found.rank, [names[r] for r in found.redundant])


def _vector_rows(model: Model, system: JointSystem, wanted: np.ndarray, n: int):
    """Sparse (k, 12 n) derivatives of the components of vector rows, and their names."""
    from scipy.sparse import csr_matrix

    linear = system.linear
    row, component = np.nonzero((linear.K > 0.0) & np.isin(linear.joint, wanted)[:, None])
    data, columns, lines = [], [], []
    for Y, body in ((linear.Yc, linear.child), (-linear.Yp, linear.parent)):
        gradient = np.zeros((len(row), 12))
        gradient[np.arange(len(row)), component] = Y[row, 0]
        place = 3 + 3 * component[:, None] + np.arange(3)
        gradient[np.arange(len(row))[:, None], place] = Y[row, 1:]
        gradient[body[row] == WORLD] = 0.0
        data.append(gradient.ravel())
        columns.append((12 * np.maximum(body[row], 0)[:, None] + np.arange(12)).ravel())
        lines.append(np.repeat(np.arange(len(row)), 12))
    J = csr_matrix((np.concatenate(data), (np.concatenate(lines), np.concatenate(columns))), shape=(len(row), 12 * n))
    first = np.searchsorted(linear.joint, linear.joint)  # rows of a joint stand together
    names = [
        (
            model.joints[linear.joint[r]].name,
            f"{'point' if linear.is_point[r] else 'direction'} {r - first[r]} {'xyz'[c]}",
        )
        for r, c in zip(row.tolist(), component.tolist(), strict=True)
    ]
    return J, names


def _measured_rows(model: Model, system: JointSystem, wanted: np.ndarray, q: np.ndarray):
    """Sparse (k, 12 n) derivatives of the measured rows, and their names."""
    from scipy.sparse import csr_matrix

    acting, table, rows = system.acting, system.table, system.rows
    stiff = (acting.mass_stiffness > 0.0) & (acting.stiffness == 0.0)
    chosen = acting.active & stiff & np.isin(acting.role, HOLDING) & np.isin(acting.joint, wanted)
    measured, child, parent = linearize(table, q, system.initial)
    slope = evaluate(rows, measured)[1]
    data, columns = [], []
    for gradient, body in ((child, table.child), (parent, table.parent)):
        data.append((slope[:, None] * gradient[rows.term_measure]).ravel())
        columns.append((12 * np.maximum(body, 0)[rows.term_measure, None] + np.arange(12)).ravel())
    line = np.tile(np.repeat(rows.term_row, 12), 2)
    J = csr_matrix((np.concatenate(data), (line, np.concatenate(columns))), shape=(len(rows), 12 * len(q)))
    names = [
        (model.joints[acting.joint[r]].name if acting.coupling[r] < 0 else acting.name[r], acting.name[r])
        for r in np.flatnonzero(chosen).tolist()
    ]
    return J[np.flatnonzero(chosen)], names
