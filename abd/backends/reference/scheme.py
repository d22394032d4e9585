"""The integrator's scheme of the present step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.reference.numpy_motion import Target
from abd.potentials.integrators import Scheme, Schemes


@dataclass
class HostScheme:
    """The scheme, the modes (n,) of the bodies (`abd.potentials.integrators.Mode`), their rows (n,) of its `motion`, and the
    target."""

    rule: Scheme | Schemes | None = None
    mode: np.ndarray | None = None
    rows: np.ndarray | None = None
    target: Target | None = None
