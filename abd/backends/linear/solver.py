"""Protocol of a solver for the linear system of a Newton iteration, H d = -g."""

from __future__ import annotations

from typing import Protocol

import warp as wp

from cuda_kernels.linear.couplings import Coupling


class Solver(Protocol):
    """Solver of H x = -g, with the blocks of H in the arrays of the terms.

    The constructor takes the patterns (`LinearSolver`), the recorded graphs for loops and the control data
    (`cuda_kernels.step.control.Control`). All methods except `reserve` only launch kernels. `CONTRIBUTING.md` has a recipe for a
    new solver.

    Attributes:
        exact: whether solves are exact to rounding; others use the forcing tolerance first and may be tightened.
        sees_joints: whether corrections include the coupling by joints, so that they can close exact joints.
    """

    exact: bool
    sees_joints: bool

    def reserve(self) -> None:
        """Allocate arrays of launches, after this solver is chosen and before launches are recorded."""

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Set the matrix: diagonal blocks (n, 12, 12), and off-diagonal blocks with the capacity for their pairs."""

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        """Compute x (n, 12) for a gradient (n, 12)."""

    def launch_tighten(self, x: wp.array) -> None:
        """Continue the last solve to the tightest tolerance."""

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        """Compute x for another gradient with the same matrix."""
