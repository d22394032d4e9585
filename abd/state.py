"""The moving part of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np


@dataclass
class State:
    """Positions and velocities of all bodies at one instant, with what the integrators remember.

    ``q (n, 12)``: position of the centre of mass [m] and the three rows of the affine map; ``qd (n, 12)`` [1/s]
    likewise. The ``previous_*`` fields belong to the step before (``bdf2``). `time` and `previous_h` [s] are of all bodies, or
    (n,) where worlds have some of their own. Everything needed to continue a run bit for bit is here.
    """

    q: np.ndarray
    qd: np.ndarray
    time: float | np.ndarray = 0.0
    step: int = 0
    previous_q: np.ndarray | None = None
    previous_qd: np.ndarray | None = None
    previous_h: float | np.ndarray = 0.0
    extra: dict[str, np.ndarray] = field(default_factory=dict)

    def copy(self) -> State:
        """An independent copy."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value.copy()
        values["extra"] = {key: value.copy() for key, value in self.extra.items()}
        return State(**values)
