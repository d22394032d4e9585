"""Sleep: islands that have been calm for a while are left where they are, until something moving comes near.

A body is calm while no vertex of it is faster than `Settings.sleep_speed`. An island sleeps through a step if all its
bodies have been calm for `Settings.sleep_time` and nothing that may move is in reach on the paths of the step: then no
force on it changes. Bodies that are prescribed, or
moved by functions of time through their joints, never sleep.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows.system import JointSystem
from abd.model import WORLD, Kind, Model


class Sleep:
    """Keeps how long every body has been calm.

    Attributes:
        time_at_rest: (n,) [s], part of the state.
    """

    def __init__(self, model: Model):
        self.speed, self.time = model.settings.sleep_speed, model.settings.sleep_time
        self.enabled = self.speed > 0.0
        self.dynamic = model.bodies.kind == Kind.DYNAMIC
        self.joints = model.joints
        self.time_at_rest = np.zeros(len(model.bodies))
        self._none = np.zeros(len(model.bodies), dtype=bool)

    def may_sleep(self, system: JointSystem) -> np.ndarray:
        """(n,) bool, bodies that may sleep through the next step."""
        if not self.enabled:
            return self._none
        out = self.dynamic & (self.time_at_rest >= self.time)
        row_laws = system.row_laws
        for row in {**row_laws.target_of, **row_laws.rate_of}:
            joint = self.joints[int(row_laws.joint[row])]
            out[[body for body in (joint.parent, joint.child) if body != WORLD]] = False
        return out

    def observe(self, backend, h: float | np.ndarray) -> None:
        """Count a step of length h [s], of all or (n,), that has just ended."""
        if self.enabled:
            self.time_at_rest = np.where(backend.readings.vertex_speeds() <= self.speed, self.time_at_rest + h, 0.0)

    def disturb(self) -> None:
        """Wake everything: something changed that no path shows."""
        self.time_at_rest = np.zeros(len(self.time_at_rest))
