"""Bodies that turn too far in a step, so that the direction of a turn or obstacles on the path would be ambiguous."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from abd.by_bodies import PerBody
from abd.errors import StepFailure
from abd.joints.rows.system import TURN, JointSystem
from abd.model import Model
from abd.potentials.integrators import longest
from abd.rotations import axial, rotation_vectors

_log = logging.getLogger(__name__)


class Turning:
    """Checks the turns of one model's bodies; each kind of warning is logged once."""

    def __init__(self, model: Model):
        self.names = model.bodies.names
        self.reset()

    def reset(self) -> None:
        self._turn_warned = self._warned = False

    def ahead(
        self,
        joints: JointSystem,
        time: PerBody,
        h: PerBody,
        fastest: float,
        state: Callable[[], tuple[np.ndarray, np.ndarray]],
    ) -> np.ndarray:
        """Return (n,) bool, bodies of angles of joint rows that turn by more than `TURN` in a substep, by drives or by speeds.

        Args:
            time, h: start and length of the substep [s], scalars or (n,); fastest: largest |dA/dt| of a body [1/s].
            state: returns positions and velocities (n, 12).
        """
        is_driven = np.abs(joints.asked_turns(time, h)) > TURN
        turned = np.zeros(len(self.names) + 1, dtype=bool)  # the last entry is the world
        for bodies in joints.row_bodies:
            turned[bodies[is_driven]] = True
        if 2.0 * longest(h) * fastest > TURN:
            table = joints.table
            fast = np.broadcast_to(h, len(self.names))[table.child] * np.abs(joints.turn_rates(*state())) > TURN
            turned[table.child[fast]] = turned[table.parent[fast]] = True
        return turned[:-1]

    def failure(self, turned: np.ndarray, islands: np.ndarray) -> StepFailure:
        """Return the failure of bodies (n,) that turn too far about a joint; islands: (n,) bool, all bodies joined to them."""
        body = self.names[int(np.flatnonzero(turned)[0])]
        message = f"'{body}' turns by more than {TURN:g} rad about a joint in a step"
        if not self._turn_warned:
            self._turn_warned = True
            _log.warning("%s, so that the frame is divided into substeps; a smaller solver.dt avoids this", message)
        return StepFailure("turn", message, concerned=islands)

    def warn(
        self, h: float | np.ndarray, fastest: float, states: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]
    ) -> None:
        """Warn about a body that turns by more than 1 rad in a step of h [s], scalar or (n,).

        Forces and contacts are evaluated at the ends of its path only, and on chords it is braked.

        Args:
            fastest: largest |dA/dt| of a body [1/s]: sqrt(2) times the angular velocity of a rigid one, on chords 1.2 times at
                1 rad; states: returns positions, velocities, and positions before the step (n, 12).
        """
        if self._warned or longest(h) * fastest < 1.0:
            return
        q, qd, previous = states()
        A, before = (one[:, 3:].reshape(-1, 3, 3) for one in (q, previous))
        rate = np.linalg.norm(axial(qd[:, 3:].reshape(-1, 3, 3) @ A.transpose(0, 2, 1)), axis=1)
        turned = np.linalg.norm(rotation_vectors(A @ before.transpose(0, 2, 1)), axis=1)
        turn = np.maximum(h * rate, turned)
        if turn.max() > 1.0:
            self._warned = True
            worst = int(turn.argmax())
            dt = np.broadcast_to(h, len(turn))[worst] / turn[worst]
            _log.warning("%s turns by %.2g rad in a step; use solver.dt = %.1g", self.names[worst], turn[worst], dt)
