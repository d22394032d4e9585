"""Sleep: islands at rest for a while do not move until a moving body comes near.

A body is at rest while none of its vertices is faster than `Settings.sleep_speed`. An island sleeps through a step if all its
bodies have been at rest for `Settings.sleep_time` and no mobile body comes into reach. No force on it then changes. Prescribed
bodies, and bodies with loads or joints driven by functions of time or with force functions, never sleep.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows.system import JointSystem
from abd.model import WORLD, Kind, Model


class Sleep:
    """Counts the time at rest of every body.

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
        """Return (n,) bool, bodies that may sleep through the next step."""
        if not self.enabled:
            return self._none
        out = self.dynamic & (self.time_at_rest >= self.time)
        row_laws = system.row_laws
        for row in {**row_laws.target_of, **row_laws.rate_of, **system.given}:
            joint = self.joints[int(row_laws.joint[row])]
            out[[body for body in (joint.parent, joint.child) if body != WORLD]] = False
        return out

    def observe(self, backend, h: float | np.ndarray) -> None:
        """Count a completed step of h [s], scalar or (n,)."""
        if self.enabled:
            self.time_at_rest = np.where(backend.readings.vertex_speeds() <= self.speed, self.time_at_rest + h, 0.0)

    def disturb(self, bodies: np.ndarray | list[int] | slice = slice(None)) -> None:
        """Wake bodies, by default all, and their islands after a change that is not visible on a path."""
        self.time_at_rest = self.time_at_rest.copy()  # may be part of a stored state
        self.time_at_rest[bodies] = 0.0
