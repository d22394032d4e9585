"""Bodies that strain although they are meant to be rigid: said with the stiffness that would do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.model import Model

SAID = 1e-3
"""Strain |A A^T - 1|_F beyond which it is said of a body without joints, which is allowed to give way in an impact."""
SAID_OF_JOINTED = 1e-5
"""The same of a body at joints, on whose rigidity a mechanism rests."""
AGAIN = 10.0
"""How many times the strain has to grow until it is said again: under the larger load a larger kappa is needed."""
APART = 10
"""Steps between looks at who strains, while bodies do that may strain more than others."""
MEANT = 1e-6
"""Strain that the suggested stiffness leaves under the same loads: they may still grow by as much as is said no more."""


class StrainWatch:
    """Says that bodies strain, once, and again where the strain has grown much since.

    Args:
        jointed: (n,) bool, bodies at joints.
    """

    def __init__(self, model: Model, jointed: np.ndarray):
        self.model = model
        self._bearable = np.where(jointed, SAID_OF_JOINTED, SAID)
        self.reset()

    def reset(self) -> None:
        """Nothing was said so far."""
        self._factor = 1.0
        self._looked_at, self._since = 0.0, 0
        self._least = float(self._bearable.min(initial=SAID))

    def look(self, largest: float, state: Callable[[], np.ndarray]) -> str | None:
        """What is to be said, None for nothing, of a state (n, 12) whose largest strain is known."""
        self._since += 1
        if not largest > self._factor * self._least or (self._since < APART and not largest > self._looked_at):
            return None
        q = state()
        over = strains(q) / self._bearable
        worst = int(over.argmax())
        if not over[worst] > self._factor:
            # of a body that may strain so much, behind which others are not seen: asked again where it does so by more, or
            # a while later
            self._looked_at, self._since = 2.0 * largest, 0
            return None
        self._factor = AGAIN * float(over[worst])
        return strain_warning(self.model, q, worst)


def strains(q: np.ndarray) -> np.ndarray:
    """(n,) strains |A A^T - 1|_F of bodies at q (n, 12)."""
    A = q[:, 3:].reshape(-1, 3, 3)
    return np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2))


def strain_warning(model: Model, q: np.ndarray, worst: int) -> str:
    """What is to be said of a body at q (n, 12).

    Under a given load strain and kappa are inverse to each other.
    """
    strain = strains(q)
    name, kappa = model.bodies.names[worst], model.bodies.kappa[worst]
    return (
        f"{name} strains by {strain[worst]:.2g} (|A A^T - 1|), its kappa is {kappa:.2g} Pa; "
        f"kappa = {kappa * strain[worst] / MEANT:.2g} would hold it to {MEANT:g}"
    )
