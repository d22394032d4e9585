"""Linear solvers of a Newton iteration, H d = -g: their interface, and the direct solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import warp as wp

from abd.backends.linear.conjugate_gradients import ConjugateGradients
from abd.backends.linear.linear import LinearSolver
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.step import control


class Solver(Protocol):
    """Solver of H x = -g, with the blocks of H in the arrays of the terms.

    The constructor takes the patterns (`LinearSolver`) and the control data (`cuda_kernels.step.control.Control`). All methods
    only launch kernels. `CONTRIBUTING.md` has a recipe for a new solver.

    Attributes:
        exact: whether solves are exact to rounding; others use the forcing tolerance first and may be tightened.
        sees_joints: whether corrections include the coupling by joints, so that they can close exact joints.
    """

    exact: bool
    sees_joints: bool

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Set the matrix: diagonal blocks (n, 12, 12), and off-diagonal blocks with the capacity for their pairs."""

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        """Compute x (n, 12) for a gradient (n, 12)."""

    def launch_tighten(self, x: wp.array) -> None:
        """Continue the last solve to the tightest tolerance."""

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        """Compute x for another gradient with the same matrix."""


class Direct:
    """Block Cholesky factor of all blocks, an implementation of `abd.backends.linear.solver.Solver`."""

    exact = sees_joints = True

    def __init__(self, linear: LinearSolver, decisions: control.Control):
        self.linear, self.control = linear, decisions

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Set the sources of the blocks; `launch_solve` factors them."""
        linear = self.linear
        for which in range(1, len(couplings)) if linear.uses_loose_pairs else ():
            linear.factor.launch_find(which, *couplings[which])
        linear.factor.set_sources(diagonal, couplings, linear.islands.done)

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        """Factor and solve; a pivot that is not positive is a failure."""
        linear = self.linear
        linear.factor.compute()
        linear.factor.solve(-1.0, gradient, x, linear.dots)
        linear.device.launch(control.check_pivots, 1, self.control, linear.factor.factor.any_failed)

    def launch_tighten(self, x: wp.array) -> None:
        """Do nothing: solves are exact."""

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        self.linear.factor.solve(-1.0, gradient, x, self.linear.dots)


SOLVERS: dict[str, Callable[[LinearSolver, control.Control], Solver]] = {
    "direct": Direct,
    "pcg": ConjugateGradients,
}
"""Solvers by their name in `Choice.solver` and in scenes (`solver.linear_solver`)."""
