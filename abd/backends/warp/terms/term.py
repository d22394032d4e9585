"""Protocol of a term of the incremental potential."""

from __future__ import annotations

from typing import Protocol

import warp as wp

from abd.backends.warp.iterate import Iterate


class Term(Protocol):
    """One term of the incremental potential on a device: energies of bodies or pairs of bodies times c h^2 [J s^2].

    Energies are stored in slot "current" for the iterate and in slot "trial" for the trial. All methods only launch kernels, so
    that they can be recorded. `CONTRIBUTING.md` has a recipe for a new term.
    """

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate the energies at the pose of a slot and store them in that slot."""

    def exchange(self, at: Iterate) -> None:
        """Exchange the values of the two slots, after the poses have been exchanged."""

    def add_differences(self, at: Iterate, difference: wp.array, size: wp.array) -> None:
        """Add the energy differences "trial" minus "current" to `difference` (n,) and the magnitudes of both to `size` (n,).

        Each energy counts for one body, its owner."""

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add gradient (n, 12) and positive semidefinite diagonal blocks (n, 12, 12) at the iterate, and set the off-diagonal
        blocks, which `Potential.couplings` lists. The energies of the iterate have been evaluated."""
