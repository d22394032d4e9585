"""Redundant and contradictory joint rows, and the mobility of mechanisms.

Rigidly, the rows of every loop block (`abd.joints.closure.link_graph`) are analysed by themselves: what a joint on no loop
holds depends on nothing else, so self-stresses, and with them redundancy, live inside blocks; couplings join the blocks
of their joints. A four-bar of hinges has rank 17 of its 20 rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints.closure.assembly import Assembly, assemble
from abd.joints.closure.link_graph import connected_labels, members
from abd.joints.closure.linkage import DENSE_ROWS, graph_of, independence, worst_residuals
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import RigidRows, rigid_rows, rigid_states, single_clusters
from abd.model import Model

CLOSED = 1e-8
"""Residual after assembly beyond which joints contradict each other [m or rad]; joint_tolerance's default."""
NAMED = 6
"""Most joints named in one message."""


@dataclass(frozen=True)
class Mechanism:
    """Movable bodies that are connected by joints other than through the ground, or by couplings.

    Attributes:
        bodies, joints: indices.
        rows: number of constraint and coupling rows without compliance; rank: independent ones among them.
        mobility: degrees of freedom that they leave.
        redundant: (joint or coupling name, row name) of rows that the others imply.
        note: "", or why rank and mobility are None.
    """

    bodies: np.ndarray
    joints: np.ndarray
    rows: int
    rank: int | None
    mobility: int | None
    redundant: list[tuple[str, str]]
    note: str = ""


def analyse(model: Model, q: np.ndarray, joints: Iterable[int] | None = None) -> list[Mechanism]:
    """Rank, redundant rows and mobility of every mechanism at states q (n, 12), their strain left out.

    Mechanisms with a loop block of more than `DENSE_ROWS` rows or unknowns are not analysed, and say so.

    Args:
        joints: indices of the joints to consider; default: all. Inactive ones and gaps never count.
    """
    q, model = rigid_states(q), replace(model, joints=list(model.joints))
    rows = rigid_rows(model, q)
    counted = _counted(rows, joints)
    ties = [
        (coupling.joint, term.joint)
        for k, coupling in enumerate(model.couplings)
        if k in rows.coupling[counted]
        for term in coupling.terms
    ]
    linked = np.unique(np.concatenate([rows.joint[counted], *ties]).astype(int))
    edge = np.full(len(model.joints), -1)
    edge[linked] = np.arange(len(linked))
    graph = graph_of(model, rows, linked)
    pairs = edge[np.array(ties, dtype=int).reshape(-1, 2)]
    block = graph.tied(pairs)[edge[rows.joint[counted]]]
    J = (rows.jacobian(q) @ single_clusters(rows).spread(q, rows.length)).tocsr()
    ranks, redundant, unknown = np.zeros(len(counted), dtype=int), [], np.zeros(len(counted), dtype=bool)
    for mine in members(block):
        K = J[counted[mine]]
        found = independence(K[:, np.unique(K.indices)])
        if found is None:
            unknown[mine] = True
        else:
            ranks[mine[0]], implied, _ = found
            redundant += counted[mine[implied]].tolist()
    # by the moving bodies of the joints: the child, or the parent where that stays
    ends, component = graph.ends[: len(linked)], graph.component
    home = np.where(ends[:, 1] < graph.ground, ends[:, 1], ends[:, 0])
    label = connected_labels(len(component), component[home[pairs]])[component]
    of_joint, of_row = label[home], label[home[edge[rows.joint[counted]]]]
    freedoms = np.linalg.matrix_rank(rows.basis) if len(rows.basis) else np.zeros(0, dtype=int)
    out = []
    for number in np.unique(of_joint):
        bodies = np.flatnonzero(rows.movable & (label[:-1] == number))
        mine = np.flatnonzero(of_row == number)
        rank, known = int(ranks[mine].sum()), not unknown[mine].any()
        implied = counted[mine[np.isin(counted[mine], redundant)]]
        owners = [
            model.couplings[coupling].name if coupling >= 0 else model.joints[joint].name
            for coupling, joint in zip(rows.coupling[implied], rows.joint[implied], strict=True)
        ]
        out.append(
            Mechanism(
                bodies=bodies,
                joints=linked[of_joint == number],
                rows=len(mine),
                rank=rank if known else None,
                mobility=int(freedoms[bodies].sum()) - rank if known else None,
                redundant=[(owner, rows.name[r]) for owner, r in zip(owners, implied, strict=True)],
                note="" if known else f"not analysed: a loop block has more than {DENSE_ROWS} rows or unknowns",
            )
        )
    return out


def _counted(rows: RigidRows, joints: Iterable[int] | None) -> np.ndarray:
    """Rows that hold two bodies together and yield nothing."""
    chosen = rows.held & ~rows.yields & (rows.role != Role.GAP)
    if joints is not None:
        chosen &= np.isin(rows.joint, list(joints))
    return np.flatnonzero(chosen)


def open_by(model: Model, q: np.ndarray) -> np.ndarray:
    """(j, 2) largest residual [m], [rad] of every joint's constraint rows at states q (n, 12), active or not."""
    q = np.asarray(q, dtype=float)
    rows = rigid_rows(model, q)
    rows = replace(rows, held=np.isin(rows.role, (Role.CONSTRAINT, Role.GAP)))
    return worst_residuals(rows, rows.values(q)[0], len(model.joints))


def check_closure(
    model: Model, q: np.ndarray, joints: Iterable[int] | None = None, tolerance: float = CLOSED
) -> Assembly:
    """Assemble the rigid bodies, rows with a compliance left out.

    Args:
        joints: indices of the joints that must be closed; default: all active ones.
        tolerance: residual that counts as closed [m or rad].

    Returns:
        the closed poses.

    Raises:
        SceneError: joints that no rigid pose near q closes all at once, with the size of what stays open.
    """
    if joints is not None:
        kept = set(joints)
        model = replace(model, joints=[replace(j, active=j.active and k in kept) for k, j in enumerate(model.joints)])
    result = assemble(model, q, compliant=False)
    worst = result.residual.max(axis=1, initial=0.0)
    if (worst <= tolerance).all():
        return result
    rows = rigid_rows(model, result.q)
    linked = np.unique(rows.joint[_counted(rows, None)])
    block = graph_of(model, rows, linked).block[: len(linked)]
    problems = []
    for group in members(block):
        mine = linked[group]
        if (worst[mine] <= tolerance).all():
            continue
        problems.append(_contradiction(model, mine[np.argsort(-worst[mine], kind="stable")], result.residual))
    raise SceneError(problems)


def _contradiction(model: Model, joints: np.ndarray, residual: np.ndarray) -> Problem:
    """Joints, the worst one first, that cannot be closed together."""
    names = [f"'{model.joints[k].name}'" for k in joints]
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    metres, radians = residual[joints].max(axis=0)
    size = " and ".join(text for text, v in ((f"{metres:.3g} m", metres), (f"{radians:.3g} rad", radians)) if v > 1e-9)
    head = f"joint {shown} cannot be closed" if len(names) == 1 else f"joints {shown} cannot all be closed"
    return Problem(
        f"{head} while the bodies stay rigid: at best {names[0]} stays open by {size}",
        key=f"joint.{model.joints[joints[0]].name}",
        value=float(max(metres, radians)),
        remedy='make the anchors, axes and lengths fit, or let a joint yield (enforcement = "compliant")',
    )
