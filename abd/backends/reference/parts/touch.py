"""Contacts and friction: candidates, contact parameters and lagged friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from abd.backends.answers import PairLoads
from abd.contact.pair_law import PairParameters
from abd.contact.pairs import body_pairs
from abd.contact.path import Path, standing
from abd.potentials.arc_slip import Course


class Touch:
    """Implementation of `abd.backends.protocol.Touch`, and the stages of `abd.backends.warp.parts.touch`.

    The list is made for one path, and again for every other one; it has neither margins nor capacities.

    Attributes:
        builds: number of rebuilds outside of `renew`.
    """

    builds = 0

    def __init__(self, backend):
        self.backend, self.device, self.islands, self.at = backend, backend.device, backend.islands, backend.at
        self.contacts, self.friction, self.n = backend.contacts, backend.friction, backend.n
        self.trial_path = backend.trial_path
        self._listed: Path | None = None
        none = self.device.zeros(2, wp.int32)
        self.capacities = none, 0, 0, none, 0, 0, none, 0

    @property
    def near(self) -> bool:
        return len(self.contacts.candidates) > 0

    @property
    def may_collide(self) -> bool:
        return len(self.contacts.pairs) > 0

    def list_contacts(self, scale: float = 1.0) -> None:
        self.contacts.set_scale(scale)
        self.contacts.search(standing(self.at.q))

    def exclude_pairs(self, pairs: np.ndarray) -> None:
        self.contacts.pairs = body_pairs(replace(self.backend.model, excluded_pairs=pairs))
        self.contacts.search(standing(self.at.q))
        self.friction.forget()

    def set_pair_parameters(self, own: PairParameters) -> None:
        self.contacts.set_pair_parameters(own)

    def launch_lag(self) -> None:
        self._lag(self.at.target, None)

    def lag_friction(self, chosen: np.ndarray | None = None) -> None:
        self._lag(self.at.q, chosen)

    def _lag(self, end: np.ndarray, chosen: np.ndarray | None) -> None:
        at = self.at
        self.friction.lag(at.q, Course(at.rest, end, at.turn), chosen)

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        return self.friction.loads(self.at.q)

    def touching(self) -> np.ndarray:
        flags, candidates = np.zeros(len(self.at.q), dtype=np.int32), self.contacts.candidates
        active = self.relative_gaps() < 1.0
        flags[np.concatenate([candidates.first[active], candidates.second[active]])] = 1
        return flags

    def candidate_pairs(self) -> np.ndarray:
        pairs = [
            np.stack([part.owners, part.candidates.first + part.candidates.second - part.owners], axis=1)
            for part in (self.contacts, self.friction)
        ]
        return np.unique(np.concatenate(pairs).astype(int), axis=0)

    def relative_gaps(self) -> np.ndarray:
        """Return (m,) gaps of the candidates at the iterate [activations]."""
        return self.contacts.gaps(self.at.q) / self.contacts.activation

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        candidates = self.contacts.candidates
        ends = np.sort(np.stack([candidates.first, candidates.second], axis=1), axis=1)
        pairs, of = np.unique(ends, axis=0, return_inverse=True)
        gaps = np.full(len(pairs), np.inf)
        np.minimum.at(gaps, of.ravel(), self.relative_gaps())
        return pairs.reshape(-1, 2), gaps

    # stages of the minimisation ------------------------------------------------------------------------------------

    def _nothing(self, *_: object) -> None:
        """Do nothing: the list has neither margins nor capacities, and gaps are not stored."""

    follow_list = launch_motions = subtract_motion = set_frozen = clear_touching = _nothing

    @property
    def is_empty(self) -> bool:
        return not self.may_collide

    @property
    def lists(self) -> tuple[wp.array, wp.array, wp.array]:
        friction, near = (np.bincount(part.owners, minlength=self.n) for part in (self.friction, self.contacts))
        every = np.arange(self.n + 1), *(np.concatenate([[0], np.cumsum(counts)]) for counts in (friction, near))
        return tuple(self.device.upload(one, wp.int32) for one in every)

    def renew(self, motion: float, limit: wp.array, starts: bool = False) -> None:
        self._listed = self.trial_path.path
        self.contacts.search(self._listed)
        inactive, pairs, upload = self.backend.inactive, self.candidate_pairs(), self.device.upload
        self.islands.keep_numbering()
        self.islands.follow_joined(inactive.mobile)
        self.islands.launch_renumber(inactive.held, (upload(pairs, wp.vec2i), upload([len(pairs)], wp.int32), len(pairs)))

    def test_cover(self, each: wp.array, limit: wp.array, covered: wp.array) -> None:
        self.device.fill(covered, int(self._listed is self.trial_path.path))

    def times_of_impact(self, limit: wp.array, out: wp.array, proven: bool) -> None:
        self.device.fill(out, 1.0)
        if self._listed is self.trial_path.path:
            times = self.contacts.times_of_impact(self._listed, limit.numpy()[self.islands.host])
            np.minimum.at(out.numpy(), self.contacts.owners, times)

    def mark_touching(self, flags: wp.array) -> None:
        flags.numpy()[:] = self.touching()
