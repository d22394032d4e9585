"""Preconditioned conjugate gradients on 12x12 blocks, with a stopping test per island on the device.

The preconditioner is the factor of the blocks of bodies and joints, or of the diagonal blocks only.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ONE_THREAD
from abd.backends.device.upload import allocate_struct
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.linear import krylov, residuals
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.step import control

MOST_ITERATIONS = 10_000
"""Maximum number of iterations of a solve; the device runs them without the host, so that they cannot be interrupted."""


class ConjugateGradients:
    """Implementation of `abd.backends.linear.solver.Solver`."""

    exact = False

    def __init__(self, linear: LinearSolver, decisions: control.Control):
        self.linear, self.device, self.control = linear, linear.device, decisions
        d, n, capacity = self.device, linear.n, max(linear.n, 1)
        self.of_islands = allocate_struct(residuals.Islands, capacity, d)
        self.r, self.z, self.w, self.p, self.q = (d.zeros((n, 12), wp.float64) for _ in range(5))
        self.products, self.dots = d.zeros(n, wp.vec2d), d.zeros(n, wp.float64)
        self.inverse, self._capacity = (d.zeros((n, 12, 12), wp.float64) for _ in range(2))
        self.running = decisions.flags[control.RUNNING : control.RUNNING + 1]
        self.max_iterations = min(100 + 12 * n, MOST_ITERATIONS)

    @property
    def sees_joints(self) -> bool:
        """Whether the preconditioner contains the blocks of joints."""
        return self.linear.joined

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Factor the preconditioner and gather the blocks of the matrix."""
        static = self.linear.static
        static.set_sources(diagonal, couplings, self.linear.islands.done)
        static.compute()
        self._matrix = self.linear.gathered(diagonal, couplings)

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        self._start(gradient, x)
        self._iterate(x, control.FORCING)

    def launch_tighten(self, x: wp.array) -> None:
        self._iterate(x, control.TIGHTEST, is_new=False)

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        self._start(gradient, x)
        # reports count the iterations of the Newton system only
        self._iterate(x, control.CORRECTION, is_counted=False)

    def _start(self, gradient: wp.array, x: wp.array) -> None:
        linear, device, static, rows = self.linear, self.device, self.linear.static, self.device.rows
        if static.is_diagonal:
            static.invert(self._capacity, self.inverse)
        inverse, vectors = (rows(self.inverse), int(static.is_diagonal)), (x, self.r, self.z, self.p, self.q)
        device.launch(
            krylov.begin, linear.n, linear.islands.done, rows(gradient), *inverse, *map(rows, vectors), grain=1024
        )
        # bodies that are done write no products; excluded bodies may belong to a moving island
        device.fill(self.products)
        if not static.is_diagonal:
            static.solve(1.0, self.r, self.z, self.dots)

    def _iterate(self, x: wp.array, tolerance: int, is_new: bool = True, is_counted: bool = True) -> None:
        """Iterate to a relative tolerance, given as an index of the control numbers."""
        linear, c, k = self.linear, self.control, self.of_islands
        launch, n, islands, rows = self.device.launch, linear.n, linear.islands, self.device.rows
        r, z, w, p, q = (rows(one) for one in (self.r, self.z, self.w, self.p, self.q))
        inverse, has_inverse = rows(self.inverse), int(linear.static.is_diagonal)
        vectors = islands.done, islands.island, k.a, k.b, z, w, p, q, rows(x), r, inverse, has_inverse
        launch(residuals.run_islands, n, c, k, int(is_new), grain=ONE_THREAD)

        def iterate() -> None:
            launch(krylov.multiply_rows, n, islands.done, *self._matrix, z, w, grain=64)
            launch(krylov.add_columns, n, islands.done, *self._matrix[1:], z, r, w, self.products, grain=256)
            islands.launch_reduction(
                residuals.judge_residuals,
                self.products, c, k, tolerance, self.max_iterations, int(is_counted),
            )  # fmt: skip
            launch(krylov.descend, n, *vectors, grain=256)
            if not has_inverse:
                linear.static.solve(1.0, self.r, self.z, self.dots)

        self.device.repeat(self.running, iterate)
