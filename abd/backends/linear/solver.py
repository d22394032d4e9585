"""What solves the linear system of a Newton iteration, H d = -g."""

from __future__ import annotations

from typing import Protocol

import warp as wp

from cuda_kernels.linear.couplings import Coupling


class Solver(Protocol):
    """A way to solve H x = -g, with the blocks of H where the terms keep them.

    It is made from what knows the bodies and their patterns (`LinearSolver`), the records that its loops go into, and the
    numbers that decide (`cuda_kernels.step.control.Control`). All but `reserve` is launches only. `CONTRIBUTING.md` has a recipe
    for another one.

    Attributes:
        exact: whether a solve is as exact as it gets; of others, the tolerance is the forcing term's, until one decides.
        sees_joints: whether corrections see what joints couple, so that they may close exact ones.
    """

    exact: bool
    sees_joints: bool

    def reserve(self) -> None:
        """Allocate what launches may need: before they are recorded, when this solver was chosen."""

    def launch_factor(self, diagonal: wp.array, couplings: list[tuple[Coupling, int]]) -> None:
        """Take up a matrix: the bodies' blocks (n, 12, 12), and those off the diagonal with the rooms of their pairs."""

    def launch_solve(self, gradient: wp.array, x: wp.array) -> None:
        """x (n, 12) for a gradient (n, 12)."""

    def launch_tighten(self, x: wp.array) -> None:
        """Bring the x of the last solve to the tightest tolerance."""

    def launch_correct(self, gradient: wp.array, x: wp.array) -> None:
        """x for another gradient, with the same matrix."""
