"""Impacts at joint limits, as pairs of bodies (`abd.step.impacts.restitution`).

A limit of a coordinate x with the force f [N or N m] gives the joint's two bodies the impulse ``P = f h dx/dX``, X their twists.
``P . v`` is then the rate of x times f h, like a contact's normal velocity times its impulse. The joint's length converts rates
of angles to speeds. Limits have no friction.
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
    """Return pairs for the limits `rows` (b,) with a force in the last step, of h [s], scalar or (n,), that led to q (n, 12)."""
    a = system.row_laws
    measure = system.rows.term_measure[system.rows.starts[rows]]
    x = memory.reference[measure]
    _, slope, _ = laws.evaluate(applied.law[rows], applied.p[rows], x)
    impulse = -slope / applied.ch2[rows] * system.of_rows(h)[rows]
    parent, child = system.table.parent[measure], system.table.child[measure]
    # a pair with the world is one of the child with itself, without impulse on the second body
    parent = np.where(parent < 0, child, parent)
    mobile = (model.bodies.kind[np.stack([parent, child])] == Kind.DYNAMIC).any(axis=0)
    has_impulse = (a.sign[rows] * impulse > 0.0) & mobile
    rows, measure, impulse, parent, child = (one[has_impulse] for one in (rows, measure, impulse, parent, child))
    _, by_child, by_parent = (one[measure] for one in linearize(system.table, q, memory.reference))
    twists = [by_twists(g, q, body) for g, body in ((by_child, child), (by_parent, parent))]
    length = np.where(a.rotary[rows], JointList.of(model.joints).column("length")[a.joint[rows]], 1.0)
    return ImpactPairs(
        pairs=np.stack([child, parent], axis=1),
        impulses=impulse[:, None, None] * np.stack(twists, axis=1),
        center=np.zeros((len(rows), 3)),
        friction=np.zeros((len(rows), 3)),
        size=np.abs(impulse) / length,
        restitution=a.restitution[rows],
        mu=np.zeros(len(rows)),
        row=rows,
    )
