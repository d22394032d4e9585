"""Laws: what a row's value x contributes to the incremental potential, psi(x) [kg m^2], and which law every row has.

Forces and stiffnesses in SI enter multiplied by c h^2. Parameters p (8,) stand in named slots (`abd.joints.rows.slots`);
g = SIGN (x - a) is a gap.

    OFF        0
    QUADRATIC  K/2 (x - a)^2                                K STRENGTH, a CENTRE, TARGET
    SATURATED  the same, its slope capped at T              T EFFORT
    BARRIER    kappa G^2 b(g/G) + D/2 max(0, min(G, g_n) - g)^2
               kappa STRENGTH, G WIDTH, D DAMPING, g_n LAST_GAP, with b(s) = -(s - 1)^2 ln s below 1
    ONE_SIDED  K/2 max(0, -g)^2 + D/2 max(0, min(0, g_n) - g)^2   K STRENGTH, D DAMPING, g_n LAST_GAP, BOUND
    CUBIC      S max(0, -g)^3                               S STRENGTH
    FRICTION   T f0(|x - a|; eps), Coulomb's, smoothed      T STRENGTH, a CENTRE, eps SMOOTHING, AIM
    LINEAR     -T x                                         T STRENGTH
    SINE       K/2 sin(x - a)^2                             K STRENGTH, a CENTRE, TARGET
    GIVEN      a user's force at x = v: psi, its slope and curvature there      v HERE, ENERGY, SLOPE, CURVATURE; the next ones
               follow from w PER_STEP, x_h LAST, x_n BEGIN

An exact row's `a` differs from its target, or from its bound, by its multiplier: ``a = TARGET - lambda / K``,
``a = BOUND + SIGN lambda / K`` with lambda >= 0; TOLERANCE is the residual to which it is held (0: not exact). The damping D
acts on the way into a limit's zone only. The width G of a barrier is the row's own (`JointMemory`): a row that starts within
its zone, or has an impact, has its gap as width, so that the barrier stores no energy and gives nothing back, whatever dt is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from abd.joints.rows import slots

FORBIDDEN = 1e60
"""Energy of a barrier's negative gap: finite, and larger than any other."""
NEAR = 1e-6
"""Displacement over eps below which a secant of friction is the tangent."""


class Law(IntEnum):
    """Laws; the numbers are those of ``cuda_kernels/joints/laws.py``."""

    OFF = 0
    QUADRATIC = 1
    SATURATED = 2
    BARRIER = 3
    ONE_SIDED = 4
    CUBIC = 5
    FRICTION = 6
    LINEAR = 7
    SINE = 8
    GIVEN = 9


LIMITS = (Law.BARRIER, Law.ONE_SIDED, Law.CUBIC)
"""Of an end of a range or of a gap: `is_limit` of the kernels."""


class Role(IntEnum):
    """What a row is there for."""

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
    COORDINATE = 12
    """Read only (`abd.joints.rows.rigid_rows`)."""


