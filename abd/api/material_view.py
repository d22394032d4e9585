"""`MaterialView`: friction and restitution of materials of a running simulation."""

from __future__ import annotations

import numpy as np

from abd.api.protocol import RunningSimulation


class MaterialView:
    """A material paired with itself, or a pair of two materials."""

    __slots__ = ("_one", "_other", "_simulation")

    def __init__(self, simulation: RunningSimulation, one: int, other: int | None = None):
        self._simulation, self._one, self._other = simulation, one, other

    def __repr__(self) -> str:
        names = self._simulation.model.materials.names
        pair = names[self._one] if self._other is None else f"{names[self._one]}', '{names[self._other]}"
        return f"<material '{pair}': mu = {self.mu:.6g}>"

    def against(self, other: str) -> MaterialView:
        """Return the pair with another material.

        Raises:
            UnknownName: the material is unknown.
        """
        return MaterialView(self._simulation, self._one, self._simulation.materials[other]._one)

    @property
    def mu(self) -> float:
        """Coefficient of friction between two bodies of the material, or of the pair [-]; can be set between steps.

        Setting it for a single material changes the friction with all materials to ``sqrt(mu_a mu_b)``. This replaces
        coefficients that the scene defines for pairs.

        Raises:
            ValueError: the number is negative or not finite.
        """
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.mu[self._one, other])

    @mu.setter
    def mu(self, mu: float) -> None:
        if not (isinstance(mu, int | float | np.number) and np.isfinite(mu) and mu >= 0.0):
            raise ValueError(f"the friction of {self!r} must be finite and not negative, not {mu!r}")
        table = self._simulation.model.materials.mu.copy()
        if self._other is None:
            own = np.diag(table).copy()
            own[self._one] = mu
            table[self._one] = table[:, self._one] = np.sqrt(mu * own)
            table[self._one, self._one] = mu
        else:
            table[self._one, self._other] = table[self._other, self._one] = mu
        self._simulation.set_friction(table)

    @property
    def restitution(self) -> float:
        """Ratio of the normal speeds after and before an impact [-]; NaN if not defined."""
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.restitution[self._one, other])
