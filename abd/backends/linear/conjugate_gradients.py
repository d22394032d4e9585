"""Vectors of preconditioned conjugate gradients on 12x12 blocks (`abd.backends.recorded.linear_solves` runs them)."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.linear.cholesky import Cholesky
from abd.backends.warp.islands import Islands

DOUBT_EVERY = 64
"""Iterations between two looks at the curvature along the directions: without any they would go on for nothing."""


MOST_ITERATIONS = 10_000
"""Of a solve, which a device does without the host: nobody could interrupt it meanwhile."""


class ConjugateGradients:
    """Vectors of the iteration for n bodies; the preconditioner comes with each call."""

    def __init__(self, device: Device, n: int, islands: Islands):
        self.device, self.n, self.islands = device, n, islands
        self.r, self.z, self.p, self.q = (device.zeros((n, 12), wp.float64) for _ in range(4))
        self.product = device.zeros(n, wp.float64)
        self.inverse: wp.array | None = None
        self.max_iterations = min(100 + 12 * n, MOST_ITERATIONS)

    def prepare(self, factor: Cholesky) -> None:
        """Invert the blocks of a preconditioner that has no others: `inverse` (n, 12, 12)."""
        self.reserve(factor)
        if factor.is_diagonal:
            factor.invert(self._room, self.inverse)

    def reserve(self, factor: Cholesky) -> None:
        """Allocate what such a preconditioner takes."""
        if factor.is_diagonal and self.inverse is None:
            self.inverse, self._room = (self.device.zeros((self.n, 12, 12), wp.float64) for _ in range(2))
