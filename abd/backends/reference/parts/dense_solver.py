"""The linear system of a Newton iteration, H d = -g, as a dense matrix per island."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import warp as wp

from abd.errors import StepFailure
from cuda_kernels.step import control


class DenseSolver:
    """Solver by dense Cholesky, an implementation of `abd.backends.linear.solver.Solver` and `abd.backends.protocol.Linear`.

    Attributes:
        direction, step: (n, 12) solution and correction; failed: (n,) 1 for bodies of islands that could not be
            factorised.
    """

    exact = sees_joints = known = True

    def __init__(self, backend):
        self.inactive, self.islands, self.device, n = backend.inactive, backend.islands, backend.device, backend.n
        self.direction, self.step = (self.device.zeros((n, 12), wp.float64) for _ in range(2))
        self.failed, self.any_failed = self.device.zeros(n, wp.int32), self.device.zeros(1, wp.int32)
        self.bodies = self.device.upload(np.arange(n), wp.int32)
        self.control: control.Control | None = None

    def describe(self) -> dict:
        return {"name": "dense Cholesky", "why": "the only one of this backend"}

    def launch_factor(self, blocks: np.ndarray, couplings: tuple) -> None:
        """Factor the blocks (n, n, 12, 12) of every island that is not done."""
        takes_part = self.inactive.mobile & (self.islands.done.numpy() == 0)
        self.factors, failed = [], self.failed.numpy()
        failed[:] = 0
        for island in range(self.islands.count):
            # immobile bodies belong to no particular island
            bodies = np.flatnonzero((self.islands.host == island) & takes_part)
            size = 12 * len(bodies)
            H = blocks[np.ix_(bodies, bodies)].transpose(0, 2, 1, 3).reshape(size, size)
            try:
                self.factors.append((bodies, scipy.linalg.cho_factor(H, lower=True)))
            except (scipy.linalg.LinAlgError, ValueError):
                failed[bodies] = 1
        self.device.fill(self.any_failed, int(failed.any()))

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        self.launch_correct(gradient, x)
        self.device.launch(control.check_pivots, 1, self.control, self.any_failed)

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        self.device.fill(x)
        for bodies, factor in self.factors:
            x.numpy()[bodies] = scipy.linalg.cho_solve(factor, -gradient.numpy()[bodies].ravel()).reshape(-1, 12)

    def check(self) -> None:
        """Check the last factors.

        Raises:
            StepFailure: a matrix was not positive definite or not finite.
        """
        failed = self.failed.numpy() != 0
        if failed.any():
            raise StepFailure("not_positive_definite", "the linear system could not be factorised", concerned=failed)
