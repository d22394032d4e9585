"""Factors on the impulses of impact pairs: passes of reflections, and factors for given final velocities.

The same array operations solve pairs that are not connected as independent *blocks*, each with its own reference speed and
passes (`abd.step.impacts.restitution`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abd.potentials.sweeps import NO_FRICTION, ConeRows

Sweep = Callable[..., np.ndarray]
"""`abd.potentials.sweeps.swept`, or its device version."""

LARGEST_PASSES = 300
"""Largest number of passes; pairs that still close after them have no restitution."""
SIMULTANEOUS = 0.1
"""Smallest closing speed of a simultaneous impact, over the fastest one; slower pairs wait for a later pass."""
JAMMED = 100.0
"""Largest ratio of the speed that a single impulse causes to the fastest speed, or to that without friction. Where both ratios
are larger, prescribed motions and friction jam the bodies."""
SMALLEST_SPEED = 1e-300
"""Smallest reference speed [m/s]."""


def reflect(sweep: Sweep, A, power, slow, e, least, size, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Reflect closing pairs until none closes; return their normal powers (k,) and a mask (k,) of the pairs with an impact.

    Args:
        A: (k, k) powers per factor on the impulses; power: (k,) before; slow: (k,) least powers of pairs at rest, 0 for others.
        e: (k,) restitution of pairs that close faster than `least` (k,) [m/s]; size: (k,) of the impulses [N s].
    """
    in_impact, power = np.zeros(len(power), dtype=bool), power.copy()
    is_active = blocks.each(blocks.any(e != 0.0))
    for _ in range(LARGEST_PASSES):
        fastest = blocks.each(blocks.largest(-power / size))
        rows = is_active & (power < -SIMULTANEOUS * fastest * size)
        is_impact = rows & (power < -least * size)
        is_active = blocks.each(blocks.any(is_impact))
        rows &= is_active
        if not rows.any():
            break
        factors = _solve_opening(sweep, A, power - np.where(is_impact, -e * power, slow), size, blocks, np.flatnonzero(rows))
        in_impact |= factors > 0.0
        np.add(power, A @ factors, out=power, where=is_active)
    least_power = np.where(power < -least * size, 0.0, slow)
    factors = _solve_opening(sweep, A, power - least_power, size, blocks, np.arange(len(power)))
    return power + A @ factors, in_impact | (factors > 0.0)


def _solve_opening(sweep: Sweep, A, power, size, blocks: Blocks, rows) -> np.ndarray:
    """Return (k,) factors x >= 0 with complementary ``A x + power >= 0`` on some rows (m,), 0 on others."""
    speed = np.zeros(len(power))
    speed[rows] = np.abs(power[rows]) / size[rows]
    fastest = np.maximum(blocks.largest(speed), SMALLEST_SPEED)
    return sweep(A, power, np.zeros(len(power)), np.full(len(power), np.inf), size, fastest, blocks.starts, rows)


def solve_factors(
    sweep: Sweep, A, power, target, low, high, in_impact, size, blocks: Blocks, friction: ConeRows = NO_FRICTION,
    may_jam: np.ndarray | bool = False,
) -> np.ndarray:  # fmt: skip
    """Return (k,) factors s that give the pairs their target powers, then (2 m,) friction impulses of m pairs.

    Coulomb's law has no solution for bodies that friction jams against prescribed motions. Their blocks have no added friction.
    may_jam: (w,) bool, blocks with prescribed motions."""
    count = len(size)
    fastest = np.maximum(blocks.largest(np.maximum(np.abs(power[:count]), np.abs(target)) / size), SMALLEST_SPEED)
    low, high = (np.where(in_impact, target, bound) for bound in (low, high))
    pairs = size, fastest, blocks.starts, np.arange(count)
    out = sweep(A, power, low, high, *pairs, friction)
    speed = A.diagonal()[:count] / size
    may_jam = may_jam & ~(blocks.largest(out[:count] * speed) <= JAMMED * fastest)
    if not may_jam.any():
        return out
    without = sweep(A[:count, :count], power[:count], low, high, *pairs)
    jams = blocks.each(may_jam & ~(blocks.largest(out[:count] * speed) <= JAMMED * blocks.largest(np.abs(without) * speed)))
    return np.where(np.append(jams, np.repeat(jams[friction.pair], 2)), np.append(without, np.zeros(len(out) - count)), out)


@dataclass(frozen=True)
class Blocks:
    """k pairs of bodies, sorted by component of connected bodies; a *block* is the pairs or the bodies of one of w components.

    Attributes:
        starts: (w + 1,) first pair of every block, none of them empty, and k.
        labels: (w,) ascending numbers of the components.
    """

    starts: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, of_pairs: np.ndarray) -> Blocks:
        """Return the blocks of pairs with the components `of_pairs` (k,), which are sorted."""
        labels, starts = np.unique(of_pairs, return_index=True)
        return cls(np.append(starts, len(of_pairs)), labels)

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def number(self) -> np.ndarray:
        """(k,) block of every pair."""
        return self.each(np.arange(self.count))

    def each(self, values: np.ndarray) -> np.ndarray:
        """Return (k,) values of the blocks (w,) by pairs."""
        return np.repeat(values, np.diff(self.starts))

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return (w,) largest values (k,) of the blocks."""
        return np.maximum.reduceat(values, self.starts[:-1])

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """Return (w,) bool, blocks with chosen pairs (k,)."""
        return np.logical_or.reduceat(chosen, self.starts[:-1])

    def places(self, components: np.ndarray) -> np.ndarray:
        """Return (m,) blocks of components (m,), w without a block."""
        at = np.minimum(np.searchsorted(self.labels, components), self.count - 1)
        return np.where(self.labels[at] == components, at, self.count)

    def sums(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return (w,) sums of values (m,) of the blocks at `places` (m,), in their order."""
        return np.bincount(places, weights=values, minlength=self.count + 1)[: self.count]
