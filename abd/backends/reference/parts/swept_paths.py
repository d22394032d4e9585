"""Collision check of the swept paths from the state to the iterate; used by `abd.step.substep`."""

from __future__ import annotations

import numpy as np

from abd.backends.answers import UnprovenPaths
from abd.backends.reference.numpy_bodies import Boxes, maps
from abd.backends.reference.numpy_islands import Islands
from abd.backends.reference.parts.inactive import Inactive
from abd.backends.reference.parts.states import States
from abd.backends.reference.parts.touch import Touch
from abd.contact.path import between
from abd.rotations import axial


class SweptPaths:
    """Implementation of `abd.backends.protocol.SweptPaths`."""

    def __init__(self, states: States, touch: Touch, inactive: Inactive, boxes: Boxes, islands: Islands):
        self.states, self.touch, self.inactive, self.boxes, self.islands = states, touch, inactive, boxes, islands

    def unproven(self, h: float | np.ndarray, converged: np.ndarray | None = None) -> UnprovenPaths:
        states = self.states
        begin, turned = states.now, np.reshape(h, (-1, 1)) * axial(maps(states.velocity) @ np.linalg.inv(maps(states.now)))
        if converged is not None:
            # a held body may have reached its target already; its swept path is still checked
            is_stationary = converged[self.islands.host] & self.inactive.mobile
            begin, turned = (
                np.where(is_stationary[:, None], stationary, one) for stationary, one in ((states.at.q, begin), (0.0, turned))
            )
        return self._unproven_between(begin, turned, states.at.q)

    def _unproven_between(self, begin: np.ndarray, turn: np.ndarray, end: np.ndarray) -> UnprovenPaths:
        """Return unproven paths between two states (n, 12) with rotations `turn` (n, 3) [rad]."""
        return self.touch.contacts.unproven(between(begin, end, turn, self.boxes.radii(begin)))
