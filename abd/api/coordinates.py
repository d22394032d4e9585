"""`Coordinates`: coordinates of all joints of a simulation, and readings of its joints and contacts."""

from __future__ import annotations

import numpy as np

from abd.api.contact_view import Contacts
from abd.backends.protocol import Backend
from abd.joints.coordinates.readings import JointReader, Readings
from abd.model import WORLD, Model
from abd.potentials.integrators import longest
from abd.step.step import Stepper

SLOW_TURN = 1.0
"""Largest |dA/dt|_F h for which no body rotates by half a turn in a substep."""


class Coordinates:
    """Coordinates of all joints; angles are counted over any number of turns.

    Attributes:
        reader: reader of the current joints.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper):
        self.model, self.backend, self.stepper = model, backend, stepper
        stepper.after_substep = self._count
        self.watch()

    def watch(self, near: np.ndarray | None = None) -> None:
        """Read the current joints; angles continue near the values `near` (c,)."""
        self.reader = JointReader(self.model)
        self._turns = self.backend.rows.watch_turns(self.reader.table)
        self._counts = bool(self.reader.table.counts_turns.any())
        self.values = self.reader.coordinates(self.stepper.q, near)

    def watch_changed(self) -> None:
        """Read the current joints after joints were appended or removed; the other joints keep their coordinates."""
        kept = self.values
        self.watch()
        count = min(len(kept), len(self.values))
        values = self.values.copy()
        values[:count] = kept[:count]
        self.values = values

    @property
    def values(self) -> np.ndarray:
        """(c,) values of the coordinates [m or rad]."""
        if self._values is None:
            self._values = self.reader.coordinates(self.stepper.q, self._turns.near())
        return self._values

    @values.setter
    def values(self, values: np.ndarray) -> None:
        self._values: np.ndarray | None = values
        self._turns.set(values)
        self.forget_readings()

    def after_step(self) -> None:
        """Discard the values of the previous frame."""
        self._values = None
        self.forget_readings()

    def _count(self) -> None:
        """Count the turns of a substep."""
        if self._counts:
            self._turns.count(self._rotations())

    def _rotations(self) -> np.ndarray | None:
        """Return changes (c,) of the angles in the last substep by their mean rates, 0 for excluded bodies.

        None if all bodies rotate by less than a radian, so that the states determine the changes.
        """
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
        """Return coordinates, rates, residuals, wrenches and energies of all joints in the current state, as arrays."""
        if self._readings is None:
            s = self.stepper
            self._readings = Readings(
                self.reader, s.joints, s.q, s.qd, self.values, s.memory, s.applied, **s.forces.of_joints()
            )
        return self._readings

    def contacts(self) -> Contacts:
        """Return contact points and their forces in the current state."""
        if self._contacts is None:
            self._contacts = Contacts(self.model, self.stepper.q, *self.stepper.forces.contacts())
        return self._contacts

    def forget_readings(self) -> None:
        """Discard the cached readings of joints and contacts."""
        self._readings: Readings | None = None
        self._contacts: Contacts | None = None
