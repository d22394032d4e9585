"""Preconditioned conjugate gradients on 12x12 blocks; every island runs its own, and stops on its own."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.linear.cholesky import Cholesky
from abd.backends.warp.islands import Islands
from abd.errors import StepFailure
from cuda_kernels.linear import krylov
from cuda_kernels.parallel import sums

LOOK_EVERY = 16
"""Iterations between two looks at the residual on CUDA."""
DOUBT_EVERY = 64
"""Iterations between two looks at the curvature along the directions: without any they would go on for nothing."""


class ConjugateGradients:
    """Vectors of the iteration for n bodies; the preconditioner comes with each call."""

    def __init__(self, device: Device, n: int, islands: Islands):
        self.device, self.n, self.islands = device, n, islands
        self.r, self.z, self.p, self.q = (device.zeros((n, 12), wp.float64) for _ in range(4))
        self.product = device.zeros(n, wp.float64)
        self.inverse: wp.array | None = None
        self.max_iterations = 100 + 12 * n

    def solve(self, matrix: tuple, gradient, x, factor: Cholesky, tolerance: float) -> int:
        """Fill x (n, 12) with -H^-1 gradient; returns the number of iterations.

        Args:
            matrix: arguments of `cuda_kernels.linear.krylov.multiply` that say what H is.
            factor: preconditioner M, factored already.
            tolerance: of sqrt(r . M^-1 r) relative to its start, in every island.

        Raises:
            StepFailure: no convergence, or numbers that are not finite.
        """
        launch, n, islands, rows = self.device.launch, self.n, self.islands, self.device.rows
        self._matrix, self._factor, self._x = matrix, factor, rows(x)
        launch(krylov.begin, n, islands.done, rows(gradient), self._x, rows(self.r), grain=1024)
        self.prepare(factor)
        factor.solve(1.0, self.r, self.z, self.product)
        launch(krylov.aim, n, islands.done, rows(self.z), rows(self.p), grain=1024)
        self._rz, self._fresh = islands.scalars("rz"), islands.scalars("fresh")
        islands.reduce(self.product, sums.SUM, self._rz)
        self._start = self._left = self.device.read(self._rz, islands.count)
        if not np.isfinite(self._start[~islands.settled]).all():
            raise StepFailure("not_finite", "the gradient is not finite")
        return self.resume(tolerance)

    def prepare(self, factor: Cholesky) -> None:
        """Invert the blocks of a preconditioner that has no others: `inverse` (n, 12, 12)."""
        self.reserve(factor)
        if factor.is_diagonal:
            factor.invert(self._room, self.inverse)

    def reserve(self, factor: Cholesky) -> None:
        """Allocate what such a preconditioner takes."""
        if factor.is_diagonal and self.inverse is None:
            self.inverse, self._room = (self.device.zeros((self.n, 12, 12), wp.float64) for _ in range(2))

    def resume(self, tolerance: float) -> int:
        """Go on where the last call ended, down to a smaller tolerance; returns the number of further iterations.

        Raises:
            StepFailure: as `solve`.
        """
        device, launch, n, islands, rows = self.device, self.device.launch, self.n, self.islands, self.device.rows
        island, done, product = islands.island, islands.done, self.product
        r, z, p, q, x = rows(self.r), rows(self.z), rows(self.p), rows(self.q), self._x
        running, goal = ~islands.settled, tolerance**2 * self._start
        if (self._left <= goal)[running].all():
            return 0
        pq = islands.scalars("pq")
        every = LOOK_EVERY if device.wide else 1
        for iteration in range(1, self.max_iterations + 1):
            rz, fresh = self._rz, self._fresh
            launch(krylov.multiply, n, done, *self._matrix, p, q, product, grain=64)
            islands.reduce(product, sums.SUM, pq)
            if self._factor.is_diagonal:
                launch(
                    krylov.descend_and_divide, n, done, island, rz, pq, p, q, x, r, rows(self.inverse), z, product,
                    grain=256,
                )  # fmt: skip
            else:
                launch(krylov.descend, n, done, island, rz, pq, p, q, x, r, grain=1024)
                self._factor.solve(1.0, self.r, self.z, product)
            islands.reduce(product, sums.SUM, fresh)
            launch(krylov.turn, n, done, island, fresh, rz, z, p, grain=2048)
            self._rz, self._fresh = fresh, rz
            if iteration % every == 0:
                self._left = device.read(fresh, islands.count)
                if not np.isfinite(self._left[running]).all():
                    raise StepFailure("not_finite", f"conjugate gradients broke down in iteration {iteration}")
                if (self._left <= goal)[running].all():
                    return iteration
            if iteration % DOUBT_EVERY == 0:
                stuck = running & ~(self._left <= goal) & ~(device.read(pq, islands.count) > 0.0)
                if stuck.any():
                    raise StepFailure(
                        "not_positive_definite",
                        f"conjugate gradients found no positive curvature in iteration {iteration}",
                    )
        raise StepFailure(
            "linear_solver",
            f"conjugate gradients did not reach {tolerance:g} in {self.max_iterations} iterations; "
            "use solver.linear_solver = 'direct'",
        )
