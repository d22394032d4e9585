"""What the incremental potential is a sum of."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.warp.iterate import Iterate
from cuda_kernels.linear.couplings import Coupling


class Term(Protocol):
    """One energy of the incremental potential on a device: E times c h^2 [J s^2], of all bodies or of pairs of them.

    Its energies lie in two slots, "current" for the iterate and "trial" for the trial. All calls are launches only, so
    that they may be recorded. `CONTRIBUTING.md` has a recipe for another one.
    """

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Energies at the pose of a slot, into that slot."""

    def exchange(self, at: Iterate) -> None:
        """Exchange what the slots hold; the poses have been exchanged."""

    def add_differences(self, at: Iterate, difference: wp.array, size: wp.array) -> None:
        """Add what slot "trial" has more than slot "current" to `difference` (n,), by the bodies that count an energy, and
        the sizes of both to `size` (n,)."""

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add gradient (n, 12) and positive semidefinite blocks (n, 12, 12) at the iterate, whose energies are known, and
        set those off the diagonal."""

    @property
    def ties(self) -> np.ndarray:
        """(k, 2) pairs of bodies that are coupled for good, besides those of joints, which stand in their system: no island
        parts them, the body first that counts the energy."""

    @property
    def couplings(self) -> list[tuple[Coupling, int]]:
        """Blocks off the diagonal with the numbers of their pairs, or the rooms for them; none of a single body's energy."""
