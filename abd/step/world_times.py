"""Worlds whose frames have lengths of their own, and that are at times of their own.

A frame is one step of every world, each of its own dt. Free and joined bodies take it in one minimisation, whatever the lengths
(`abd.potentials.integrators.Schemes`), what motions move in groups of one length, one after the other
(`abd.step.frame`). Times matter to motions, drives and loads alone, which have those of their bodies.
"""

from __future__ import annotations

import numpy as np

from abd.by_bodies import OfBodies, common
from abd.model import Model
from abd.potentials.integrators import longest


class WorldTimes:
    """The w worlds of a model.

    Attributes:
        numbers: (w,) as bodies have them; lengths: of the next frame; clock: by the longest ones since the start [s].
    """

    def __init__(self, model: Model):
        self.model = model
        self.numbers, self._first, self._place = np.unique(model.bodies.world, return_index=True, return_inverse=True)
        self._ones = np.ones(len(self.numbers))
        self.begin(0.0)

    def begin(self, clock: float) -> None:
        """Go on from a time [s] by the lengths that the scene says."""
        self.lengths, self.clock = common(self.model.step_lengths), clock

    def advance(self) -> None:
        """A frame is done."""
        self.clock += longest(self.lengths)

    def of_each(self, values: OfBodies) -> np.ndarray:
        """(w,) numbers of worlds."""
        return values[self._first] if isinstance(values, np.ndarray) else values * self._ones

    def of_bodies(self, values: np.ndarray) -> OfBodies:
        """The numbers (w,) of worlds by bodies."""
        return common(np.asarray(values, dtype=float)[self._place])
