"""Count of full turns of angles from frame to frame, independent of other data of the coordinates."""

from __future__ import annotations

import numpy as np

from abd.backends.device.upload import upload_measures
from abd.joints.rows.table import MeasureTable, values
from cuda_kernels.joints import measures


class Turns:
    """Counts on the host, by the definition; c coordinates."""

    def __init__(self, table: MeasureTable, states):
        self.table, self.states = table, states
        self._near = np.zeros(len(table))

    def set(self, near: np.ndarray) -> None:
        """Count from coordinates (c,) of the present state."""
        self._near = near.copy()

    def count(self, ahead: np.ndarray | None = None) -> None:
        """Count the turns from the last call to the present state; no angle differs by more than half a turn from its value at
        the last call plus `ahead` (c,), by default 0."""
        near = self._near if ahead is None else self._near + ahead
        self._near = values(self.table, self.states.read_state()[0], near)

    def near(self) -> np.ndarray:
        """(c,) values near which the angles of the present state are counted."""
        return self._near.copy()


class CountedTurns(Turns):
    """Turn counter on the device; if a counted measure is a user's Python function, the host counts."""

    def __init__(self, table: MeasureTable, states):
        super().__init__(table, states)
        self.chosen = np.flatnonzero(table.counts_turns)
        self.by_host = any(table.counts_turns[group.measure].any() for group in table.custom)
        if not self.by_host:
            self.measures = upload_measures(table.part(self.chosen), states.device)

    def set(self, near: np.ndarray) -> None:
        super().set(near)
        if not self.by_host:
            self.states.device.write(self.measures.reference, near[self.chosen])

    def count(self, ahead: np.ndarray | None = None) -> None:
        if self.by_host:
            super().count(ahead)
            return
        if ahead is not None:
            self.set(self.near() + ahead)
        reference = self.measures.reference
        self.states.device.launch(
            measures.measure_values, len(self.chosen), self.measures, self.states.at.current, reference, grain=512
        )

    def near(self) -> np.ndarray:
        if not self.by_host:
            self._near[self.chosen] = self.states.device.read(self.measures.reference)
        return super().near()
