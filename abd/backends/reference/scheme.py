"""The integrator's scheme of the step at work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.reference.numpy_motion import Target
from abd.potentials.integrators import Scheme, Schemes


@dataclass
class HostScheme:
    """The scheme, the modes of the bodies (n,) (`abd.potentials.integrators.Mode`) and the rows of its `motion` that they follow
    (n,), and what they make of the state."""

    rule: Scheme | Schemes | None = None
    mode: np.ndarray | None = None
    rows: np.ndarray | None = None
    target: Target | None = None
