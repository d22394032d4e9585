"""The way between the state and the iterate on a device; `abd.step.ways` says what it is for."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import STRAINED, NotProven
from abd.backends.device.graphs import Graphs
from abd.backends.warp.parts.idle import Idle
from abd.backends.warp.parts.states import States
from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.scratch import Scratch
from abd.backends.warp.terms.candidates import LAST
from abd.backends.warp.track import Track
from abd.rotations import skew
from cuda_kernels.bodies import ways
from cuda_kernels.parallel import sums


class Ways:
    """`abd.backends.protocol.Ways` says what each call does."""

    def __init__(
        self, potential: Potential, states: States, track: Track, touch: Touch, idle: Idle, scratch: Scratch, graphs: Graphs
    ):
        self.potential, self.states, self.track = potential, states, track
        self.touch, self.idle, self.scratch, self.graphs = touch, idle, scratch, graphs
        self.device, self.islands, self.contacts = potential.device, potential.islands, potential.contacts

    def free_way(self, h: float, standing: wp.array | None = None) -> NotProven:
        """Pairs of bodies whose way from the state to the iterate, in a step of h [s], is not proven free of collisions.

        The way is followed back from the iterate, whose gaps are known, with the list of candidates that led there where
        it covers the way; otherwise the list is renewed, with a margin where iterations are going on.
        """
        islands, path = self.islands, self.track.path
        islands.unsettle()
        self._set_way(h, True, standing)
        each = islands.reduced(self.scratch.a, sums.MAX)
        motion = float(each.max(initial=0.0))
        if not np.isfinite(motion):
            bent = np.flatnonzero(~np.isfinite(self.device.read(self.scratch.a)))
            return NotProven(np.full(len(bent), STRAINED), np.stack([bent, bent], axis=1))
        alpha = islands.scalars("limit")
        self.device.write(alpha, np.ones(islands.count))
        contacts, candidates = self.contacts.arrays("current"), self.contacts.candidates
        self.potential.know_contacts()
        if not candidates.covers(path, each, islands.island, alpha):
            if standing is not None:
                candidates.renew(path, motion, islands.island, alpha)
            else:
                candidates.travel += motion
                candidates.build(path, islands.island, alpha, 0.0, LAST)
            self.touch.carry(contacts)
        if candidates.count == 0 or self._share(back=True)[0] == 1.0:
            return NotProven.nobody()
        self._set_way(h, False, standing)
        share, shares = self._share(back=False)
        if share == 1.0:
            return NotProven.nobody()
        smallest = self.contacts.smallest(shares, 1.0)
        closed = smallest < 1.0
        return NotProven(smallest[closed], candidates.pair_list()[closed])

    def meetings(self, begin: np.ndarray, turn: np.ndarray, end: np.ndarray, party: np.ndarray) -> NotProven:
        rates = skew(turn) @ begin[:, 3:].reshape(-1, 3, 3)
        qd = np.concatenate([np.zeros((len(begin), 3)), rates.reshape(-1, 9)], axis=1)
        self.states.load_state(begin, qd, begin, qd)
        self.states.unpack(end, self.potential.at.current)
        self.idle.meet_as(np.where(party > 0, party, -1))
        met = self.free_way(1.0)
        if not len(met) and self.contacts.candidates.count:
            near = self.contacts.near_pairs(1.0)
            met = NotProven(np.ones(len(near)), near)
        self.idle.meet_as()
        return met

    def _share(self, back: bool) -> tuple[float, wp.array]:
        """How far the path is proven free as a way, and the same of every candidate."""
        self.graphs.run(("shares", back), lambda: self._launch_shares(back))
        return float(self.islands.read("read").min(initial=1.0)), self.contacts.shares

    def _launch_shares(self, back: bool) -> None:
        """Shares of the candidates, the smallest of every island among its numbers."""
        a = self.scratch.a
        self.contacts.way_shares(self.track.path, back, a)
        self.islands.reduce(a, sums.MIN, self.islands.scalars("read"))

    def _set_way(self, h: float, back: bool, standing: wp.array | None) -> None:
        """The path is the way, from the iterate back to the state or the other way round."""
        self.launch_way(h, back, self.scratch.a)
        if standing is not None:
            track, pose = self.track, self.potential.at.current
            self.device.launch(ways.stand, track.n, standing, self.idle.held, pose, track.path, self.scratch.a)

    def launch_way(self, h: float, back: bool, out: wp.array) -> None:
        """The same, how far bodies (n,) move on it into `out`, by launches only."""
        states, track = self.states, self.track
        between = states.now, self.potential.at.current, states.velocity
        self.device.launch(
            ways.way_paths, track.n, track.lower, track.upper, *between, h, int(back), track.path, out
        )
