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
from abd.joints.rows.laws import Law, Role
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.rows import Rows, by_states
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import by_twists, linearize
from abd.model import WORLD, Kind, Model
from abd.potentials.free_motion import FLAT, inertia

RESOLVED = np.pi
"""Turn of a spring's vibration per step [rad] up to which it is one that steps can show: half a period."""


def turns(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) by how much what springs and compliant joints hold would vibrate in a step without other joints [rad], as the bodies
    stand at the start; 0 for other rows."""
    return system.of_rows(model.step_lengths) * np.sqrt(system.row_laws.stiffness * _yields(model, system))


def _yields(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) what the two bodies of springs and compliant joints yield to forces along them [1/kg, 1/(kg m^2)], as far as what
    their joint holds beside them lets, and without other joints; 0 for other rows."""
    a, linear = system.row_laws, system.linear
    out, stiff = np.zeros(len(a.joint)), a.exact | (a.mass_stiffness > 0.0)
    which = np.flatnonzero(a.active & np.isin(a.role, SPRINGS) & (a.role != Role.COUPLING) & ~stiff)
    if not len(which):
        return out
    joints, place = np.unique(a.joint[which], return_inverse=True)
    number = np.full(1 + max(a.joint.max(), linear.joint.max(initial=0)), -1)
    number[joints] = np.arange(len(joints))
    roots = _roots(model)
    z = _measured_ways(model, system, roots)
    held = np.flatnonzero(a.active & stiff & np.isin(a.role, (Role.CONSTRAINT, Role.LOCK)) & (number[a.joint] >= 0))
    straight = np.flatnonzero(linear.K.any(axis=1) & (number[linear.joint] >= 0))
    ways = np.concatenate([z[held], _straight_ways(model, linear, straight, roots)])
    length = np.linalg.norm(ways, axis=1)
    ways /= np.where(length > 0.0, length, 1.0)[:, None]
    owner = np.concatenate([number[a.joint[held]], np.repeat(number[linear.joint[straight]], 3)])
    count = np.bincount(owner, minlength=len(joints))
    order = np.argsort(owner, kind="stable")
    B = np.zeros((len(joints), max(int(count.max()), 1), 12))
    B[owner[order], np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)] = ways[order]
    S = np.linalg.pinv(B @ B.transpose(0, 2, 1), rcond=1e-10, hermitian=True)
    along, whole = np.einsum("kri,ki->kr", B[place], z[which]), np.sum(z[which] ** 2, axis=1)
    left = whole - np.einsum("kr,krs,ks->k", along, S[place], along)
    out[which] = np.where(left > 1e-9 * whole, left, 0.0)
    return out


def _roots(model: Model) -> np.ndarray:
    """(n, 6, 6) roots of the inverse mass matrices of rigid bodies, 0 of those that do not move."""
    bodies = model.bodies
    J, V = np.linalg.eigh(inertia(bodies.q[:, 3:].reshape(-1, 3, 3), bodies.moment))
    moves = ((bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0))[:, None]
    turns = moves & (FLAT * J[:, 2:] < J)
    out = np.zeros((len(bodies), 6, 6))
    out[:, :3, :3] = np.where(moves, 1.0 / np.sqrt(np.where(moves, bodies.mass[:, None], 1.0)), 0.0)[:, :, None] * np.eye(3)
    root = np.where(turns, 1.0 / np.sqrt(np.where(turns, J, 1.0)), 0.0)
    out[:, 3:, 3:] = np.einsum("nik,nk,njk->nij", V, root, V)
    return out


def _by_twist(model: Model, roots: np.ndarray, body: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(k, 6) forces and torques of gradients (k, 12) by states of bodies (k,), times their roots; 0 for the world's."""
    wrench = by_twists(gradient, model.bodies.q, body)
    return np.where((body == WORLD)[:, None], 0.0, np.einsum("kij,kj->ki", roots[body], wrench))


def _measured_ways(model: Model, system: JointSystem, roots: np.ndarray) -> np.ndarray:
    """(R, 12) of the measured rows, of their children and their parents."""
    rows, table, out = system.rows, system.table, np.zeros((len(system.rows), 12))
    measured, *gradients = linearize(table, model.bodies.q)
    slope, row, m = evaluate(rows, measured)[1], rows.term_row, rows.term_measure
    for side, (of, gradient) in enumerate(zip((table.child, table.parent), gradients, strict=True)):
        np.add.at(out[:, 6 * side : 6 * side + 6], row, slope[:, None] * _by_twist(model, roots, of[m], gradient[m]))
    return out


def _straight_ways(model: Model, linear: Rows, chosen: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """(3 k, 12) of the components of linear rows (k,), 0 of those that are free."""
    sides = by_states(linear, np.repeat(chosen, 3), np.tile(np.arange(3), len(chosen)))
    return np.hstack([_by_twist(model, roots, *side) for side in sides]) * linear.mask[chosen].reshape(-1, 1)


def resolved(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) bool, rows whose forces follow the trapezoidal rule: of springs and compliant joints with a rest of their own."""
    a = system.row_laws
    turn = turns(model, system)
    out = (turn > 0.0) & (turn <= RESOLVED) & (a.law == Law.QUADRATIC) & ~a.exact & ~a.follows
    # what is set anew in every step
    out[[*a.target_of, *a.rate_of]] = False
    followers = np.isin(system.rows.term_measure, list(system.followers))
    return out & ~np.isin(a.joint, a.joint[system.rows.term_row[followers]])


def pulls(system: JointSystem, which: np.ndarray, share: np.ndarray, q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """(n, 12) sums over the rows `which` (k,) of bodies in states q (n, 12): force and torque [N, N m], and both times the rows'
    `share` (R,) in the incremental potential; `near` (m,): values near which angles are counted."""
    n, t, rows, a = len(q), system.table, system.rows, system.row_laws
    measured, child, parent = linearize(t, q, near)
    x, slope = evaluate(rows, measured)
    force, chosen = -a.stiffness * (x - a.target), np.isin(rows.term_row, which)
    row, m = rows.term_row[chosen], rows.term_measure[chosen]
    each, out = (force[row] * slope[chosen])[:, None], np.zeros((2, n + 1, 12))
    for bodies, gradient in ((t.child[m], child[m]), (np.where(t.parent[m] == WORLD, n, t.parent[m]), parent[m])):
        np.add.at(out[0], bodies, each * gradient)
        np.add.at(out[1], bodies, share[row, None] * each * gradient)
    return np.concatenate([by_twists(one[:n], q, np.arange(n)) for one in out], axis=1)


def whole(system: JointSystem, which: np.ndarray, share: np.ndarray, p: np.ndarray, ch2: np.ndarray) -> np.ndarray:
    """Parameters (R, 8) of the laws of a step of c h^2 (R,) with the rows `which` (k,) as they act, not as their `share` (R,) in
    the incremental potential has them."""
    a, p = system.row_laws, p.copy()
    more = (1.0 - share[which]) * ch2[which] * a.stiffness[which]
    K = p[which, slots.STRENGTH] + more
    p[which, slots.CENTRE] = (p[which, slots.STRENGTH] * p[which, slots.CENTRE] + more * a.target[which]) / K
    p[which, slots.TARGET], p[which, slots.STRENGTH] = p[which, slots.CENTRE], K
    return p
