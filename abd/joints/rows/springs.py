"""Springs that a step resolves: their forces are known at both ends of it, and follow the trapezoidal rule.

Generalized alpha damps what alternates from step to step, as forces of joints need it; from the vibrations of a spring it takes
``((1 - rho)/(1 + rho))^3 (w h)^3`` per radian. So smooth and fresh steps (`abd.potentials.integrators`) take the forces f of
springs ``k/2 (x - a)^2`` by themselves,

    q = ... + h^2 ((1/2 - b) f_n + b f_{n+1}),        (p, L) = ... + h/2 (f_n + f_{n+1}),

b being c_b times the share w by which the spring's energy stands in the incremental potential, 1/4 for bodies at rest: Newmark's
rule without damping, which keeps the energy of linear vibrations at any step. What else acts, forces of joints that make bodies
meet at the end of the step above all, goes by the rule of the mode; in the motions that joints leave to a linear mechanism the
trapezoidal rule is left alone. Springs that are stiffer than that steps could show their vibrations fade like everything else.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows import slots
from abd.joints.rows.forces import SPRINGS
from abd.joints.rows.laws import Law
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.system import JointSystem, Role
from abd.joints.rows.table import linearize
from abd.model import WORLD, Kind, Model
from abd.potentials.free_motion import inertia, spin, torque

RESOLVED = np.pi
"""Turn of a spring's vibration per step [rad] up to which it is one that steps can show: half a period."""

LIGHT = 0.02
"""Share of a speed that a damper takes in a step, up to which it is light."""


def turns(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) by how much what springs and compliant joints hold would vibrate in a step without anything else [rad], as the bodies
    stand at the start; 0 for other rows."""
    return model.settings.dt * np.sqrt(system.acting.stiffness * _yields(model, system))


def light(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) bool, springs and compliant joints whose dampers take less than `LIGHT` of a speed along them in a step: it is known
    as well as what springs hold."""
    a = system.acting
    out = (a.damping > 0.0) & (a.law == Law.QUADRATIC) & (model.settings.dt * a.damping * _yields(model, system) < LIGHT)
    out[[*a.target_of, *a.rate_of]] = False
    return out & np.isin(a.role, SPRINGS) & (a.role != Role.COUPLING) & (a.rate == 0.0) & ~a.exact & ~a.follows


def _yields(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) what the bodies of springs and compliant joints yield to forces along them [1/kg, 1/(kg m^2)]; 0 for other rows."""
    bodies, a, rows, table = model.bodies, system.acting, system.rows, system.table
    if not len(a.joint):
        return np.zeros(0)
    elastic = a.active & np.isin(a.role, SPRINGS) & (a.role != Role.COUPLING) & (a.mass_stiffness == 0.0)
    which, yields = np.flatnonzero(elastic), np.zeros(len(a.joint))
    measured, *gradients = linearize(table, bodies.q)
    slope, chosen = evaluate(rows, measured)[1], elastic[rows.term_row]
    row, m = rows.term_row[chosen], rows.term_measure[chosen]
    A = bodies.q[:, 3:].reshape(-1, 3, 3)
    I, dynamic = inertia(A, bodies.moment), (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
    for of, gradient in zip((table.child, table.parent), gradients, strict=True):
        wrench, body = np.zeros((len(a.joint), 12)), np.full(len(a.joint), WORLD)
        np.add.at(wrench, row, slope[chosen, None] * gradient[m])
        body[row] = of[m]
        some = which[(body[which] != WORLD) & dynamic[body[which]]]
        b, force = body[some], wrench[some]
        moment = torque(force[:, 3:].reshape(-1, 3, 3), A[b])
        yields[some] += np.sum(force[:, :3] ** 2, axis=1) / bodies.mass[b] + np.sum(moment * spin(I[b], moment), axis=1)
    return yields


def resolved(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) bool, rows whose forces follow the trapezoidal rule: of springs and compliant joints with a rest of their own."""
    a = system.acting
    turn = turns(model, system)
    out = (turn > 0.0) & (turn <= RESOLVED) & (a.law == Law.QUADRATIC) & ~a.exact & ~a.follows
    # what is set anew in every step
    out[[*a.target_of, *a.rate_of]] = False
    followers = np.isin(system.rows.term_measure, list(system.followers))
    return out & ~np.isin(a.joint, a.joint[system.rows.term_row[followers]])


def pulls(system: JointSystem, which: np.ndarray, share: np.ndarray, q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """(n, 12) sums over the rows `which` (k,) of bodies in states q (n, 12): force and torque [N, N m], and both times the rows'
    `share` (R,) in the incremental potential; `near` (m,): values near which angles are counted."""
    n, t, rows, a = len(q), system.table, system.rows, system.acting
    measured, child, parent = linearize(t, q, near)
    x, slope = evaluate(rows, measured)
    force, chosen = -a.stiffness * (x - a.target), np.isin(rows.term_row, which)
    row, m = rows.term_row[chosen], rows.term_measure[chosen]
    each, out = (force[row] * slope[chosen])[:, None], np.zeros((2, n + 1, 12))
    for bodies, gradient in ((t.child[m], child[m]), (np.where(t.parent[m] == WORLD, n, t.parent[m]), parent[m])):
        np.add.at(out[0], bodies, each * gradient)
        np.add.at(out[1], bodies, share[row, None] * each * gradient)
    A = q[:, 3:].reshape(-1, 3, 3)
    return np.concatenate([np.hstack([one[:n, :3], torque(one[:n, 3:].reshape(-1, 3, 3), A)]) for one in out], axis=1)


def whole(system: JointSystem, which: np.ndarray, share: np.ndarray, p: np.ndarray, ch2: float) -> np.ndarray:
    """Parameters (R, 8) of a step's laws with the rows `which` (k,) as they act, not as their `share` (R,) in the incremental
    potential has them."""
    a, p = system.acting, p.copy()
    more = (1.0 - share[which]) * ch2 * a.stiffness[which]
    K = p[which, slots.STRENGTH] + more
    p[which, slots.CENTRE] = (p[which, slots.STRENGTH] * p[which, slots.CENTRE] + more * a.target[which]) / K
    p[which, slots.TARGET], p[which, slots.STRENGTH] = p[which, slots.CENTRE], K
    return p
