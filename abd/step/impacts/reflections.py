"""Factors on the impulses of pairs that strike: rounds of reflections, and what brings pairs to the velocities they end with
(`abd.step.impacts.restitution`). Pairs stand in blocks that do not meet, each with a speed of its own that others are measured
by, and rounds of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.step.impacts.blocks import Blocks

Sweep = Callable[..., np.ndarray]
"""`abd.potentials.sweeps.swept`, or its device version."""

ROUNDS = 300
"""Rounds of reflections, at most; what closes after them meets without restitution."""
CLOSES = 1e-7
"""Normal velocity from which a pair closes, of the fastest one."""
TOGETHER = 0.1
"""Normal velocity from which a pair closes at the same time as the fastest one that does, over that one's: slower ones wait."""
LEAST = 1e-300
"""Smallest speed that others are measured by [m/s]."""


def reflected(sweep: Sweep, A, power, e, least, size, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Normal powers (k,) after rounds of reflections, until nothing closes, and which pairs (k,) have an impact in them.

    Args:
        A: (k, k) powers per factor on the impulses; power: (k,) before.
        e: (k,) restitution of what closes faster than `least` (k,) [m/s]; size: (k,) of the impulses [N s].
    """
    in_impact, power = np.zeros(len(power), dtype=bool), power.copy()
    closes = -CLOSES * blocks.each(np.maximum(blocks.largest(np.abs(power) / size), LEAST)) * size
    going = blocks.each(blocks.any(e != 0.0))
    for _ in range(ROUNDS):
        at_once = blocks.each(blocks.largest(-power / size))
        rows = going & (power < np.minimum(closes, -TOGETHER * at_once * size))
        bounces = rows & (power < -least * size)
        going = blocks.each(blocks.any(bounces))
        rows &= going
        if not rows.any():
            break
        more = _opened(sweep, A, power - np.where(bounces, -e * power, 0.0), size, blocks, np.flatnonzero(rows))
        in_impact |= more > 0.0
        np.add(power, A @ more, out=power, where=going)
    more = _opened(sweep, A, power, size, blocks, np.arange(len(power)))
    return power + A @ more, in_impact | (more > 0.0)


def _opened(sweep: Sweep, A, power, size, blocks: Blocks, rows) -> np.ndarray:
    """(k,) factors x >= 0 with ``A x + power >= 0`` on some rows (m,), one of both zero; 0 on others."""
    speed = np.zeros(len(power))
    speed[rows] = np.abs(power[rows]) / size[rows]
    fastest = np.maximum(blocks.largest(speed), LEAST)
    return sweep(A, power, np.zeros(len(power)), np.full(len(power), np.inf), size, fastest, blocks.starts, rows)


def brought(sweep: Sweep, A, power, target, high, in_impact, size, blocks: Blocks) -> np.ndarray:
    """(k,) factors s that bring the pairs to their normal powers."""
    fastest = np.maximum(blocks.largest(np.maximum(np.abs(power), np.abs(target)) / size), LEAST)
    low, high = np.where(in_impact, target, 0.0), np.where(in_impact, target, high)
    return sweep(A, power, low, high, size, fastest, blocks.starts, np.arange(len(power)))
