"""Coordinates of all joints of a simulation, and what else is read of them."""

from __future__ import annotations

import numpy as np

from abd.backends.protocol import Backend
from abd.joints.coordinates.readings import JointReader, Readings
from abd.model import WORLD, Model
from abd.potentials.integrators import longest
from abd.step.step import Stepper

SLOW_TURN = 1.0
"""Largest |dA/dt|_F h up to which nothing turns by half a turn in a substep."""


class Coordinates:
    """Coordinates, angles counted over any number of turns.

    Attributes:
        reader: of the present joints.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper):
        self.model, self.backend, self.stepper = model, backend, stepper
        stepper.after_substep = self._count
        self.watch()

    def watch(self, near: np.ndarray | None = None) -> None:
        """Read the present joints, from values (c,) near which angles are counted on."""
        self.reader = JointReader(self.model)
        self._turns = self.backend.rows.watch_turns(self.reader.table)
        self._counts = bool(self.reader.table.counts_turns.any())
        self.values = self.reader.coordinates(self.stepper.q, near)

    def watch_changed(self) -> None:
        """The same where some joints were appended or are gone; coordinates of those that stay go on."""
        kept = self.values
        self.watch()
        count = min(len(kept), len(self.values))
        values = self.values.copy()
        values[:count] = kept[:count]
        self.values = values

    @property
    def values(self) -> np.ndarray:
        """(c,) [m or rad]."""
        if self._values is None:
            self._values = self.reader.coordinates(self.stepper.q, self._turns.near())
        return self._values

    @values.setter
    def values(self, values: np.ndarray) -> None:
        self._values: np.ndarray | None = values
        self._turns.set(values)
        self.forget_readings()

    def after_step(self) -> None:
        """Read the coordinates of a new frame when they are asked for."""
        self._values = None
        self.forget_readings()

    def _count(self) -> None:
        """Count the turns of a substep."""
        if self._counts:
            self._turns.count(self._turned_by())

    def _turned_by(self) -> np.ndarray | None:
        """(c,) ways of the coordinates that are angles in the last substep by their mean rates, 0 for bodies that took no part;
        None where all turned by less than a radian: what is counted from the states alone is less than half a turn."""
        stepper, reader = self.stepper, self.reader
        h, table = stepper.previous_h, self.reader.table
        turning = table.counts_turns
        if longest(h) * stepper.statistics.fastest < SLOW_TURN:
            return None
        ends = np.where(table.child == WORLD, table.parent, table.child)
        turning = turning & ~stepper.excluded[ends]
        if isinstance(h, np.ndarray):
            h = h[ends]
        rates = [reader.rates(*state) for state in ((stepper.previous_q, stepper.previous_qd), (stepper.q, stepper.qd))]
        return np.where(turning, 0.5 * h * (rates[0] + rates[1]), 0.0)

    def readings(self) -> Readings:
        """Coordinates, rates, residuals, wrenches and energies of all joints in the present state, as arrays."""
        if self._readings is None:
            s = self.stepper
            self._readings = Readings(self.reader, s.joints, s.q, s.qd, self.values, s.memory, s.applied)
        return self._readings

    def forget_readings(self) -> None:
        """Read the joints anew when they are asked for next."""
        self._readings: Readings | None = None
