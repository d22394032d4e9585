"""The way between the state and the iterate on a device; `abd.solver.ways` says what it is for."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.candidates import LAST
from cuda_kernels import sums, ways

STRAINED = 0.5
"""Share of a way that bends too much to be proven (`cuda_kernels.ways`) after which the step is tried to end."""


class Ways:
    """The part of `WarpBackend` that proves a way free."""

    def free_way(self, h: float) -> tuple[float, tuple[int, ...]]:
        """How far the way from the state to the iterate, in a step of h [s], is proven free of collisions: 1 where it is
        as a whole, with nobody; otherwise a share of it, with the bodies that are the first to stand in one another's way.

        The way is followed back from the iterate, whose gaps are known, with the list of candidates that led there where
        it covers the way; otherwise the list is renewed.
        """
        islands, path = self.islands, self.path
        islands.unsettle()
        self._set_way(h, back=True)
        motion = float(islands.reduced(self.values["a"], sums.MAX).max(initial=0.0))
        if not np.isfinite(motion):
            return STRAINED, ()
        alpha = islands.scalars("limit")
        self.device.write(alpha, np.ones(islands.count))
        contacts, candidates = self.contacts.arrays("current"), self.contacts.candidates
        self.know_contacts()
        if not candidates.covers(path, motion, islands.island, alpha):
            candidates.travel += motion
            candidates.build(path, islands.island, alpha, 0.0, LAST)
            self.carry_contacts(contacts)
        if candidates.count == 0 or self._share(back=True)[0] == 1.0:
            return 1.0, ()
        self._set_way(h, back=False)
        share, shares = self._share(back=False)
        if share == 1.0:
            return 1.0, ()
        first = int(self.device.read(shares, candidates.count).argmin())
        return share, self.contacts.bodies_of(first)

    def _share(self, back: bool) -> tuple[float, wp.array]:
        """How far the path is proven free as a way, and the same of every candidate."""
        a = self.values["a"]
        shares = self.contacts.way_shares(self.path, back, a)
        return float(self.islands.reduced(a, sums.MIN).min(initial=1.0)), shares

    def _set_way(self, h: float, back: bool) -> None:
        """The path is the way, from the iterate back to the state or the other way round."""
        states = self.now, self.pose, self.velocity
        a = self.values["a"]
        self.device.launch(ways.way_paths, self.n, self.lower, self.upper, *states, h, int(back), self.path, a)
