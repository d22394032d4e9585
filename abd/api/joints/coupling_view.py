"""`CouplingView`: one coupling of coordinates in a running simulation."""

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
        """Definition of the coupling."""
        return self.simulation.model.couplings[self.index]

    @property
    def name(self) -> str:
        """Name of the coupling."""
        return self.coupling.name

    @property
    def residual(self) -> float:
        """Difference of q0 and the right-hand side [m or rad]."""
        return float(self.simulation.joint_readings().row_value[self._row])

    @property
    def force(self) -> float:
        """Effort on q0 [N or N m]; the effort on coordinate k is ``-scale f_k'(q_k)`` times this effort."""
        return float(self.simulation.joint_readings().row_force[self._row])

    @property
    def active(self) -> bool:
        """Whether the coupling acts; can be set from the next step on, which closes its residual."""
        return self.coupling.active

    @active.setter
    def active(self, active: bool) -> None:
        self.simulation.control.set_coupling_active(self.index, bool(active))

    @property
    def _row(self) -> int:
        return int(np.flatnonzero(self.simulation.backend.system.row_laws.coupling == self.index)[0])
