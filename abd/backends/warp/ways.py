"""The way between the state and the iterate on a device; `abd.step.ways` says what it is for."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import STRAINED, NotProven
from abd.backends.device.upload import exclude
from abd.backends.warp.terms.candidates import LAST
from abd.rotations import skew
from cuda_kernels.bodies import integrators, ways
from cuda_kernels.parallel import sums


class Ways:
    """The part of `WarpBackend` that proves ways free."""

    def free_way(self, h: float) -> NotProven:
        """Pairs of bodies whose way from the state to the iterate, in a step of h [s], is not proven free of collisions.

        The way is followed back from the iterate, whose gaps are known, with the list of candidates that led there where
        it covers the way; otherwise the list is renewed.
        """
        islands, path = self.islands, self.path
        islands.unsettle()
        self._set_way(h, back=True)
        motion = float(islands.reduced(self.values["a"], sums.MAX).max(initial=0.0))
        if not np.isfinite(motion):
            bent = np.flatnonzero(~np.isfinite(self.device.read(self.values["a"])))
            return NotProven(np.full(len(bent), STRAINED), np.stack([bent, bent], axis=1))
        alpha = islands.scalars("limit")
        self.device.write(alpha, np.ones(islands.count))
        contacts, candidates = self.contacts.arrays("current"), self.contacts.candidates
        self.potential.know_contacts()
        if not candidates.covers(path, motion, islands.island, alpha):
            candidates.travel += motion
            candidates.build(path, islands.island, alpha, 0.0, LAST)
            self.carry_contacts(contacts)
        if candidates.count == 0 or self._share(back=True)[0] == 1.0:
            return NotProven.nobody()
        self._set_way(h, back=False)
        share, shares = self._share(back=False)
        if share == 1.0:
            return NotProven.nobody()
        smallest = self.contacts.smallest(shares, 1.0)
        closed = smallest < 1.0
        return NotProven(smallest[closed], candidates.pair_list()[closed])

    def meetings(self, begin: np.ndarray, turn: np.ndarray, end: np.ndarray, party: np.ndarray) -> NotProven:
        """Pairs of bodies of different parties (n,), 0 for those that count with nobody, that come in one another's way
        between two states (n, 12), turning by `turn` (n, 3) [rad], or within their activation at the end.

        The state is lost: another has to be loaded.
        """
        rates = skew(turn) @ begin[:, 3:].reshape(-1, 3, 3)
        qd = np.concatenate([np.zeros((self.n, 3)), rates.reshape(-1, 9)], axis=1)
        self.load_state(begin, qd, begin, qd)
        self.device.write(self.q, end)
        self.device.launch(integrators.unpack, self.n, self.q, self.pose)
        self._set_party(np.where(party > 0, party, -1))
        met = self.free_way(1.0)
        if not len(met) and self.contacts.candidates.count:
            near = self.contacts.near_pairs(1.0)
            met = NotProven(np.ones(len(near)), near)
        self._set_party(-self.absent.astype(np.int32))
        return met

    def leave_out(self, absent: np.ndarray) -> None:
        """Bodies (n,) bool that take no part in the next (sub)steps: they stay where they are, and nothing meets them."""
        if np.array_equal(absent, self.absent):
            return
        self.absent = absent.copy()
        self.potential.has_constraints = self.has_fixed or bool(absent.any())
        self._set_party(-absent.astype(np.int32))
        self.hold(self.immobile)

    def set_apart(self, pairs: np.ndarray) -> None:
        """Bodies (k, 2), and no others, that do not collide from now on; what was recorded knows others."""
        exclude(self.contacts.candidates.filters, pairs, self.n, self.device)
        self.device.generation += 1
        self._forget_candidates()

    def _set_party(self, party: np.ndarray) -> None:
        """Who meets whom (`cuda_kernels.contact.broad_phase.Filters`)."""
        self.device.write(self.contacts.candidates.filters.party, party.astype(np.int32))

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
