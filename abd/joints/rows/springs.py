"""Springs that a time step resolves: their forces follow the trapezoidal rule.

Generalized alpha damps forces that alternate from step to step. It damps the vibration of a spring by
``((1 - rho)/(1 + rho))^3 (w h)^3`` per radian. Second-order steps (`abd.potentials.integrators`) therefore integrate
the forces f of springs ``k/2 (x - a)^2`` separately:

    q = ... + h^2 ((1/2 - b) f_n + b f_{n+1}),        (p, L) = ... + h/2 (f_n + f_{n+1})

b is c_b times the weight w of the spring's energy in the incremental potential; b = 1/4 for bodies at rest. This is
Newmark's rule without damping, which conserves the energy of linear vibrations for any step length. All other forces
follow the rule of the integrator. Springs whose vibration the step cannot resolve are damped like other forces.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows.laws import SPRINGS, Law, Role
from abd.joints.rows.rows import by_states
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import by_twists
from abd.model import WORLD, Kind, Model
from abd.potentials.free_motion import inertia
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import FLAT

RESOLVED = np.pi
"""Largest phase [rad] per step of a vibration that steps resolve: half a period."""
LARGEST_SWING = 0.5
"""Largest angle [rad] by which a resolved torsion spring turns its bodies in a step, from rest in the initial state: joint forces
do not follow the trapezoidal rule, and beyond this their directions change too much."""


def turns(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) phase per step [rad] of the vibration of springs and compliant joints, without other joints; 0 for other
    rows.

    The phase is that of the initial state.
    """
    return system.of_rows(model.step_lengths) * np.sqrt(system.row_laws.stiffness * _mobilities(model, system))


def _mobilities(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) mobility of the two bodies along rows of springs and compliant joints [1/kg, 1/(kg m^2)]; 0 for other rows.

    The stiff rows of the same joint constrain the bodies; other joints do not.
    """
    a, linear = system.row_laws, system.linear
    out, stiff = np.zeros(len(a.joint)), a.exact | (a.mass_stiffness > 0.0)
    selected = np.flatnonzero(a.active & np.isin(a.role, SPRINGS) & (a.role != Role.COUPLING) & ~stiff)
    if not len(selected):
        return out
    joints, place = np.unique(a.joint[selected], return_inverse=True)
    number = np.full(1 + max(a.joint.max(), linear.joint.max(initial=0)), -1)
    number[joints] = np.arange(len(joints))
    roots = mobility_roots(model)
    z = _measured_gradients(model, system, roots)
    held = np.flatnonzero(a.active & stiff & np.isin(a.role, (Role.CONSTRAINT, Role.LOCK)) & (number[a.joint] >= 0))
    linear_rows = np.flatnonzero(linear.K.any(axis=1) & (number[linear.joint] >= 0))
    sides = by_states(linear, np.repeat(linear_rows, 3), np.tile(np.arange(3), len(linear_rows)))
    of_linear = np.hstack([_by_twist(model, roots, *side) for side in sides]) * linear.mask[linear_rows].reshape(-1, 1)
    gradients = np.concatenate([z[held], of_linear])
    length = np.linalg.norm(gradients, axis=1)
    gradients /= np.where(length > 0.0, length, 1.0)[:, None]
    owner = np.concatenate([number[a.joint[held]], np.repeat(number[linear.joint[linear_rows]], 3)])
    count = np.bincount(owner, minlength=len(joints))
    order = np.argsort(owner, kind="stable")
    B = np.zeros((len(joints), max(int(count.max()), 1), 12))
    B[owner[order], np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)] = gradients[order]
    S = np.linalg.pinv(B @ B.transpose(0, 2, 1), rcond=1e-10, hermitian=True)
    along, total = np.einsum("kri,ki->kr", B[place], z[selected]), np.sum(z[selected] ** 2, axis=1)
    mobility = total - np.einsum("kr,krs,ks->k", along, S[place], along)
    out[selected] = np.where(mobility > 1e-9 * total, mobility, 0.0)
    return out


def mobility_roots(model: Model) -> np.ndarray:
    """(n, 6, 6) roots of the inverse mass matrices of rigid bodies; 0 for bodies that do not move."""
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
    """(k, 6) gradients (k, 12) by the states of bodies (k,) as wrenches, times the roots; 0 for the world."""
    wrench = by_twists(gradient, model.bodies.q, body)
    return np.where((body == WORLD)[:, None], 0.0, np.einsum("kij,kj->ki", roots[body], wrench))


def _measured_gradients(model: Model, system: JointSystem, roots: np.ndarray) -> np.ndarray:
    """(R, 12) mass-weighted gradients of the measured rows, by child and parent."""
    out = np.zeros((len(system.rows), 12))
    for side, (body, gradient) in enumerate(system.linearize(model.bodies.q)[1]):
        np.add.at(out[:, 6 * side : 6 * side + 6], system.rows.term_row, _by_twist(model, roots, body, gradient))
    return out


def resolved(model: Model, system: JointSystem) -> np.ndarray:
    """(R,) whether the force of a row follows the trapezoidal rule: springs and compliant joints with a constant rest
    value.
    """
    a = system.row_laws
    turn = turns(model, system)
    x = system.linearize(model.bodies.q)[0]
    swings = a.rotary & (0.5 * turn**2 * np.abs(x - a.target) > LARGEST_SWING)
    out = (turn > 0.0) & (turn <= RESOLVED) & (a.law == Law.QUADRATIC) & ~a.exact & ~a.follows & ~swings
    # rows whose targets change in every step
    out[[*a.target_of, *a.rate_of]] = False
    followers = np.isin(system.rows.term_measure, list(system.followers))
    return out & ~np.isin(a.joint, a.joint[system.rows.term_row[followers]])


def pulls(system: JointSystem, which: np.ndarray, stiffness_weight: np.ndarray, q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """(n, 12) force and torque [N, N m] of the rows `which` (k,) on bodies in states q (n, 12), then the weighted ones.

    Args:
        stiffness_weight: (R,) weights of the rows in the incremental potential.
        near: (m,) values near which angles are counted.
    """
    n, a = len(q), system.row_laws
    x, sides = system.linearize(q, near)
    chosen = np.isin(system.rows.term_row, which)
    row, out = system.rows.term_row[chosen], np.zeros((2, n + 1, 12))  # the last body is the world
    force = (-a.stiffness * (x - a.target))[row, None]
    for body, gradient in sides:
        np.add.at(out[0], body[chosen], force * gradient[chosen])
        np.add.at(out[1], body[chosen], stiffness_weight[row, None] * force * gradient[chosen])
    return np.concatenate([by_twists(one[:n], q, np.arange(n)) for one in out], axis=1)


def whole(system: JointSystem, which: np.ndarray, stiffness_weight: np.ndarray, p: np.ndarray, ch2: np.ndarray) -> np.ndarray:
    """Parameters (R, 8) of the laws with the full stiffness of the rows `which` (k,), without their weight `stiffness_weight`
    (R,).

    Args:
        p: (R, 8) parameters of a step of c h^2, ch2 (R,).
    """
    a, p = system.row_laws, p.copy()
    more = (1.0 - stiffness_weight[which]) * ch2[which] * a.stiffness[which]
    K = p[which, slots.STRENGTH] + more
    p[which, slots.CENTRE] = (p[which, slots.STRENGTH] * p[which, slots.CENTRE] + more * a.target[which]) / K
    p[which, slots.TARGET], p[which, slots.STRENGTH] = p[which, slots.CENTRE], K
    return p
