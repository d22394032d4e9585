"""`CouplingView`: one relation between coordinates in a running simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.model import Coupling

if TYPE_CHECKING:
    from abd.api.simulation import Simulation


class CouplingView:
    """A coupling ``q0 = scale (f_1(q_1) + f_2(q_2) + ...)``, or ``q0 = scale f(q_1, q_2, ...)``."""

    def __init__(self, simulation: Simulation, index: int):
        self.simulation, self.index = simulation, index

    @property
    def coupling(self) -> Coupling:
        """Its definition."""
        return self.simulation.model.couplings[self.index]

    @property
    def name(self) -> str:
        """Its name."""
        return self.coupling.name

    @property
    def residual(self) -> float:
        """q0 less what the others ask for [m or rad]."""
        return float(self.simulation.joint_readings().row_value[self._row])

    @property
    def force(self) -> float:
        """Effort on q0 [N or N m]; coordinate k of the right-hand side gets ``-scale f_k'(q_k)`` times that."""
        return float(self.simulation.joint_readings().row_force[self._row])

    @property
    def active(self) -> bool:
        """Whether it acts; set, it is switched from the next step on, which closes what is open of it."""
        return self.coupling.active

    @active.setter
    def active(self, active: bool) -> None:
        self.simulation.control.set_coupling_active(self.index, bool(active))

    @property
    def _row(self) -> int:
        return int(np.flatnonzero(self.simulation.backend.system.row_laws.coupling == self.index)[0])
