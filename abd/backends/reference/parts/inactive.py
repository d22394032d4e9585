"""Inactive bodies of a step."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.reference.numpy_bodies import projectors
from abd.backends.reference.potential import Potential
from abd.model import Kind, Model


class Inactive:
    """Implementation of `abd.backends.protocol.Inactive`.

    Attributes:
        immobile: (n,) bool, static bodies; mobile: (n,) bool, bodies that may move in this step.
        projectors: (n, 12, 12) on the allowed motions of mobile bodies.
        done: (islands,) bool, islands whose bodies do not move.
    """

    def __init__(self, model: Model, constants: BodyData, potential: Potential):
        self.constants, self.potential, self.islands = constants, potential, potential.islands
        n = len(model.bodies)
        self.immobile, self.excluded = model.bodies.kind == Kind.STATIC, np.zeros(n, dtype=bool)
        self.mobile, self.sleeping = ~self.immobile, np.zeros(n, dtype=bool)
        self.done = np.zeros(self.islands.count, dtype=bool)

    def hold(self, held: np.ndarray) -> None:
        step = self.potential.at.step
        step.held = self.immobile | self.excluded | (np.asarray(held) != 0)
        self.mobile = ~step.held
        self.projectors = projectors(self.constants, step.held)

    def sleep(self, may_sleep: np.ndarray) -> None:
        self.sleeping = self.islands.sleepers(may_sleep, self.mobile) | self.excluded

    def asleep(self, moving: np.ndarray | None = None) -> np.ndarray:
        """Return (islands,) bool, whether all mobile bodies of an island are asleep or not `moving` (n,), by default all moving.

        No island wakes up while the candidate list lasts."""
        resting = self.sleeping if moving is None else self.sleeping | ~moving
        return self.islands.asleep(resting, self.mobile)

    def exclude(self, excluded: np.ndarray) -> None:
        self.excluded = excluded.copy()
        self.potential.contacts.excluded = self.excluded

    def mark_done(self, islands: np.ndarray) -> None:
        """Stop the bodies of these islands (count,) bool, and no others, until the islands change."""
        self.done = islands.copy()
