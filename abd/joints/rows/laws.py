"""Laws: what a row's value x contributes to the incremental potential, psi(x) [kg m^2].

Forces and stiffnesses in SI enter multiplied by c h^2. Parameters p (8,) stand in named slots (`abd.joints.rows.slots`);
g = SIGN (x - a) is a gap.

    OFF        0
    QUADRATIC  K/2 (x - a)^2                                K STRENGTH, a CENTRE, TARGET
    SATURATED  the same, its slope capped at T              T EFFORT
    BARRIER    kappa G^2 b(g/G) + D/2 max(0, min(G, g_n) - g)^2 + T f1(g - g_n; eps)
               kappa STRENGTH, G WIDTH, D DAMPING, g_n LAST_GAP, eps OPENING, GAP_AIM, with b(s) = -(s - 1)^2 ln s below 1,
               f1(y) = 0 below 0, y^2/(2 eps) up to eps, y - eps/2 beyond, and T = kappa G |b'(g_n/G)|, 0 without an eps
    ONE_SIDED  K/2 max(0, -g)^2 + D/2 max(0, min(0, g_n) - g)^2   K STRENGTH, D DAMPING, g_n LAST_GAP, BOUND
    CUBIC      S max(0, -g)^3                               S STRENGTH
    FRICTION   T f0(|x - a|; eps), Coulomb's, smoothed      T STRENGTH, a CENTRE, eps SMOOTHING, AIM
    LINEAR     -T x                                         T STRENGTH
    SINE       K/2 sin(x - a)^2                             K STRENGTH, a CENTRE, TARGET
    GIVEN      a user's force at x = v: psi, its slope and curvature there      v HERE, ENERGY, SLOPE, CURVATURE; the next ones
               follow from w PER_STEP, x_h LAST, x_n BEGIN

An exact row's `a` differs from its target, or from its bound, by its multiplier: ``a = TARGET - lambda / K``,
``a = BOUND + SIGN lambda / K`` with lambda >= 0; TOLERANCE is the residual to which it is held (0: not exact). The damping D
acts on the way into a limit's zone only. What leaves the zone of a barrier is held, at speeds above eps per step, by T, as
much as it was pushed with at the end of the last step (T): a barrier stops, and gives nothing back, whatever dt is.
"""

from __future__ import annotations

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


LIMITS = (
    Law.BARRIER,
    Law.ONE_SIDED,
    Law.CUBIC,
)
"""Of an end of a range or of a gap: `is_limit` of the kernels."""


def evaluate(
    law: np.ndarray, p: np.ndarray, x: np.ndarray, caution: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """psi, its slope, and a curvature that is never negative.

    Saturated drives bend less than the parabola through the same point and slope about the row's centre, whose curvature
    bounds theirs: Newton does not overshoot with it, and is quadratic with their own (`abd.backends.reference.caution`).

    Friction bends so much near its largest force that its own curvature leads there in many small steps, or far beyond. It
    has that of the secant to the value at which it is expected to end: with it one step is enough, if the expectation is
    right. The first one is that the row goes on as fast as in the step before; the next ones follow from the forces that
    Newton's models foretell (`aimed`), which they know long before the place. So has what holds the gap of a barrier, whose
    force has two edges eps apart: Newton jumps over them to and fro with the curvature at either side (`caught`).

    Args:
        law: (R,); p: (R, 8); x: (R,) values of the rows.
        caution: share, or (R,) shares, of what the bound of a saturated drive has more than its curvature.

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
        curvature[k] = own + np.broadcast_to(caution, len(x))[k] * (curvature[k] - own)
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
    damped, held = _entering(p, g, G), _leaving(p, g)
    energy = np.where(inside, energy + damped[0] + held[0], FORBIDDEN)
    return energy, p[slots.SIGN] * (slope + damped[1] + held[1]), np.where(near, curvature, 0.0) + damped[2] + held[2]


def _leaving(p, g):
    """What holds a gap that opens."""
    holds = p[slots.OPENING] > 0.0
    eps = np.where(holds, p[slots.OPENING], 1.0)
    T, y = np.where(holds, _push(p), 0.0), (g - p[slots.LAST_GAP]) / eps
    opened = np.maximum(y, 0.0)
    energy = np.where(opened < 1.0, 0.5 * opened**2, opened - 0.5)
    return T * eps * energy, T * hold(y), T * _secant_of_hold(y, (p[slots.GAP_AIM] - p[slots.LAST_GAP]) / eps) / eps


def _push(p):
    """Size of a barrier's slope at its last gap, 0 where that is not open."""
    kappa, G, last = p[slots.STRENGTH], p[slots.WIDTH], p[slots.LAST_GAP]
    s = np.where(last > 0.0, np.minimum(last / G, 1.0), 1.0)
    return kappa * G * (s - 1.0) * (2.0 * np.log(s) + (s - 1.0) / s)


def hold(y: np.ndarray) -> np.ndarray:
    """Share of the largest force that holds gaps which have opened by y (k,) over eps."""
    return np.clip(y, 0.0, 1.0)


def _secant_of_hold(y, aim):
    """Slope of `hold` from y to `aim`, between its edges its own."""
    way = aim - y
    far = np.abs(way) >= NEAR
    secant = np.where(far, (hold(aim) - hold(y)) / np.where(far, way, 1.0), 0.0)
    return np.where((y > 0.0) & (y < 1.0), 1.0, secant)


def caught(p: np.ndarray, x: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """(k,) gaps at which barriers, parameters (k, 8), are expected to end, by the model of what holds them at x (k,), which
    leads to `ahead` (k,): there where `hold` has the share that the model ends with.

    A model that ends beyond an edge with a share between them, or the reverse, has a wrong aim. It ended at another place with
    another share the time before, which was here if the step was a full one: the row ends where the line through both meets
    `hold`. Where no line falls, the share between the two that contradict each other is tried.
    """
    p = p.T
    last, holds = p[slots.LAST_GAP], p[slots.OPENING] > 0.0
    eps = np.where(holds, p[slots.OPENING], 1.0)
    y, end, before = ((g - last) / eps for g in (_gap(p, x), _gap(p, ahead), p[slots.GAP_AIM]))
    share = hold(y) + _secant_of_hold(y, before) * (end - y)
    between = (share > 0.0) & (share < 1.0)
    past = np.where(share <= 0.0, end > 0.0, ~between & (end < 1.0))
    fall, way = hold(before) - share, end - y
    met = (past | between & ((end < 0.0) | (end > 1.0))) & (fall * way > 0.0)
    K = np.where(met, fall / np.where(met, way, 1.0), 1.0)
    aim = np.where(met, (share + K * end) / (1.0 + K), np.where(past, 0.5 * (hold(share) + hold(end)), share))
    over = np.where(met, end + (share - hold(aim)) / K, end)
    aim = np.where(aim >= 1.0, np.maximum(1.0, over), np.where(aim <= 0.0, np.minimum(0.0, over), aim))
    return last + eps * np.where(holds, aim, end)


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
