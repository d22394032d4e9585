"""Laws: contribution psi(x) [kg m^2] of a row's value x to the incremental potential, and the law of every row.

Forces and stiffnesses in SI units are multiplied by c h^2. Parameters p (8,) have named slots
(`cuda_kernels.shared.slots`); g = SIGN (x - a) is a gap.

    OFF        0
    QUADRATIC  K/2 (x - a)^2                                K STRENGTH, a CENTRE, TARGET
    SATURATED  the same, with a slope of at most T          T EFFORT
    BARRIER    kappa G^2 b(g/G) + D/2 max(0, min(G, g_n) - g)^2
               kappa STRENGTH, G WIDTH, D DAMPING, g_n LAST_GAP, with b(s) = -(s - 1)^2 ln s below 1
    ONE_SIDED  K/2 max(0, -g)^2 + D/2 max(0, min(0, g_n) - g)^2   K STRENGTH, D DAMPING, g_n LAST_GAP, BOUND
    CUBIC      S max(0, -g)^3                               S STRENGTH
    FRICTION   T f0(|x - a|; eps), smoothed Coulomb friction      T STRENGTH, a CENTRE, eps SMOOTHING, AIM
    LINEAR     -T x                                         T STRENGTH
    SINE       K/2 sin(x - a)^2                             K STRENGTH, a CENTRE, TARGET
    GIVEN      a user's force at x = v: psi, its slope and curvature      v HERE, ENERGY, SLOPE, CURVATURE;
               computed from w PER_STEP, x_h LAST, x_n BEGIN

The `a` of an exact row contains its multiplier: ``a = TARGET - lambda / K``, or ``a = BOUND + SIGN lambda / K`` with
lambda >= 0. TOLERANCE is the residual tolerance of the row (0: not exact). The damping D acts only while the gap
decreases within the zone of a limit. The width G of a barrier belongs to the row (`JointMemory`). A row that starts
within its zone, or has an impact, has its gap as width. The barrier then stores no energy that it could return, for any
dt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from abd.potentials.friction import f0
from cuda_kernels.shared import slots
from cuda_kernels.shared.joints import FORBIDDEN, NEAR, Law

LIMITS = (Law.BARRIER, Law.ONE_SIDED, Law.CUBIC)
"""Laws of range ends and gaps: `is_limit` of the kernels."""


class Role(IntEnum):
    """Purpose of a row."""

    CONSTRAINT = 0
    GAP = 1
    LOWER = 2
    UPPER = 3
    LOCK = 4
    DRIVE = 5
    SPRING = 6
    FORCE = 7
    FRICTION = 8
    ARMATURE = 9
    COUPLING = 10
    APPLIED = 11
    BRAKE = 12
    """With limited effort."""
    COORDINATE = 13
    """Read-out only (`abd.joints.rows.rigid_rows`)."""


SPRINGS = (Role.CONSTRAINT, Role.LOCK, Role.SPRING, Role.COUPLING)
"""Roles whose quadratic rows store energy; the effect of a drive counts as work."""


@dataclass
class RowLaws:
    """Law of every measured row (R,) and its parameters in SI units, m or rad.

    Attributes:
        role: `Role`; law: `Law` of the row while it is active.
        joint: (R,) joint, or the first joint of a coupling; coupling: its index, -1 for rows of joints.
        name: of the row, such as "x", or of the coordinate; rotary: (R,) bool.
        active: (R,) bool; exact: (R,) bool.
        mass_stiffness: K [kg or kg m^2]; kappa of barriers; S of cubic limits; rotor inertia of armatures.
        stiffness, damping, effort: SI.
        bound, sign, distance: of limits and gaps.
        target: target value, rest value of springs, force of force rows; rate: rate of the target.
        target_of, rate_of: row -> function of t [s] for target or rate.
        revision: counter of changes of targets, rates or their functions.
        follows: the target is the last value (brakes without an effort limit, passive drives), plus `rate` times the
            step for velocity drives. For a barrier: its bound is moving to the end of the range, or it has a
            restitution.
        restitution: fraction of the speed that a barrier returns.
        tolerance: residual tolerance of an exact row.
    """

    role: np.ndarray
    law: np.ndarray
    joint: np.ndarray
    coupling: np.ndarray
    name: list[str]
    rotary: np.ndarray
    active: np.ndarray
    exact: np.ndarray
    mass_stiffness: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    effort: np.ndarray
    bound: np.ndarray
    sign: np.ndarray
    distance: np.ndarray
    target: np.ndarray
    rate: np.ndarray
    follows: np.ndarray
    restitution: np.ndarray
    tolerance: np.ndarray
    target_of: dict[int, Callable[[float], float]] = field(default_factory=dict)
    rate_of: dict[int, Callable[[float], float]] = field(default_factory=dict)
    revision: int = 0


def evaluate(
    law: np.ndarray, p: np.ndarray, x: np.ndarray, regularisation: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of psi, its slope, and a nonnegative curvature.

    Saturated drives use the curvature of the parabola through the same point and slope about the row's centre. It
    bounds the true curvature, so that Newton's method does not overshoot. Their true curvature makes the convergence
    quadratic (`cuda_kernels.step.newton`).

    The true curvature of friction varies so much near the largest force that Newton's steps are too small or too large.
    Its curvature is that of the secant to the value expected at the end of the step. The first expectation is a
    constant speed; later ones follow from the forces that Newton's model predicts (`aimed`).

    Args:
        law: (R,); p: (R, 8); x: (R,) values of the rows.
        regularisation: weight, scalar or (R,), of the difference between the bound of a saturated drive and its
            curvature.

    Returns:
        three arrays (R,).
    """
    energy, slope, curvature = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    for kind in np.flatnonzero(np.bincount(law)).tolist():
        if kind != Law.OFF:
            k = law == kind
            energy[k], slope[k], curvature[k] = _FUNCTIONS[kind](p[k].T, x[k])
    k = law == Law.SATURATED
    if k.any():
        K, e, T = p[k, slots.STRENGTH], x[k] - p[k, slots.CENTRE], p[k, slots.EFFORT]
        own = np.where(K * np.abs(e) <= T, K, 0.0)
        curvature[k] = own + np.broadcast_to(regularisation, len(x))[k] * (curvature[k] - own)
    return energy, slope, curvature


