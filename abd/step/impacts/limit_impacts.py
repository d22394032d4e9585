"""Impacts at ends of ranges, as pairs of bodies (`abd.step.impacts.restitution`).

An end of a coordinate x pushes with f [N or N m] along it: on the joint's two bodies that is the impulse ``P = f h dx/dX``,
X their twists, so that ``P . v`` is the rate of x times f h, as the normal velocity of a contact times its impulse. Angles
are measured at the joint's length, so that they weigh as the speeds of contacts do. There is no friction in it.
"""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointList
from abd.joints.rows import laws
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import by_twists, linearize
from abd.model import Kind, Model
from abd.step.impacts.impact_pairs import ImpactPairs


def limit_impact_pairs(
    model: Model, system: JointSystem, rows: np.ndarray, memory: JointMemory, applied: Applied, q: np.ndarray,
    h: float | np.ndarray,
) -> ImpactPairs:
    """Those of the ends of ranges `rows` (b,) that pushed in the last step, of h [s], of all or (n,), which led to q (n, 12)."""
    a = system.row_laws
    measure = system.rows.term_measure[system.rows.starts[rows]]
    x = memory.reference[measure]
    _, slope, _ = laws.evaluate(applied.law[rows], applied.p[rows], x)
    impulse = -slope / applied.ch2[rows] * system.of_rows(h)[rows]
    parent, child = system.table.parent[measure], system.table.child[measure]
    # the world stands for nothing: a pair with it is one of the child with itself, without impulse there
    parent = np.where(parent < 0, child, parent)
    moves = (model.bodies.kind[np.stack([parent, child])] == Kind.DYNAMIC).any(axis=0)
    pushes = (a.sign[rows] * impulse > 0.0) & moves
    rows, measure, impulse, parent, child = (one[pushes] for one in (rows, measure, impulse, parent, child))
    _, by_child, by_parent = (one[measure] for one in linearize(system.table, q, memory.reference))
    twists = [by_twists(g, q, body) for g, body in ((by_child, child), (by_parent, parent))]
    length = np.where(a.rotary[rows], JointList.of(model.joints).column("length")[a.joint[rows]], 1.0)
    return ImpactPairs(
        pairs=np.stack([child, parent], axis=1),
        impulses=impulse[:, None, None] * np.stack(twists, axis=1),
        center=np.zeros((len(rows), 3)),
        size=np.abs(impulse) / length,
        restitution=a.restitution[rows],
        mu=np.zeros(len(rows)),
        is_contact=np.zeros(len(rows), dtype=bool),
    )
