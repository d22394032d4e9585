"""Times and frame lengths of worlds.

A frame is one step of every world with its own dt. Free and jointed bodies of all worlds share one minimisation
(`abd.potentials.integrators.Schemes`). Worlds with motions are minimised by groups of equal lengths (`abd.step.frame`). Only
motions, drives and loads depend on time; they use that of their bodies.
"""

from __future__ import annotations

import numpy as np

from abd.by_bodies import PerBody, common
from abd.model import Model
from abd.potentials.integrators import longest


class WorldTimes:
    """The w worlds of a model.

    Attributes:
        numbers: (w,) world numbers; lengths: of the next frame [s]; clock: sum of the longest frames since the start [s].
    """

    def __init__(self, model: Model):
        self.model = model
        self.numbers, self._first, self._place = np.unique(model.bodies.world, return_index=True, return_inverse=True)
        self._ones = np.ones(len(self.numbers))
        self.begin(0.0)

    def begin(self, clock: float) -> None:
        """Start at a time [s] with the frame lengths of the scene."""
        self.lengths, self.clock = common(self.model.step_lengths), clock

    def advance(self) -> None:
        self.clock += longest(self.lengths)

    def world_values(self, values: PerBody) -> np.ndarray:
        """Return (w,) values of the worlds."""
        return values[self._first] if isinstance(values, np.ndarray) else values * self._ones

    def of_bodies(self, values: np.ndarray) -> PerBody:
        """Return the values (w,) of worlds by bodies."""
        return common(np.asarray(values, dtype=float)[self._place])
