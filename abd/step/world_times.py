"""Worlds whose frames have lengths of their own, and that are at times of their own.

A frame is one step of every world, each of its own dt. Lengths and times are numbers where all bodies have the same, and arrays
(n,) where not. Free bodies take such a step in one minimisation (`abd.potentials.integrators.Schemes`), whatever else there is in
groups of one length and one time, one after the other (`abd.step.world_groups`).
"""

from __future__ import annotations

import numpy as np

from abd.model import Model
from abd.potentials.integrators import longest

OfBodies = float | np.ndarray
"""A number [s] of all bodies, or (n,) of each."""


class WorldTimes:
    """The w worlds of a model.

    Attributes:
        numbers: (w,) as bodies have them; lengths: of the next frame; clock: by the longest ones since the start [s].
    """

    def __init__(self, model: Model):
        self.model = model
        self.numbers, self._first, self._place = np.unique(model.bodies.world, return_index=True, return_inverse=True)
        self.begin(0.0)

    def begin(self, clock: float) -> None:
        """Go on from a time [s] by the lengths that the scene says."""
        self.lengths, self.clock = common(self.model.step_lengths), clock

    def advance(self) -> None:
        """A frame is done."""
        self.clock += longest(self.lengths)

    def of_each(self, values: OfBodies) -> np.ndarray:
        """(w,) numbers of worlds."""
        return values[self._first] if isinstance(values, np.ndarray) else np.full(len(self.numbers), values)

    def of_bodies(self, values: np.ndarray) -> OfBodies:
        """The numbers (w,) of worlds by bodies."""
        return common(np.asarray(values, dtype=float)[self._place])


def common(values: OfBodies) -> OfBodies:
    """The number that all bodies have, where they have one."""
    if not isinstance(values, np.ndarray):
        return float(values)
    return float(values[0]) if len(values) and (values == values[0]).all() else values


def among(values: OfBodies, who: np.ndarray) -> OfBodies:
    """The number that all of some bodies (n,) bool have, where they have one."""
    if not isinstance(values, np.ndarray):
        return values
    theirs = common(values[who])
    return theirs if isinstance(theirs, float) else values


def of_body(values: OfBodies, body: int) -> float:
    """The number of one body."""
    return float(values[body]) if isinstance(values, np.ndarray) else values