def _quadratic(p, x):
    K, e = p[slots.STRENGTH], x - p[slots.CENTRE]
    return 0.5 * K * e * e, K * e, K


def _saturated(p, x):
    K, e, T = p[slots.STRENGTH], x - p[slots.CENTRE], p[slots.EFFORT]
    size = np.abs(e)
    weak = K * size <= T
    energy = np.where(weak, 0.5 * K * e * e, T * size - 0.5 * T**2 / K)
    return energy, np.where(weak, K * e, T * np.sign(e)), np.where(weak, K, T / np.maximum(size, 1e-300))


def _gap(p, x):
    return p[slots.SIGN] * (x - p[slots.CENTRE])


def _approach_damping(p, g, edge):
    """Damping of a gap that decreases below ``min(edge, g_n)``."""
    D, depth = p[slots.DAMPING], np.maximum(0.0, np.minimum(edge, p[slots.LAST_GAP]) - g)
    return 0.5 * D * depth**2, -D * depth, np.where(depth > 0.0, D, 0.0)


def _barrier(p, x):
    kappa, G, g = p[slots.STRENGTH], p[slots.WIDTH], _gap(p, x)
    inside = g > 0.0
    s = np.where(inside, g, G) / G
    near = s < 1.0
    s = np.where(near, s, 1.0)
    log = np.log(s)
    energy = -kappa * G**2 * (s - 1.0) ** 2 * log
    slope = -kappa * G * (s - 1.0) * (2.0 * log + (s - 1.0) / s)
    curvature = -kappa * (2.0 * log + 4.0 * (s - 1.0) / s - ((s - 1.0) / s) ** 2)
    damped = _approach_damping(p, g, G)
    energy = np.where(inside, energy + damped[0], FORBIDDEN)
    return energy, p[slots.SIGN] * (slope + damped[1]), np.where(near, curvature, 0.0) + damped[2]


