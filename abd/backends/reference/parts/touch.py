"""Contacts and friction: candidates, contact parameters and lagged friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.answers import PairLoads
from abd.backends.reference.potential import Potential
from abd.contact.pair_law import PairParameters
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.model import Model
from abd.potentials.arc_slip import Course


class Touch:
    """Implementation of `abd.backends.protocol.Touch`."""

    def __init__(self, model: Model, potential: Potential):
        self.model, self.potential, self.at, self.islands = model, potential, potential.at, potential.islands
        self.contacts, self.friction = potential.contacts, potential.friction

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
        self.contacts.pairs = body_pairs(replace(self.model, excluded_pairs=pairs))
        self.contacts.search(standing(self.at.q))
        self.friction.forget()

    def set_pair_parameters(self, own: PairParameters) -> None:
        self.contacts.set_pair_parameters(own)

    def lag_at_start(self) -> None:
        self._lag(self.at.target, None)

    def lag_friction(self, chosen: np.ndarray | None = None) -> None:
        self._lag(self.at.q, chosen)

    def _lag(self, end: np.ndarray, chosen: np.ndarray | None) -> None:
        at = self.at
        self.friction.lag(at.q, Course(at.rest, end, at.turn), chosen)
        self.potential.evaluate()

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

    def island_gaps(self) -> np.ndarray:
        infinite = np.full(self.islands.count, np.inf)
        return self.islands.minima(self.relative_gaps(), self.contacts.owners, infinite)
