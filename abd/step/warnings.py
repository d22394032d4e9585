"""Warnings about bodies that strain although they should be rigid, or turn too far in a step, with a remedy."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from abd.model import Model
from abd.potentials.integrators import longest
from abd.rotations import axial, rotation_vectors

_log = logging.getLogger(__name__)

FREE_STRAIN = 1e-3
"""Strain |A A^T - 1|_F above which a body without joints causes a warning; impacts may strain it up to that."""
JOINTED_STRAIN = 1e-5
"""The same for a body with joints, because mechanisms depend on its rigidity."""
REPEAT_FACTOR = 10.0
"""Growth of the strain that repeats the warning: a larger load needs a larger kappa."""
CHECK_INTERVAL = 10
"""Steps between checks while a body with a higher limit has the largest strain."""
JAMMED_STRAIN = 1e-2
"""Strain beyond which a drive probably works against a mechanism that cannot move."""
SUGGESTED_STRAIN = 1e-6
"""Strain with the suggested stiffness under the same loads, below the limits so that loads may grow."""


class Warnings:
    """Warns about strained bodies once, and again after the strain has grown much; warns once about a turn.

    Args:
        jointed: (n,) bool, bodies at joints.
    """

    def __init__(self, model: Model, jointed: np.ndarray):
        self.model = model
        self._limits = np.where(jointed, JOINTED_STRAIN, FREE_STRAIN)
        self.reset()

    def reset(self) -> None:
        self._factor, self._turn_warned = 1.0, False
        self._checked, self._steps = 0.0, 0
        self._smallest_limit = float(self._limits.min(initial=FREE_STRAIN))

    def check_strain(self, largest: float, state: Callable[[], np.ndarray]) -> None:
        """Warn about a state (n, 12) with the largest strain `largest`."""
        self._steps += 1
        if not largest > self._factor * self._smallest_limit or (self._steps < CHECK_INTERVAL and not largest > self._checked):
            return
        q = state()
        over = strains(q) / self._limits
        worst = int(over.argmax())
        if not over[worst] > self._factor:
            # a body within its limit hides others: check again at a larger strain, or after some steps
            self._checked, self._steps = 2.0 * largest, 0
            return
        self._factor = REPEAT_FACTOR * float(over[worst])
        _log.warning("%s", strain_warning(self.model, q, worst))

    def check_turns(
        self, h: float | np.ndarray, fastest: float, states: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]
    ) -> None:
        """Warn once about a body that turns by more than 1 rad in a step of h [s], scalar or (n,).

        Forces and contacts are evaluated at the ends of its path only, and on chords it is braked.

        Args:
            fastest: largest |dA/dt| of a body [1/s]: sqrt(2) times the angular velocity of a rigid one, on chords 1.2 times at
                1 rad; states: returns positions, velocities, and positions before the step (n, 12).
        """
        if self._turn_warned or longest(h) * fastest < 1.0:
            return
        q, qd, previous = states()
        A, before = (one[:, 3:].reshape(-1, 3, 3) for one in (q, previous))
        rate = np.linalg.norm(axial(qd[:, 3:].reshape(-1, 3, 3) @ A.transpose(0, 2, 1)), axis=1)
        turned = np.linalg.norm(rotation_vectors(A @ before.transpose(0, 2, 1)), axis=1)
        turn = np.maximum(h * rate, turned)
        if turn.max() > 1.0:
            self._turn_warned = True
            worst = int(turn.argmax())
            dt = np.broadcast_to(h, len(turn))[worst] / turn[worst]
            _log.warning("%s turns by %.2g rad in a step; use solver.dt = %.1g", self.model.bodies.names[worst], turn[worst], dt)


def strains(q: np.ndarray) -> np.ndarray:
    """Return (n,) strains |A A^T - 1|_F of bodies at q (n, 12)."""
    A = q[:, 3:].reshape(-1, 3, 3)
    return np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2))


def strain_warning(model: Model, q: np.ndarray, worst: int) -> str:
    """Return the warning about body `worst` at q (n, 12). Under a given load, strain is inverse to kappa."""
    strain = strains(q)
    name, kappa = model.bodies.names[worst], model.bodies.kappa[worst]
    jam = ""
    if strain[worst] > JAMMED_STRAIN and len(model.joints):
        jam = "; or a drive without effort works against a limit or a mechanism that cannot move"
    return (
        f"{name} strains by {strain[worst]:.2g} (|A A^T - 1|), its kappa is {kappa:.2g} Pa; "
        f"kappa = {kappa * strain[worst] / SUGGESTED_STRAIN:.2g} would limit it to {SUGGESTED_STRAIN:g}{jam}"
    )
