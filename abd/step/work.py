"""Work since the start of a run, and contacts of its initial state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.energies import StepStatistics


@dataclass(slots=True)
class Work:
    """Work since the start [J]: of external loads on bodies; of drives and forces on coordinates; of friction in contacts and
    joints and of damping in joints; and of the integration, negative where it dissipates (`EnergyBalance`)."""

    external: float = 0.0
    drive: float = 0.0
    friction: float = 0.0
    integration: float = 0.0

    def after(self, statistics: StepStatistics) -> Work:
        """Return the sum with the work of one more substep, without that of the integration."""
        return Work(
            self.external + statistics.external_work,
            self.drive + statistics.drive_work,
            self.friction + statistics.friction_work,
            self.integration,
        )

    @property
    def done(self) -> float:
        """Work without that of the integration."""
        return self.external + self.drive + self.friction


@dataclass(frozen=True)
class InitialContacts:
    """Contacts of an initial state: energy [J], number of active contacts, smallest gap [m] of nearby surfaces."""

    energy: float = 0.0
    contacts: int = 0
    smallest_gap: float = np.inf
