"""Kinematic bodies: brought to their prescribed poses within a step, never through another body.

The start of a step already moves them along their arcs. One that contact held back is pulled by an augmented
Lagrangian, together with everything else, and set on its target as soon as the way is free; one whose way stays closed
is the named failure ``blocked``, or lags behind where the settings allow it.
"""

from __future__ import annotations

import logging

import numpy as np

from abd.errors import StepFailure
from abd.model import Kind, Model, affine_state

_log = logging.getLogger(__name__)

ROUNDS = 40
"""Multiplier updates before a target counts as blocked."""
STALLED = 0.9
"""Share of the distance beyond which a round counts as idle."""
PATIENCE = 6
"""Idle rounds in a row after which the way counts as closed; more would only squeeze what stands in it."""
REACHED = 1e-3
"""Share of a step's displacement that may be missing when the way to the target is not free (as in rigid-ipc)."""


class Prescribed:
    """The kinematic bodies of a model.

    Attributes:
        pace: (n,) largest distance a step prescribed so far, part of the state.
    """

    def __init__(self, model: Model):
        self.model = model
        self.bodies = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)
        self.mask = np.zeros(len(model.bodies), dtype=bool)
        self.mask[self.bodies] = True
        self.may_lag = model.settings.kinematic_block == "lag"
        self.pace = np.zeros(len(model.bodies))
        self.late: np.ndarray = np.zeros(0, dtype=int)

    @property
    def any(self) -> bool:
        """Whether there are kinematic bodies at all."""
        return bool(len(self.bodies))

    def goals(self, time: float, q: np.ndarray) -> np.ndarray:
        """(n, 12) states prescribed for `time` [s]; other bodies as in q (n, 12)."""
        goals = q.copy()
        for body in self.bodies:
            goals[body] = affine_state(self.model.motions[int(body)](time))
        return goals

    def minimise(
        self, backend, start: np.ndarray, goals: np.ndarray, nominal: np.ndarray, resolution: float, minimise_step
    ) -> None:
        """Run `minimise_step` until every target is reached, to what the contacts in its way allow.

        Args:
            start, goals: (n, 12) states at the beginning of the step and prescribed for its end.
            nominal: (n,) distance the prescribed motion itself covers in the step; resolution: what the step's
                tolerance lets a body miss [m].

        Raises:
            StepFailure: ``blocked``, naming the bodies and what is missing [m].
        """
        n = len(self.mask)
        lp, lA, pull = np.zeros((n, 3)), np.zeros((n, 3, 3)), 1.0
        closest, idle = np.inf, 0
        travel = np.maximum(self._missing(goals, start), 1e-12)
        if self.may_lag:
            # the spring of one nominal step, however far behind the body is: that limits the force
            self.pace = np.maximum(self.pace, nominal)
            behind = self.bodies[travel[self.bodies] > 1e-9]
            pull = float(np.clip(self.pace[behind] / travel[behind], 1e-2, 1.0).min(initial=1.0))
            backend.set_pull(pull, lp, lA)
        enough = np.maximum(REACHED * travel, resolution)
        for _ in range(ROUNDS):
            self._close(backend, goals)
            minimise_step()
            q = backend.read_positions()
            missing = self._missing(goals, q)
            open_ones = self.bodies[missing[self.bodies] > 0.0]
            if (missing[open_ones] <= enough[open_ones]).all():
                self.late = open_ones[:0]
                return
            remaining = float(missing[open_ones].max())
            idle = idle + 1 if remaining > STALLED * closest else 0
            if idle == PATIENCE:
                break
            closest = min(closest, remaining)
            if self.may_lag:
                break
            weight, spread = backend.constants.weight, backend.constants.spread
            delta = q - goals
            lp[open_ones] -= (pull * weight)[open_ones, None] * delta[open_ones, :3]
            lA[open_ones] -= (pull * weight * spread)[open_ones, None, None] * delta[open_ones, 3:].reshape(-1, 3, 3)
            pull = min(2.0 * pull, 1e4)
            backend.set_pull(pull, lp, lA)
            backend.evaluate()
        names = tuple(self.model.bodies.names[b] for b in open_ones)
        if self.may_lag and not len(self.late):
            _log.warning("blocked on their way, and lagging behind their targets: %s", ", ".join(names))
        self.late = open_ones
        if not self.may_lag:
            raise StepFailure(
                "blocked",
                f"kinematic bodies {', '.join(names)} are blocked {missing[open_ones].max():.3g} m before their targets; "
                "give them room, or let them lag with solver.kinematic_block = 'lag'",
                bodies=names,
            )

    def nominal(self, time: float, h: float, q: np.ndarray) -> np.ndarray:
        """(n,) distances between the targets for `time` and for `time` + h."""
        return self._missing(self.goals(time + h, q), self.goals(time, q))

    def _missing(self, goals: np.ndarray, q: np.ndarray) -> np.ndarray:
        """(n,) largest entry of the difference to the goals, zero for other bodies."""
        return np.where(self.mask, np.abs(q - goals).max(axis=1), 0.0)

    def _close(self, backend, goals: np.ndarray) -> None:
        """Set bodies on their targets where the arc to them is free, and hold them there.

        A move that would take more than half of a tight gap is left to the next rounds: a barrier squeezed by a body
        that is held has no way out.
        """
        far = self.mask & (self._missing(goals, backend.read_positions()) > 0.0)
        if far.any() and not self._move(backend, far) and far.sum() > 1:
            for body in np.flatnonzero(far):
                self._move(backend, np.arange(len(far)) == body)
        # an arc ends within rounding of its goal
        held = self.mask & (self._missing(goals, backend.read_positions()) <= 1e-14 * (1.0 + np.abs(goals).max(axis=1)))
        backend.snap_to_goals(held)
        backend.hold(held)
        backend.evaluate()

    def _move(self, backend, chosen: np.ndarray) -> bool:
        """Move the chosen bodies along their arcs to their goals, if that leaves room; returns whether it did."""
        alpha = backend.follow_velocity(1.0, chosen)
        if not (alpha == 1.0).all():
            return False
        roomy = 0.5 * min(backend.smallest_gap(), backend.d_hat)
        backend.try_step(alpha)
        backend.accept()
        if backend.smallest_gap() >= roomy:
            return True
        backend.accept()
        return False
