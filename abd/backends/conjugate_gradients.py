"""Preconditioned conjugate gradients on 12x12 blocks; every island runs its own, and stops on its own."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.cholesky import Cholesky
from abd.backends.device import Device
from abd.backends.islands import Islands
from abd.errors import StepFailure
from cuda_kernels import krylov, sums

LOOK_EVERY = 16
"""Iterations between two looks at the residual on CUDA."""


class ConjugateGradients:
    """Vectors of the iteration for n bodies; the preconditioner comes with each call."""

    def __init__(self, device: Device, n: int, islands: Islands):
        self.device, self.n, self.islands = device, n, islands
        self.r, self.z, self.p, self.q = (device.zeros((n, 12), wp.float64) for _ in range(4))
        self.product = device.zeros(n, wp.float64)
        self.max_iterations = 100 + 12 * n

    def solve(self, matrix: tuple, gradient, x, factor: Cholesky, tolerance) -> int:
        """Fill x (n, 12) with -H^-1 gradient; returns the number of iterations.

        Args:
            matrix: arguments of `cuda_kernels.krylov.multiply` that say what H is.
            factor: preconditioner M, factored already.
            tolerance: of sqrt(r . M^-1 r) relative to its start; one number, or one per island.

        Raises:
            StepFailure: no convergence, or numbers that are not finite.
        """
        device, launch, n, islands = self.device, self.device.launch, self.n, self.islands
        rows, island, done = device.rows, islands.island, islands.done
        r, z, p, q, product = rows(self.r), rows(self.z), rows(self.p), rows(self.q), self.product
        x = rows(x)
        launch(krylov.begin, n, done, rows(gradient), x, r, grain=1024)
        factor.solve(1.0, self.r, self.z, product)
        launch(krylov.aim, n, done, z, p, grain=1024)
        rz, fresh, pq = (islands.scalars(name) for name in ("rz", "fresh", "pq"))
        islands.reduce(product, sums.SUM, rz)
        running = ~islands.settled
        start = device.read(rz, islands.count)
        if not np.isfinite(start[running]).all():
            raise StepFailure("not_finite", "the gradient is not finite")
        goal = np.square(tolerance) * start
        if (start[running] <= 0.0).all():
            return 0
        every = 1 if device.is_cpu else LOOK_EVERY
        for iteration in range(1, self.max_iterations + 1):
            launch(krylov.multiply, n, done, *matrix, p, q, product, grain=64)
            islands.reduce(product, sums.SUM, pq)
            launch(krylov.descend, n, done, island, rz, pq, p, q, x, r, grain=1024)
            factor.solve(1.0, self.r, self.z, product)
            islands.reduce(product, sums.SUM, fresh)
            if iteration % every == 0:
                left = device.read(fresh, islands.count)
                if not np.isfinite(left[running]).all():
                    raise StepFailure("not_finite", f"conjugate gradients broke down in iteration {iteration}")
                if (left <= goal)[running].all():
                    return iteration
            launch(krylov.turn, n, done, island, fresh, rz, z, p, grain=2048)
            rz, fresh = fresh, rz
        raise StepFailure(
            "linear_solver",
            f"conjugate gradients did not reach their tolerance in {self.max_iterations} iterations; "
            "use solver.linear_solver = 'direct'",
        )
