"""Inactive bodies of a step."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.numbering import Sleep
from abd.backends.reference.numpy_bodies import projectors
from abd.backends.reference.potential import Potential
from abd.model import Kind, Model


class Inactive(Sleep):
    """Implementation of `abd.backends.protocol.Inactive`.

    Attributes:
        immobile: (n,) bool, static bodies.
        projectors: (n, 12, 12) on the allowed motions of mobile bodies.
        done: (islands,) bool, islands whose bodies do not move.
    """

    def __init__(self, model: Model, constants: BodyData, potential: Potential):
        self.constants, self.potential = constants, potential
        self.immobile = model.bodies.kind == Kind.STATIC
        super().__init__(potential.islands, ~self.immobile)
        self.done = np.zeros(self.islands.count, dtype=bool)

    def hold(self, held: np.ndarray) -> None:
        step = self.potential.at.step
        step.held = self.immobile | self.excluded | (np.asarray(held) != 0)
        self.mobile = ~step.held
        self.projectors = projectors(self.constants, step.held)

    def exclude(self, excluded: np.ndarray) -> None:
        self.excluded = excluded.copy()
        self.potential.contacts.excluded = self.excluded

    def mark_done(self, islands: np.ndarray) -> None:
        """Stop the bodies of these islands (count,) bool, and no others, until the islands change."""
        self.done = islands.copy()
