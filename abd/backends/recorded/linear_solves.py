"""The linear solves of a recorded Newton iteration: what `LinearSolver` decides on the host is decided before, for all
pairs that may come into contact, and conjugate gradients stop by themselves.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ALONE
from abd.backends.device.graphs import Graphs
from abd.backends.linear.conjugate_gradients import DOUBT_EVERY, ConjugateGradients
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.linear import krylov, residuals
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums
from cuda_kernels.step import control


class LinearSolves:
    """Solves of one `LinearSolver` within a recorded iteration.

    Args:
        numbers: what decides, flags among it (`cuda_kernels.step.control`).
    """

    def __init__(self, linear: LinearSolver, graphs: Graphs, numbers: control.Control):
        self.linear, self.device, self.graphs, self.control = linear, linear.device, graphs, numbers
        d, room = self.device, max(linear.n, 1)
        self.start, self.left, self.goal, self.curvature, self.fresh = (d.zeros(room, wp.float64) for _ in range(5))
        self.gradients: ConjugateGradients | None = None
        self.running = numbers.flags[control.RUNNING : control.RUNNING + 1]

    def reserve(self, has_exact: bool) -> None:
        """Allocate what a branch may need that has not run when launches are recorded: to be called when the solver has
        chosen."""
        linear = self.linear
        if not linear.choice.direct:
            if self.gradients is None:
                self.gradients = ConjugateGradients(self.device, linear.n, linear.islands)
            self.gradients.reserve(linear.static)
        if has_exact:
            linear.reserve_step()

    def launch_solve(self, gradient, diagonal, couplings: list[tuple[Coupling, int]]) -> None:
        """Fill the solver's direction; conjugate gradients down to the forcing tolerance.

        Args:
            gradient: (n, 12); diagonal: (n, 12, 12).
            couplings: off-diagonal blocks of joints and of what comes and goes, with the rooms of their pairs.
        """
        linear = self.linear
        if len(linear.bodies) == 0:
            return
        done = linear.islands.done
        for which in range(1, len(couplings)) if linear.uses_loose_pairs else ():
            linear.factor.launch_find(which, *couplings[which])
        if linear.choice.direct:
            linear.factor.take(diagonal, couplings, done)
            linear.factor.compute_and_solve(-1.0, gradient, linear.direction, linear.dots)
            self.device.launch(control.check_pivots, 1, self.control, linear.factor.factor.any_failed)
            return
        linear.static.take(diagonal, couplings, done)
        linear.static.compute()
        self._matrix = linear.gathered(diagonal, couplings)
        self._begin(gradient, linear.direction, control.FORCING)

    def launch_tighten(self) -> None:
        """Bring the last solve to the tightest tolerance."""
        launch, n = self.device.launch, self.linear.n
        launch(control.set_flag, 1, self.control, control.PASSED, 0)
        launch(residuals.resume_residuals, n, self.control, self.start, self.left, self.goal, control.TIGHTEST, grain=ALONE)
        self._iterate(self.linear.direction)

    def launch_correct(self, gradient) -> None:
        """Add the solution for another gradient (n, 12) to the direction, with the matrix of the last solve."""
        linear = self.linear
        step = linear.step
        if linear.choice.direct:
            linear.factor.solve(-1.0, gradient, step, linear.dots)
        else:
            self._begin(gradient, step, control.CORRECTION)
        rows = self.device.rows
        self.device.launch(krylov.add, linear.n, linear.islands.done, rows(step), rows(linear.direction))

    def _begin(self, gradient, x, tolerance: int) -> None:
        linear, device, c = self.linear, self.device, self.control
        launch, n, islands, rows = device.launch, linear.n, linear.islands, device.rows
        g, factor = self.gradients, linear.static
        launch(krylov.begin, n, islands.done, rows(gradient), rows(x), rows(g.r), grain=1024)
        g.prepare(factor)
        factor.solve(1.0, g.r, g.z, g.product)
        launch(krylov.aim, n, islands.done, rows(g.z), rows(g.p), grain=1024)
        islands.reduce(g.product, sums.SUM, self.start)
        self.device.copy(self.left, self.start)
        launch(control.set_flag, 1, c, control.PASSED, 0)
        launch(residuals.begin_residuals, n, c, self.start, self.goal, tolerance, grain=ALONE)
        # what closes exact joints is no part of the system that the choice of the solver is about
        self._iterate(x, counts=tolerance == control.FORCING)

    def _iterate(self, x, counts: bool = True) -> None:
        linear, device, c, g = self.linear, self.device, self.control, self.gradients
        launch, n, islands, rows = device.launch, linear.n, linear.islands, device.rows
        island, done = islands.island, islands.done
        r, z, p, q, product = rows(g.r), rows(g.z), rows(g.p), rows(g.q), g.product

        def iterate() -> None:
            launch(residuals.count_product, 1, c, int(counts))
            launch(krylov.multiply, n, done, *self._matrix, p, q, product, grain=64)
            islands.reduce(product, sums.SUM, self.curvature)
            if linear.static.is_diagonal:
                launch(
                    krylov.descend_and_divide, n, done, island, self.left, self.curvature, p, q, rows(x), r,
                    rows(g.inverse), z, product, grain=256,
                )  # fmt: skip
            else:
                launch(krylov.descend, n, done, island, self.left, self.curvature, p, q, rows(x), r, grain=1024)
                linear.static.solve(1.0, g.r, g.z, product)
            islands.reduce(product, sums.SUM, self.fresh)
            launch(krylov.turn, n, done, island, self.fresh, self.left, z, p, grain=2048)
            launch(
                residuals.judge_residuals,
                n, c, self.left, self.fresh, self.curvature, self.goal, DOUBT_EVERY, g.max_iterations, grain=ALONE,
            )  # fmt: skip

        self.graphs.repeat(self.running, iterate)
