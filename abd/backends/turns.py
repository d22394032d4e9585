"""Count of full turns of angles from frame to frame, independent of other data of the coordinates."""

from __future__ import annotations

import numpy as np

from abd.joints.rows.table import MeasureTable, values


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
