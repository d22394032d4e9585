"""Factors on the impulses of pairs that strike: rounds of reflections, and what brings pairs to the velocities they end with
(`abd.step.impacts.restitution`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Sweep = Callable[..., np.ndarray]
"""`abd.potentials.sweeps.swept`, or its twin."""

ROUNDS = 300
"""Rounds of reflections, at most; what closes after them meets without restitution."""
CLOSES = 1e-7
"""Normal velocity from which a pair closes, of the fastest one."""


def reflected(sweep: Sweep, A, power, e, least, size) -> tuple[np.ndarray, np.ndarray]:
    """Normal powers (k,) after rounds of reflections, until nothing closes, and which pairs (k,) they have struck.

    Args:
        A: (k, k) powers per factor on the impulses; power: (k,) before.
        e: (k,) restitution of what closes faster than `least` [m/s]; size: (k,) of the impulses [N s].
    """
    struck, power = np.zeros(len(power), dtype=bool), power.copy()
    fastest = max(float((np.abs(power) / size).max()), 1e-300)
    for _ in range(ROUNDS if e.any() else 0):
        rows = np.flatnonzero(power < -CLOSES * fastest * size)
        bounces = power[rows] < -least * size[rows]
        if not bounces.any():
            break
        goal = np.where(bounces, -e[rows] * power[rows], 0.0)
        more = _opened(sweep, A[rows][:, rows], power[rows] - goal, size[rows])
        struck[rows] |= more > 0.0
        power += A[:, rows] @ more
    more = _opened(sweep, A, power, size)
    return power + A @ more, struck | (more > 0.0)


def _opened(sweep: Sweep, A, power, size) -> np.ndarray:
    """(k,) factors x >= 0 with ``A x + power >= 0``, one of both zero."""
    fastest = max(float((np.abs(power) / size).max(initial=0.0)), 1e-300)
    return sweep(A, power, np.zeros(len(power)), np.full(len(power), np.inf), size, fastest)


def brought(sweep: Sweep, A, power, target, high, struck, size) -> np.ndarray:
    """(k,) factors s that bring the pairs to their normal powers."""
    fastest = max(float((np.abs(power) / size).max()), float((np.abs(target) / size).max()), 1e-300)
    return sweep(A, power, np.where(struck, target, 0.0), np.where(struck, target, high), size, fastest)