@dataclass
class RowLaws:
    """The law of every measured row (R,), and the numbers it has; SI units, m or rad.

    Attributes:
        role: `Role`; law: `Law` of the row while it is active.
        joint: (R,) joint, or the first one of a coupling; coupling: index of it, -1 for a joint's own row.
        name: of the row, such as "x", or of the coordinate; rotary: (R,) bool.
        active: (R,) bool; exact: (R,) bool.
        mass_stiffness: K [kg or kg m^2]; kappa of barriers; S of cubic limits; rotor inertia of armatures.
        stiffness, damping, effort: SI.
        bound, sign, distance: of limits and gaps.
        target: value to reach, rest of springs, force of force rows; rate: speed of the target.
        target_of, rate_of: row -> function of t [s] that gives them.
        revision: rises when targets or rates, or their functions, are changed.
        follows: the target is the last value (brakes without an effort limit, passive drives), or moves on from it by
            `rate` (velocity drives). Of a barrier: it is on its way to its range, or bounces, and lets what leaves it go.
        restitution: of barriers, share of the speed that they give back.
        tolerance: residual to which an exact row is held.
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
    """psi, its slope, and a curvature that is never negative.

    Saturated drives bend less than the parabola through the same point and slope about the row's centre, whose curvature
    bounds theirs: Newton does not overshoot with it, and is quadratic with their own (`abd.backends.reference.regularisation`).

    Friction bends so much near its largest force that its own curvature leads there in many small steps, or far beyond. It
    has that of the secant to the value at which it is expected to end: with it one step is enough, if the expectation is
    right. The first one is that the row goes on as fast as in the step before; the next ones follow from the forces that
    Newton's models foretell (`aimed`), which they know long before the place.

    Args:
        law: (R,); p: (R, 8); x: (R,) values of the rows.
        regularisation: share, or (R,) shares, of what the bound of a saturated drive has more than its curvature.

    Returns:
        three arrays (R,).
    """
    energy, slope, curvature = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    for kind, function in _FUNCTIONS.items():
        k = law == kind
        if k.any():
            energy[k], slope[k], curvature[k] = function(p[k].T, x[k])
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


def _entering(p, g, edge):
    """Damping of what enters below ``min(edge, g_n)``."""
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
    damped = _entering(p, g, G)
    energy = np.where(inside, energy + damped[0], FORBIDDEN)
    return energy, p[slots.SIGN] * (slope + damped[1]), np.where(near, curvature, 0.0) + damped[2]


def _one_sided(p, x):
    K, g = p[slots.STRENGTH], _gap(p, x)
    v = np.maximum(0.0, -g)
    damped = _entering(p, g, 0.0)
    return 0.5 * K * v**2 + damped[0], p[slots.SIGN] * (-K * v + damped[1]), np.where(v > 0.0, K, 0.0) + damped[2]


def _cubic(p, x):
    S, v = p[slots.STRENGTH], np.maximum(0.0, -_gap(p, x))
    return S * v**3, -3.0 * p[slots.SIGN] * S * v**2, 6.0 * S * v


def _friction(p, x):
    T, a, eps = p[slots.STRENGTH], p[slots.CENTRE], p[slots.SMOOTHING]
    u = x - a
    y = np.abs(u)
    f0 = np.where(y >= eps, y, y * y * (eps - y / 3.0) / eps**2 + eps / 3.0)
    return T * f0, T * force(u / eps), T * secant(u / eps, (p[slots.AIM] - a) / eps) / eps


def force(y: np.ndarray) -> np.ndarray:
    """Share of the largest force of friction at displacements y (k,) over eps."""
    size = np.minimum(np.abs(y), 1.0)
    return np.sign(y) * size * (2.0 - size)


def secant(y: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """Slope (k,) of `force` from y to `aim` (k,), its own where both are one."""
    way = aim - y
    near = np.abs(way) < NEAR
    return np.where(near, 2.0 * np.maximum(0.0, 1.0 - np.abs(y)), (force(aim) - force(y)) / np.where(near, 1.0, way))


def aimed(p: np.ndarray, x: np.ndarray, ahead: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(k,) values at which rows of friction, parameters (k, 8), are expected to end, by a model of this `curvature` (k,) at x
    (k,) that leads to `ahead` (k,): there where their law has the force that the model ends with. A row that slips, for which
    the model has more than its largest force, ends where the model does, and at its edge at the least."""
    T, a, eps = p[:, slots.STRENGTH], p[:, slots.CENTRE], p[:, slots.SMOOTHING]
    y, end = (x - a) / eps, (ahead - a) / eps
    share = force(y) + np.divide(curvature * (ahead - x), T, out=np.zeros(len(x)), where=T > 0.0)
    size = np.abs(share)
    sticks = np.sign(share) * (1.0 - np.sqrt(np.maximum(0.0, 1.0 - size)))
    slips = np.sign(share) * np.maximum(1.0, end * np.sign(share))
    return a + eps * np.where(size < 1.0, sticks, slips)


def _linear(p, x):
    T = p[slots.STRENGTH]
    return -T * x, -T, np.zeros_like(x)


def _sine(p, x):
    K, e = p[slots.STRENGTH], x - p[slots.CENTRE]
    return 0.5 * K * np.sin(e) ** 2, 0.5 * K * np.sin(2.0 * e), K * np.maximum(0.0, np.cos(2.0 * e))


def _given(p, x):
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
    Law.GIVEN: _given,
}
