"""Direct solver: block Cholesky factor of all blocks."""

from __future__ import annotations

import warp as wp

from abd.backends.device.graphs import Graphs
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.step import control


class Direct:
    """Implementation of `abd.backends.linear.solver.Solver`."""

    exact = sees_joints = True

    def __init__(self, linear: LinearSolver, graphs: Graphs, numbers: control.Control):
        self.linear, self.control = linear, numbers

    def reserve(self) -> None:
        """Allocate nothing: the factor has its capacity."""

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Set the sources of the blocks; `launch_solve` factors them."""
        linear = self.linear
        for which in range(1, len(couplings)) if linear.uses_loose_pairs else ():
            linear.factor.launch_find(which, *couplings[which])
        linear.factor.set_sources(diagonal, couplings, linear.islands.done)

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        """Factor and solve; a pivot that is not positive is a failure."""
        linear = self.linear
        linear.factor.compute_and_solve(-1.0, gradient, x, linear.dots)
        linear.device.launch(control.check_pivots, 1, self.control, linear.factor.factor.any_failed)

    def launch_tighten(self, x: wp.array) -> None:
        """Do nothing: solves are exact."""

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        self.linear.factor.solve(-1.0, gradient, x, self.linear.dots)
