"""Warnings about bodies that strain although they should be rigid, or turn too far in a step, with a remedy."""

from __future__ import annotations

import logging

import numpy as np

from abd.energies import spin
from abd.model import Model
from abd.potentials.integrators import longest
from abd.rotations import rotation_vectors
from abd.step.host_copies import HostCopies

_log = logging.getLogger(__name__)

FREE_STRAIN = 1e-3
"""Strain |A A^T - 1|_F above which a body without joints causes a warning; impacts may strain it up to that."""
JOINTED_STRAIN = 1e-5
"""The same for a body with joints, because mechanisms depend on its rigidity."""
REPEAT_FACTOR = 10.0
"""Growth of the strain that repeats the warning: a larger load needs a larger kappa."""
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
        self._smallest_limit = float(self._limits.min(initial=FREE_STRAIN))
        self._factor, self._turn_warned = 1.0, False

    def check_strain(self, copies: HostCopies, largest: float) -> None:
        """Warn about a state with the largest strain `largest`. Under a given load, strain is inverse to kappa."""
        if not largest > self._factor * self._smallest_limit:
            return
        A = copies.q[:, 3:].reshape(-1, 3, 3)
        strains = np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2))
        worst = int((strains / self._limits).argmax())
        over, strain = float(strains[worst] / self._limits[worst]), strains[worst]
        if not over > self._factor:
            return
        self._factor = REPEAT_FACTOR * over
        name, kappa, jam = self.model.bodies.names[worst], self.model.bodies.kappa[worst], ""
        if strain > JAMMED_STRAIN and len(self.model.joints):
            jam = "; or a drive without effort works against a limit or a mechanism that cannot move"
        _log.warning(
            "%s strains by %.2g (|A A^T - 1|), its kappa is %.2g Pa; kappa = %.2g would limit it to %g%s",
            name, strain, kappa, kappa * strain / SUGGESTED_STRAIN, SUGGESTED_STRAIN, jam,
        )  # fmt: skip

    def check_turns(self, copies: HostCopies, h: float | np.ndarray, fastest: float) -> None:
        """Warn once about a body that turns by more than 1 rad in a step of h [s], scalar or (n,).

        Forces and contacts are evaluated at the ends of its path only, and on chords it is braked.
        fastest: largest |dA/dt| of a body [1/s]: sqrt(2) times the angular velocity of a rigid one, on chords 1.2 times at 1 rad.
        """
        if self._turn_warned or longest(h) * fastest < 1.0:
            return
        A, before = (q[:, 3:].reshape(-1, 3, 3) for q in (copies.q, copies.previous_q))
        turned = np.linalg.norm(rotation_vectors(A @ before.transpose(0, 2, 1)), axis=1)
        turn = np.maximum(h * np.linalg.norm(spin(copies.q, copies.qd), axis=1), turned)
        if turn.max() > 1.0:
            self._turn_warned = True
            worst = int(turn.argmax())
            dt = np.broadcast_to(h, len(turn))[worst] / turn[worst]
            _log.warning("%s turns by %.2g rad in a step; use solver.dt = %.1g", self.model.bodies.names[worst], turn[worst], dt)
