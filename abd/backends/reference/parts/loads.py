"""External loads."""

from __future__ import annotations

import numpy as np

from abd.backends.reference.potential import Potential


class Loads:
    """Implementation of `abd.backends.protocol.Loads`."""

    def __init__(self, potential: Potential):
        self.potential = potential

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Do nothing: forces [N] and torques [N m] (n, 3) are the model's own arrays."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """Do nothing: gravity (3,) [m/s^2] is the model's own array."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Update the pairs to changed coefficients (m, m) between materials, in the model's own array."""
        self.potential.contacts.follow_materials()
        self.potential.friction.follow_materials()
