"""Laws: what a row's value x contributes to the incremental potential, psi(x) [kg m^2].

Forces and stiffnesses in SI enter multiplied by c h^2. Parameters p (8,) by slot, g = sign (x - bound) a gap:

    OFF        0
    QUADRATIC  K/2 (x - a)^2                                p = K, a, target
    SATURATED  the same, its slope capped at T              p = K, a, target, T
    BARRIER    kappa G^2 b(g/G) + D/2 max(0, min(G, g_n) - g)^2 + T f1(g - g_n; eps)
               p = kappa, bound, sign, G, D, g_n, T, eps, with b(s) = -(s - 1)^2 ln s below 1
               and f1(y) = 0 below 0, y^2/(2 eps) up to eps, y - eps/2 beyond
    ONE_SIDED  K/2 max(0, -g)^2 + D/2 max(0, min(0, g_n) - g)^2   p = K, a, sign, -, D, g_n, ., bound; g from a
    CUBIC      S max(0, -g)^3                               p = S, bound, sign
    FRICTION   T f0(|x - a|; eps), Coulomb's, smoothed      p = T, a, -, eps, value expected at the end
    LINEAR     -T x                                         p = T
    SINE       K/2 sin(x - a)^2                             p = K, a, target
    GIVEN      a user's force at x = v: psi, its slope and curvature there      p = v, psi, slope, curvature, w, x_h, -, x_n

An exact row's `a` differs from its `target`, or from its `bound`, by its multiplier: ``a = target - lambda / K``,
``a = bound + sign lambda / K`` with lambda >= 0; p[6] is the residual to which it is held (0: not exact). The damping D
acts on the way into a limit's zone only. What leaves the zone of a barrier is held, at speeds above eps per step, by T, as
much as it was pushed with at the end of the last step (`push`): a barrier stops, and gives nothing back, whatever dt is.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

SLOTS = 8
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


def evaluate(
    law: np.ndarray, p: np.ndarray, x: np.ndarray, caution: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """psi, its slope, and a curvature that is never negative.

    Saturated drives bend less than the parabola through the same point and slope about the row's centre, whose curvature
    bounds theirs: Newton does not overshoot with it, and is quadratic with their own (`abd.step.caution`).

    Friction bends so much near its largest force that its own curvature leads there in many small steps, or far beyond. It
    has that of the secant to the value at which it is expected to end: with it one step is enough, if the expectation is
    right. The first one is that the row goes on as fast as in the step before; the next ones follow from the forces that
    Newton's models foretell (`aimed`), which they know long before the place.

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
        own = np.where(p[k, 0] * np.abs(x[k] - p[k, 1]) <= p[k, 3], p[k, 0], 0.0)
        curvature[k] = own + np.broadcast_to(caution, len(x))[k] * (curvature[k] - own)
    return energy, slope, curvature


def _quadratic(p, x):
    e = x - p[1]
    return 0.5 * p[0] * e * e, p[0] * e, p[0]


def _saturated(p, x):
    e = x - p[1]
    size = np.abs(e)
    weak = p[0] * size <= p[3]
    energy = np.where(weak, 0.5 * p[0] * e * e, p[3] * size - 0.5 * p[3] ** 2 / p[0])
    return energy, np.where(weak, p[0] * e, p[3] * np.sign(e)), np.where(weak, p[0], p[3] / np.maximum(size, 1e-300))


def _entering(p, g, edge):
    """Damping of what enters below ``min(edge, g_n)``."""
    depth = np.maximum(0.0, np.minimum(edge, p[5]) - g)
    return 0.5 * p[4] * depth**2, -p[4] * depth, np.where(depth > 0.0, p[4], 0.0)


def _barrier(p, x):
    g = p[2] * (x - p[1])
    inside = g > 0.0
    s = np.where(inside, g, p[3]) / p[3]
    near = s < 1.0
    s = np.where(near, s, 1.0)
    log = np.log(s)
    energy = -p[0] * p[3] ** 2 * (s - 1.0) ** 2 * log
    slope = -p[0] * p[3] * (s - 1.0) * (2.0 * log + (s - 1.0) / s)
    curvature = -p[0] * (2.0 * log + 4.0 * (s - 1.0) / s - ((s - 1.0) / s) ** 2)
    damped, held = _entering(p, g, p[3]), _leaving(p, g)
    energy = np.where(inside, energy + damped[0] + held[0], FORBIDDEN)
    return energy, p[2] * (slope + damped[1] + held[1]), np.where(near, curvature, 0.0) + damped[2] + held[2]


def _leaving(p, g):
    """What holds a gap that opens."""
    y, eps = np.maximum(0.0, g - p[5]), np.where(p[6] > 0.0, p[7], 1.0)
    slow = y < eps
    energy = np.where(slow, 0.5 * y * y / eps, y - 0.5 * eps)
    return p[6] * energy, p[6] * np.minimum(y / eps, 1.0), p[6] * np.where(slow & (y > 0.0), 1.0 / eps, 0.0)


def push(kappa: np.ndarray, width: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Size (k,) of a barrier's slope at gaps (k,) > 0, for stiffness and width (k,)."""
    s = np.clip(gap / width, 1e-300, 1.0)
    return kappa * width * (s - 1.0) * (2.0 * np.log(s) + (s - 1.0) / s)


def _one_sided(p, x):
    g = p[2] * (x - p[1])
    v = np.maximum(0.0, -g)
    damped = _entering(p, g, 0.0)
    return (
        0.5 * p[0] * v**2 + damped[0],
        p[2] * (-p[0] * v + damped[1]),
        np.where(v > 0.0, p[0], 0.0) + damped[2],
    )


def _cubic(p, x):
    v = np.maximum(0.0, -p[2] * (x - p[1]))
    return p[0] * v**3, -3.0 * p[2] * p[0] * v**2, 6.0 * p[0] * v


def _friction(p, x):
    u = x - p[1]
    y, eps = np.abs(u), p[3]
    f0 = np.where(y >= eps, y, y * y * (eps - y / 3.0) / eps**2 + eps / 3.0)
    return p[0] * f0, p[0] * force(u / eps), p[0] * secant(u / eps, (p[4] - p[1]) / eps) / eps


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
    T, a, eps = p[:, 0], p[:, 1], p[:, 3]
    y, end = (x - a) / eps, (ahead - a) / eps
    share = force(y) + np.divide(curvature * (ahead - x), T, out=np.zeros(len(x)), where=T > 0.0)
    size = np.abs(share)
    sticks = np.sign(share) * (1.0 - np.sqrt(np.maximum(0.0, 1.0 - size)))
    slips = np.sign(share) * np.maximum(1.0, end * np.sign(share))
    return a + eps * np.where(size < 1.0, sticks, slips)


def _linear(p, x):
    return -p[0] * x, -p[0], np.zeros_like(x)


def _sine(p, x):
    e = x - p[1]
    return 0.5 * p[0] * np.sin(e) ** 2, 0.5 * p[0] * np.sin(2.0 * e), p[0] * np.maximum(0.0, np.cos(2.0 * e))


def _given(p, x):
    e = x - p[0]
    return p[1] + p[2] * e + 0.5 * p[3] * e * e, p[2] + p[3] * e, p[3]


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