def _one_sided(p, x):
    K, g = p[slots.STRENGTH], _gap(p, x)
    v = np.maximum(0.0, -g)
    damped = _approach_damping(p, g, 0.0)
    return 0.5 * K * v**2 + damped[0], p[slots.SIGN] * (-K * v + damped[1]), np.where(v > 0.0, K, 0.0) + damped[2]


def _cubic(p, x):
    S, v = p[slots.STRENGTH], np.maximum(0.0, -_gap(p, x))
    return S * v**3, -3.0 * p[slots.SIGN] * S * v**2, 6.0 * S * v


def _friction(p, x):
    T, a, eps = p[slots.STRENGTH], p[slots.CENTRE], p[slots.SMOOTHING]
    u = x - a
    return T * f0(np.abs(u), eps), T * force(u / eps), T * secant(u / eps, (p[slots.AIM] - a) / eps) / eps


def force(y: np.ndarray) -> np.ndarray:
    """Fraction of the largest friction force at displacements y (k,) over eps."""
    size = np.minimum(np.abs(y), 1.0)
    return np.sign(y) * size * (2.0 - size)


def secant(y: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """Slope (k,) of `force` from y to `aim` (k,); the tangent if both are equal."""
    distance = aim - y
    near = np.abs(distance) < NEAR
    return np.where(
        near, 2.0 * np.maximum(0.0, 1.0 - np.abs(y)), (force(aim) - force(y)) / np.where(near, 1.0, distance)
    )


def aimed(p: np.ndarray, x: np.ndarray, ahead: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(k,) expected end values of friction rows.

    Newton's model of curvature `curvature` (k,) at x (k,) has its minimum at `ahead` (k,) and predicts a force there. A
    sticking row ends where its law has that force. A sliding row, whose predicted force exceeds the largest friction
    force, ends where the model does, but at least at the edge of sticking.

    Args:
        p: (k, 8) parameters of the rows.
    """
    T, a, eps = p[:, slots.STRENGTH], p[:, slots.CENTRE], p[:, slots.SMOOTHING]
    y, end = (x - a) / eps, (ahead - a) / eps
    force_fraction = force(y) + np.divide(curvature * (ahead - x), T, out=np.zeros(len(x)), where=T > 0.0)
    size = np.abs(force_fraction)
    sticks = np.sign(force_fraction) * (1.0 - np.sqrt(np.maximum(0.0, 1.0 - size)))
    slips = np.sign(force_fraction) * np.maximum(1.0, end * np.sign(force_fraction))
    return a + eps * np.where(size < 1.0, sticks, slips)


def _linear(p, x):
    T = p[slots.STRENGTH]
    return -T * x, -T, np.zeros_like(x)


def _sine(p, x):
    K, e = p[slots.STRENGTH], x - p[slots.CENTRE]
    return 0.5 * K * np.sin(e) ** 2, 0.5 * K * np.sin(2.0 * e), K * np.maximum(0.0, np.cos(2.0 * e))


def _user_force(p, x):
    e, slope, curvature = x - p[slots.HERE], p[slots.SLOPE], p[slots.CURVATURE]
    return p[slots.ENERGY] + slope * e + 0.5 * curvature * e * e, slope + curvature * e, curvature


_FUNCTIONS = {
    Law.QUADRATIC: _quadratic,
    Law.SATURATED: _saturated,
    Law.BARRIER: _barrier,
    Law.ONE_SIDED: _one_sided,
    Law.CUBIC: _cubic,
    Law.FRICTION: _friction,
    Law.LINEAR: _linear,
    Law.SINE: _sine,
    Law.GIVEN: _user_force,
}
