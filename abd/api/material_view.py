"""`MaterialView`: the friction of materials, read and changed while a simulation runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abd.api.simulation import Simulation


class MaterialView:
    """A material with itself, or a pair of materials."""

    def __init__(self, simulation: Simulation, one: int, other: int | None = None):
        self._simulation, self._one, self._other = simulation, one, other

    def __repr__(self) -> str:
        names = self._simulation.model.materials.names
        pair = names[self._one] if self._other is None else f"{names[self._one]}', '{names[self._other]}"
        return f"<material '{pair}': mu = {self.mu:.6g}>"

    def against(self, other: str) -> MaterialView:
        """The pair with another material.

        Raises:
            UnknownName: there is no such material.
        """
        return MaterialView(self._simulation, self._one, self._simulation.materials[other]._one)

    @property
    def mu(self) -> float:
        """Coefficient of friction [-]: of bodies of the material on one another, or of the pair. Can be set between steps.

        Set for a material alone, it changes its friction with all others by the scene's rule, ``sqrt(mu_a mu_b)``, also
        where the scene gave pairs a number of their own.

        Raises:
            ValueError: negative, or no finite number.
        """
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.mu[self._one, other])

    @mu.setter
    def mu(self, mu: float) -> None:
        if not (isinstance(mu, int | float | np.number) and np.isfinite(mu) and mu >= 0.0):
            raise ValueError(f"the friction of {self!r} cannot be {mu!r}: a finite number, not negative, is needed")
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
        """Normal speed after an impact over that before [-]; NaN where none is given."""
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.restitution[self._one, other])
