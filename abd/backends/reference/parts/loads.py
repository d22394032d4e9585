"""External loads."""

from __future__ import annotations

import numpy as np

from abd.backends.reference.potential import Potential


class Loads:
    """`abd.backends.protocol.Loads` says what each call does."""

    def __init__(self, potential: Potential):
        self.potential = potential

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Forces [N] and torques [N m] (n, 3) on the bodies from now on: the model's own arrays, which have them."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """(3,) [m/s^2] from now on: the model's own array, which has it."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Coefficients (m, m) between materials from now on: the model's own array, which has them."""
        self.potential.contacts.follow_materials()
        self.potential.friction.follow_materials()
