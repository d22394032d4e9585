"""Factors on the impulses of impact pairs: passes of reflections, and factors for given final velocities
(`abd.step.impacts.restitution`). Blocks of pairs are independent: each has its own reference speed and passes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.step.impacts.blocks import Blocks

Sweep = Callable[..., np.ndarray]
"""`abd.potentials.sweeps.swept`, or its device version."""

LARGEST_PASSES = 300
"""Largest number of passes; pairs that still close after them have no restitution."""
CLOSING = 1e-7
"""Smallest closing speed over the fastest one."""
SIMULTANEOUS = 0.1
"""Smallest closing speed of a simultaneous impact, over the fastest one; slower pairs wait for a later pass."""
SMALLEST_SPEED = 1e-300
"""Smallest reference speed [m/s]."""


def reflect(sweep: Sweep, A, power, e, least, size, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Reflect closing pairs until none closes; return their normal powers (k,) and a mask (k,) of the pairs with an impact.

    Args:
        A: (k, k) powers per factor on the impulses; power: (k,) before.
        e: (k,) restitution of pairs that close faster than `least` (k,) [m/s]; size: (k,) of the impulses [N s].
    """
    in_impact, power = np.zeros(len(power), dtype=bool), power.copy()
    threshold = -CLOSING * blocks.each(np.maximum(blocks.largest(np.abs(power) / size), SMALLEST_SPEED)) * size
    is_active = blocks.each(blocks.any(e != 0.0))
    for _ in range(LARGEST_PASSES):
        fastest = blocks.each(blocks.largest(-power / size))
        rows = is_active & (power < np.minimum(threshold, -SIMULTANEOUS * fastest * size))
        is_impact = rows & (power < -least * size)
        is_active = blocks.each(blocks.any(is_impact))
        rows &= is_active
        if not rows.any():
            break
        factors = _solve_opening(sweep, A, power - np.where(is_impact, -e * power, 0.0), size, blocks, np.flatnonzero(rows))
        in_impact |= factors > 0.0
        np.add(power, A @ factors, out=power, where=is_active)
    factors = _solve_opening(sweep, A, power, size, blocks, np.arange(len(power)))
    return power + A @ factors, in_impact | (factors > 0.0)


def _solve_opening(sweep: Sweep, A, power, size, blocks: Blocks, rows) -> np.ndarray:
    """Return (k,) factors x >= 0 with complementary ``A x + power >= 0`` on some rows (m,), 0 on others."""
    speed = np.zeros(len(power))
    speed[rows] = np.abs(power[rows]) / size[rows]
    fastest = np.maximum(blocks.largest(speed), SMALLEST_SPEED)
    return sweep(A, power, np.zeros(len(power)), np.full(len(power), np.inf), size, fastest, blocks.starts, rows)


def solve_factors(sweep: Sweep, A, power, target, high, in_impact, size, blocks: Blocks) -> np.ndarray:
    """Return (k,) factors s that give the pairs their target powers."""
    fastest = np.maximum(blocks.largest(np.maximum(np.abs(power), np.abs(target)) / size), SMALLEST_SPEED)
    low, high = np.where(in_impact, target, 0.0), np.where(in_impact, target, high)
    return sweep(A, power, low, high, size, fastest, blocks.starts, np.arange(len(power)))
