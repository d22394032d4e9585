"""Redundant and contradictory joint rows, and the mobility of mechanisms.

The rows of every loop block (`abd.joints.closure.link_graph`) are analysed separately, for rigid bodies. Rows of a
joint outside loops are independent, so that redundancy occurs within blocks only; couplings merge the blocks of their
joints. A four-bar linkage of hinges has rank 17 of its 20 rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints.closure.assembly import Assembly, assemble
from abd.joints.closure.link_graph import connected_labels, members
from abd.joints.closure.linkage import DENSE_ROWS, Linkage, graph_of, independence, worst_residuals
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import rigid_rows, rigid_states
from abd.model import Model

CLOSED = 1e-8
"""Residual after assembly beyond which joints contradict each other [m or rad]; the default of joint_tolerance."""
MOST_NAMED = 6
"""Largest number of joints named in one message."""


@dataclass(frozen=True)
class MobilityAnalysis:
    """Mobility of bodies connected by couplings or joints, not counting connections through the ground.

    Attributes:
        bodies, joints: indices.
        rows: number of constraint and coupling rows without compliance; rank: number of independent rows.
        mobility: remaining degrees of freedom.
        redundant: (joint or coupling name, row name) of dependent rows.
        note: "", or the reason why rank and mobility are None.
    """

    bodies: np.ndarray
    joints: np.ndarray
    rows: int
    rank: int | None
    mobility: int | None
    redundant: list[tuple[str, str]]
    note: str = ""


def analyse(model: Model, q: np.ndarray) -> list[MobilityAnalysis]:
    """Rank, redundant rows and mobility of every mechanism at states q (n, 12) without strain.

    Inactive joints and gaps do not count. Mechanisms with a loop block of more than `DENSE_ROWS` rows or unknowns are not
    analysed and have a note.
    """
    rows = rigid_rows(model, rigid_states(q))
    linkage = Linkage(model, replace(rows, held=rows.held & ~rows.yields), q, None, ())
    model, graph, counted, J = linkage.model, linkage.graph, linkage.hard, linkage.jacobian()
    linked, edge = np.array(list(linkage.edge_of), dtype=int), np.full(len(model.joints), -1)
    edge[linked] = np.arange(len(linked))
    block = linkage.group[rows.joint[counted]]
    ranks, redundant, unknown = np.zeros(len(counted), dtype=int), [], np.zeros(len(counted), dtype=bool)
    for block_rows in members(block):
        K = J[counted[block_rows]]
        found = independence(K[:, np.unique(K.indices)])
        if found is None:
            unknown[block_rows] = True
        else:
            ranks[block_rows[0]], implied, _ = found
            redundant += counted[block_rows[implied]].tolist()
    # label joints by their moving body: the child, or the parent if the child does not move
    ends, component = graph.ends[: len(linked)], graph.component
    home = np.where(ends[:, 1] < graph.ground, ends[:, 1], ends[:, 0])
    label = connected_labels(len(component), component[home[linkage.ties]])[component]
    of_joint, of_row = label[home], label[home[edge[rows.joint[counted]]]]
    freedoms = np.linalg.matrix_rank(rows.basis) if len(rows.basis) else np.zeros(0, dtype=int)
    out = []
    for number in np.unique(of_joint):
        bodies = np.flatnonzero(rows.movable & (label[:-1] == number))
        own_rows = np.flatnonzero(of_row == number)
        rank, known = int(ranks[own_rows].sum()), not unknown[own_rows].any()
        implied = counted[own_rows[np.isin(counted[own_rows], redundant)]]
        owners = [
            model.couplings[coupling].name if coupling >= 0 else model.joints[joint].name
            for coupling, joint in zip(rows.coupling[implied], rows.joint[implied], strict=True)
        ]
        out.append(
            MobilityAnalysis(
                bodies=bodies,
                joints=linked[of_joint == number],
                rows=len(own_rows),
                rank=rank if known else None,
                mobility=int(freedoms[bodies].sum()) - rank if known else None,
                redundant=[(owner, rows.name[r]) for owner, r in zip(owners, implied, strict=True)],
                note="" if known else f"not analysed: a loop block has more than {DENSE_ROWS} rows or unknowns",
            )
        )
    return out


def open_by(model: Model, q: np.ndarray) -> np.ndarray:
    """(j, 2) largest residual [m], [rad] of every joint's constraint rows at states q (n, 12), active or not."""
    q = np.asarray(q, dtype=float)
    rows = rigid_rows(model, q)
    rows = replace(rows, held=np.isin(rows.role, (Role.CONSTRAINT, Role.GAP)))
    return worst_residuals(rows, rows.values(q)[0], len(model.joints))


def check_closure(model: Model, q: np.ndarray, joints: Iterable[int] | None = None) -> Assembly:
    """Assemble the rigid bodies without the compliant rows.

    Args:
        joints: indices of the joints that must be closed; default: all active ones.

    Returns:
        the closed poses.

    Raises:
        SceneError: no rigid pose near q closes all joints.
    """
    if joints is not None:
        kept = set(joints)
        model = replace(model, joints=[replace(j, active=j.active and k in kept) for k, j in enumerate(model.joints)])
    result = assemble(model, q, compliant=False)
    worst = result.residual.max(axis=1, initial=0.0)
    if (worst <= CLOSED).all():
        return result
    rows = rigid_rows(model, result.q)
    linked = np.unique(rows.joint[rows.held & ~rows.yields & (rows.role != Role.GAP)])
    block = graph_of(model, rows, linked).block[: len(linked)]
    problems = []
    for group in members(block):
        block_joints = linked[group]
        if (worst[block_joints] <= CLOSED).all():
            continue
        problems.append(_contradiction(model, block_joints[np.argsort(-worst[block_joints], kind="stable")], result.residual))
    raise SceneError(problems)


def _contradiction(model: Model, joints: np.ndarray, residual: np.ndarray) -> Problem:
    """Problem of joints, the worst one first, that cannot be closed together."""
    names = [f"'{model.joints[k].name}'" for k in joints]
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    metres, radians = residual[joints].max(axis=0)
    size = " and ".join(text for text, v in ((f"{metres:.3g} m", metres), (f"{radians:.3g} rad", radians)) if v > 1e-9)
    head = f"joint {shown} cannot be closed" if len(names) == 1 else f"joints {shown} cannot all be closed"
    return Problem(
        f"{head} while the bodies stay rigid: at best {names[0]} stays open by {size}",
        key=f"joint.{model.joints[joints[0]].name}",
        value=float(max(metres, radians)),
        remedy='correct the anchors, axes and lengths, or make a joint compliant (enforcement = "compliant")',
    )
