"""Preconditioned conjugate gradients on 12x12 blocks, with a stopping test per island on the device.

The preconditioner is the factor of the blocks of bodies and joints, or of the diagonal blocks only.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ONE_THREAD
from abd.backends.device.graphs import Graphs
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.linear import krylov, residuals
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums
from cuda_kernels.step import control

MOST_ITERATIONS = 10_000
"""Maximum number of iterations of a solve; the device runs them without the host, so that they cannot be interrupted."""


class ConjugateGradients:
    """Implementation of `abd.backends.linear.solver.Solver`."""

    exact = False

    def __init__(self, linear: LinearSolver, graphs: Graphs, numbers: control.Control):
        self.linear, self.device, self.graphs, self.control = linear, linear.device, graphs, numbers
        d, n, capacity = self.device, linear.n, max(linear.n, 1)
        self.start, self.rho, self.target, self.curvature, self.rho_next = (d.zeros(capacity, wp.float64) for _ in range(5))
        self.r, self.z, self.p, self.q = (d.zeros((n, 12), wp.float64) for _ in range(4))
        self.product = d.zeros(n, wp.float64)
        self.inverse: wp.array | None = None
        self.running = numbers.flags[control.RUNNING : control.RUNNING + 1]
        self.max_iterations = min(100 + 12 * n, MOST_ITERATIONS)

    @property
    def sees_joints(self) -> bool:
        """Whether the preconditioner contains the blocks of joints."""
        return self.linear.joined

    def reserve(self) -> None:
        """Allocate inverse blocks for a diagonal preconditioner."""
        if self.linear.static.is_diagonal and self.inverse is None:
            shape = self.linear.n, 12, 12
            self.inverse, self._capacity = (self.device.zeros(shape, wp.float64) for _ in range(2))

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Factor the preconditioner and gather the blocks of the matrix."""
        static = self.linear.static
        static.set_sources(diagonal, couplings, self.linear.islands.done)
        static.compute()
        self._matrix = self.linear.gathered(diagonal, couplings)

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        self._start(gradient, x, control.FORCING)

    def launch_tighten(self, x: wp.array) -> None:
        launch, n = self.device.launch, self.linear.n
        launch(control.set_flag, 1, self.control, control.SOLVE_ITERATIONS, 0)
        launch(residuals.resume_residuals, n, self.control, self.start, self.rho, self.target, control.TIGHTEST, grain=ONE_THREAD)
        self._iterate(x)

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        self._start(gradient, x, control.CORRECTION)

    def _start(self, gradient: wp.array, x: wp.array, tolerance: int) -> None:
        linear, device, c = self.linear, self.device, self.control
        launch, n, islands, rows = device.launch, linear.n, linear.islands, device.rows
        static = linear.static
        launch(krylov.begin, n, islands.done, rows(gradient), rows(x), rows(self.r), grain=1024)
        # bodies that are done write no product; excluded bodies may belong to a moving island
        device.fill(self.product)
        self.reserve()
        if static.is_diagonal:
            static.invert(self._capacity, self.inverse)
        static.solve(1.0, self.r, self.z, self.product)
        launch(krylov.aim, n, islands.done, rows(self.z), rows(self.p), grain=1024)
        islands.reduce(self.product, sums.SUM, self.start)
        device.copy(self.rho, self.start)
        launch(control.set_flag, 1, c, control.SOLVE_ITERATIONS, 0)
        launch(residuals.begin_residuals, n, c, self.start, self.target, tolerance, grain=ONE_THREAD)
        # corrections do not count: the choice of the solver is about the Newton system
        self._iterate(x, counts=tolerance == control.FORCING)

    def _iterate(self, x: wp.array, counts: bool = True) -> None:
        linear, device, c = self.linear, self.device, self.control
        launch, n, islands, rows = device.launch, linear.n, linear.islands, device.rows
        island, done = islands.island, islands.done
        r, z, p, q, product = rows(self.r), rows(self.z), rows(self.p), rows(self.q), self.product

        def iterate() -> None:
            launch(residuals.count_product, 1, c, int(counts))
            launch(krylov.multiply, n, done, *self._matrix, p, q, product, grain=64)
            islands.reduce(product, sums.SUM, self.curvature)
            if linear.static.is_diagonal:
                launch(
                    krylov.descend_and_divide, n, done, island, self.rho, self.curvature, p, q, rows(x), r,
                    rows(self.inverse), z, product, grain=256,
                )  # fmt: skip
            else:
                launch(krylov.descend, n, done, island, self.rho, self.curvature, p, q, rows(x), r, grain=1024)
                linear.static.solve(1.0, self.r, self.z, product)
            islands.reduce(product, sums.SUM, self.rho_next)
            launch(krylov.turn, n, done, island, self.rho_next, self.rho, z, p, grain=2048)
            launch(
                residuals.judge_residuals,
                n, c, self.rho, self.rho_next, self.curvature, self.target, self.max_iterations, grain=ONE_THREAD,
            )  # fmt: skip

        self.graphs.repeat(self.running, iterate)
