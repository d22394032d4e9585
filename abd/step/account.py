"""What a run has done since its start, and what it began with."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from abd.energies import Figures


@dataclass(slots=True)
class Work:
    """Work since the start [J]: of forces and torques on bodies; of drives and forces on coordinates; of friction in
    contacts and joints and of damping in joints."""

    external: float = 0.0
    drive: float = 0.0
    friction: float = 0.0

    def after(self, figures: Figures) -> Work:
        """With that of one more (sub)step."""
        return Work(
            self.external + figures.external_work,
            self.drive + figures.drive_work,
            self.friction + figures.friction_work,
        )

    def plus(self, after: Work, before: Work) -> Work:
        """With what has been done between two others."""
        pairs = ((getattr(one, field.name) for one in (self, after, before)) for field in fields(self))
        return Work(*(own + (last - first) for own, last, first in pairs))


@dataclass(frozen=True)
class Opening:
    """Contacts of a state that no step led to: energy [J], how many act, smallest gap [m] of those that are near."""

    energy: float = 0.0
    contacts: int = 0
    smallest_gap: float = np.inf
