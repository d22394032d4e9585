"""Available linear solvers, and the solves of an iteration."""

from __future__ import annotations

from collections.abc import Callable

import warp as wp

from abd.backends.device.graphs import Graphs
from abd.backends.linear.conjugate_gradients import ConjugateGradients
from abd.backends.linear.direct import Direct
from abd.backends.linear.linear import LinearSolver
from abd.backends.linear.solver import Solver
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.step import control

SOLVERS: dict[str, Callable[[LinearSolver, Graphs, control.Control], Solver]] = {
    "direct": Direct,
    "pcg": ConjugateGradients,
}
"""Solvers by their name in `Choice.solver` and in scenes (`solver.linear_solver`)."""


class Solves:
    """Solves of the system of one `LinearSolver` within an iteration.

    Args:
        numbers: control data with tolerances and flags (`cuda_kernels.step.control`).
    """

    def __init__(self, linear: LinearSolver, graphs: Graphs, numbers: control.Control):
        self.linear, self._made = linear, {}
        self._make = lambda name: SOLVERS[name](linear, graphs, numbers)

    @property
    def solver(self) -> Solver:
        name = self.linear.choice.solver
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def reserve(self, has_exact: bool) -> None:
        """Allocate arrays of branches that may not run while launches are recorded; call it after the solver is chosen."""
        self.solver.reserve()
        if has_exact:
            self.linear.reserve_step()

    def launch_solve(self, gradient: wp.array, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Solve for the direction.

        Args:
            gradient: (n, 12); diagonal: (n, 12, 12).
            couplings: off-diagonal blocks, joints first, with the capacity for their pairs.
        """
        if len(self.linear.bodies):
            self.solver.launch_factor(diagonal, couplings)
            self.solver.launch_solve(gradient, self.linear.direction)

    def launch_tighten(self) -> None:
        self.solver.launch_tighten(self.linear.direction)

    def launch_correct(self, gradient: wp.array) -> wp.array:
        """Return the solution (n, 12) for another gradient (n, 12), with the matrix of the last solve."""
        self.solver.launch_correct(gradient, self.linear.step)
        return self.linear.step
