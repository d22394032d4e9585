"""Contact stiffness kappa_c: given, or chosen and adapted.

In the incremental potential the barrier stands as ``kappa_c c h^2 sum b``. Between bounds the stiffness follows the
gaps: after a step that ended with all contacts in the outer fifth of d_hat the next one has half of it, after one that
ended deep within, four times. In the outer rim a contact is switched on and off rather than loaded, which costs Newton one
iteration after the other. The lower bound is the force that stops the average mass from some d_hat per step at half a
gap.

Where d_hat is not small against the scene, or bodies may sleep, whose gaps stay what they are, that bound is above the
one of Li et al. 2020 (Incremental Potential Contact, supplement 5): the barrier has, at a gap of 1e-8 of the scene's
diagonal, 1e11 times the stiffness of the average mass; the upper bound is 100 times that. Between those two the
stiffness balances the forces at the start of a step, without inertia: the momentum of an impact would harden all
contacts.
"""

from __future__ import annotations

import numpy as np

from abd.model import Kind, Model
from abd.potentials.barrier import barrier

TIGHT_GAP = 1e-2
"""Gap, in d_hat, below which a contact that still closes stiffens the barrier: the logarithm grows too slowly there."""
ROOMY, NARROW = 0.8, 0.3
"""Smallest gap at the end of a step, in d_hat, beyond which the stiffness falls and below which it grows."""
SOFTEST = 100.0
"""Speed, in d_hat per step, from which the force at half a gap stops the average mass within the step, at least."""


class ContactStiffness:
    """Chooses kappa_c for a step and doubles it when contacts get tight.

    Attributes:
        softest, lowest: lower bounds, where it follows the gaps and where it balances the forces [J/m^4]; highest: the
            upper one of both.
    """

    def __init__(self, model: Model):
        settings = model.settings
        self.fixed = settings.contact_stiffness
        self.d_hat = settings.d_hat
        dynamic = model.bodies.kind == Kind.DYNAMIC
        mass = float(model.bodies.mass[dynamic].mean()) if dynamic.any() else 1.0
        gap = min(1e-8 * settings.diagonal, np.sqrt(0.5) * settings.d_hat)
        curvature = float(barrier(settings.barrier, np.array([gap * gap]), settings.d_hat)[2][0])
        # physical, for the nominal step: a substep, or another integrator, must not change the force that acts
        self.lowest = 1e11 * mass / (4.0 * gap * gap * curvature) / settings.dt**2
        self.highest = 100.0 * self.lowest
        xi = settings.minimum_separation
        half = xi + 0.5 * settings.d_hat
        slope = -2.0 * half * float(barrier(settings.barrier, np.array([half * half]), settings.d_hat, xi)[1][0])
        follows = SOFTEST * mass * settings.d_hat / settings.dt**2 / slope
        self.softest = self.lowest if settings.sleep_speed > 0.0 else min(self.lowest, follows)
        self.value = self.fixed if self.fixed is not None else 0.0
        self.scale = 1.0
        self.gap = np.inf

    def begin(self, backend, value: float, ch2: float) -> float:
        """Stiffness to start a step with [J/m^4]; `value` is the one of the last step, 0 at the beginning."""
        self.scale = ch2
        self.gap = np.inf
        if self.fixed is None:
            self.value = float(np.clip(value, self.softest, self.highest))
        return self.value

    def balance(self, backend, gap: float) -> bool:
        """Once the step has its start, and friction the loads that acted at its end: the stiffness for this step.

        Args:
            gap: smallest one at the end of the last step [m].

        Returns:
            whether the iterate is linearised now.
        """
        if self.fixed is not None:
            return False
        if self.softest < self.lowest:
            wanted = self.following(gap)
            if wanted != self.value:
                self._set(backend, wanted)
            return False
        opposing, square = backend.stiffness_balance()
        if square == 0.0:
            return True
        wanted = float(np.clip(-opposing / square / self.scale, self.lowest, self.highest))
        if wanted == self.value:
            return True
        self._set(backend, wanted)
        return False

    def following(self, gap: float) -> float:
        """Stiffness after a step that ended with a smallest gap [m]."""
        if gap < NARROW * self.d_hat:
            return min(4.0 * self.value, self.highest)
        if ROOMY * self.d_hat < gap < self.d_hat:
            return max(0.5 * self.value, self.softest)
        return self.value

    def after_iteration(self, backend, alpha: np.ndarray, moving: np.ndarray) -> bool:
        """As `adapt`, with the accepted steps of all islands (islands,), of which some are still `moving`."""
        if self.fixed is not None or not moving.any():
            return False
        return self.adapt(backend, float(backend.island_gaps()[moving].min()), float(alpha[moving].min()))

    def adapt(self, backend, gap: float, least: float) -> bool:
        """Double the stiffness where a tight gap fails to open or a step was capped to zero; True if it changed.

        Args:
            gap: smallest one of the islands that still move [m]; least: their smallest accepted step.
        """
        if self.fixed is not None:
            return False
        tight = gap < TIGHT_GAP * self.d_hat and gap <= self.gap
        blocked = least < 1e-6 and np.isfinite(gap)
        self.gap = gap
        if not (tight or blocked) or self.value >= self.highest:
            return False
        self._set(backend, min(2.0 * self.value, self.highest))
        return True

    def _set(self, backend, value: float) -> None:
        self.value = value
        backend.set_stiffness(value)
        backend.evaluate()
