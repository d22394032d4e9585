"""Bodies that strain although they are meant to be rigid: said with the stiffness that would do."""

from __future__ import annotations

import numpy as np

from abd.model import Model

SAID = 1e-3
"""Strain |A A^T - 1|_F beyond which it is said."""
AGAIN = 10.0
"""How many times the strain has to grow until it is said again: under the larger load a larger kappa is needed."""
MEANT = 1e-5
"""Strain that the suggested stiffness leaves under the same loads."""


def strain_warning(model: Model, q: np.ndarray) -> str:
    """What is to be said of the most strained of the bodies at q (n, 12).

    Under a given load strain and kappa are inverse to each other.
    """
    A = q[:, 3:].reshape(-1, 3, 3)
    strain = np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2))
    worst = int(strain.argmax())
    name, kappa = model.bodies.names[worst], model.bodies.kappa[worst]
    return (
        f"{name} strains by {strain[worst]:.2g} (|A A^T - 1|), its kappa is {kappa:.2g} Pa; "
        f"kappa = {kappa * strain[worst] / MEANT:.2g} would hold it to {MEANT:g}"
    )
