"""Kinematic bodies: brought to their prescribed poses within a step, never through another body.

The start of a step already moves them along their arcs. One that contact held back is pulled by an augmented
Lagrangian, together with everything else, and set on its target as soon as the way is free; one whose way stays closed
is the named failure ``blocked``, or lags behind where the settings allow it.
"""

from __future__ import annotations

import logging

import numpy as np

from abd.by_bodies import OfBodies, of_body
from abd.errors import StepFailure
from abd.model import Kind, Model, affine_state

_log = logging.getLogger(__name__)

ROUNDS = 40
"""Multiplier updates before a target counts as blocked."""
STALLED = 0.9
"""Share of the distance beyond which a pass counts as one without progress."""
PATIENCE = 6
"""Idle rounds in a row after which the way counts as closed; more would only squeeze what stands in it."""
REACHED = 1e-3
"""Share of a step's displacement that may be missing when the way to the target is not free (as in rigid-ipc)."""


ROOM, CLOSE = 0.5, 0.05
"""Shares of a tight gap that a body leaves on its way to its target, and on the last part of it, within the tolerance."""


class Prescribed:
    """The k kinematic bodies of a model.

    Attributes:
        bodies: (k,) which they are.
        stride: (n,) largest distance that a step prescribed so far, part of the state.
    """

    def __init__(self, model: Model):
        self.model = model
        self.bodies = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)
        self.may_lag = model.settings.kinematic_block == "lag"
        self.stride = np.zeros(len(model.bodies))
        self.late: np.ndarray = np.zeros(0, dtype=int)

    @property
    def any(self) -> bool:
        """Whether there are kinematic bodies at all."""
        return bool(len(self.bodies))

    def target_poses(self, time: OfBodies) -> np.ndarray:
        """(k, 12) states prescribed for `time` [s], of all bodies or (n,)."""
        motions = self.model.motions
        return np.array([affine_state(motions[int(body)](of_body(time, body))) for body in self.bodies]).reshape(-1, 12)

    def minimise(
        self, backend, start: np.ndarray, target_poses: np.ndarray, nominal: np.ndarray, resolution: float, unit: float,
        minimise_step,
    ) -> StepFailure | None:  # fmt: skip
        """Run `minimise_step` until every target is reached, to what the contacts in its way allow.

        Args:
            start, target_poses: (k, 12) states at the beginning of the step and prescribed for its end.
            nominal: (k,) distance the prescribed motion itself covers in the step; resolution: what the step's
                tolerance lets a body miss [m]; unit: the pull that a step begins with (`Scheme.pull`).

        Returns:
            the failure of a minimisation, or ``blocked``, naming the bodies and what is missing [m].
        """
        n, bodies = len(self.stride), self.bodies
        lp, lA, pull = np.zeros((n, 3)), np.zeros((n, 3, 3)), unit
        closest, inactive = np.inf, 0
        travel = np.maximum(_missing(target_poses, start), 1e-12)
        if self.may_lag:
            # the spring of one nominal step, however far behind the body is: that limits the force
            stride, behind = np.maximum(self.stride[bodies], nominal), travel > 1e-9
            self.stride = self.stride.copy()
            self.stride[bodies] = stride
            pull = unit * float(np.clip(stride[behind] / travel[behind], 1e-2, 1.0).min(initial=1.0))
            backend.target_poses.set_pull(pull, lp, lA)
        enough = np.maximum(REACHED * travel, resolution)
        near = False
        for _ in range(ROUNDS):
            self._close(backend, target_poses, CLOSE if near else ROOM)
            if (failure := minimise_step()) is not None:
                return failure
            q = backend.target_poses.read_prescribed()
            missing = _missing(target_poses, q)
            far = missing > 0.0
            open_ones = bodies[far]
            if (missing[far] <= enough[far]).all():
                self.late = open_ones[:0]
                if near or self.may_lag or not far.any():
                    return None
                # what is missing is within the tolerance; once more, it may take all but a little of a tight gap
                near = True
                continue
            remaining = float(missing.max())
            inactive = inactive + 1 if remaining > STALLED * closest else 0
            if inactive == PATIENCE:
                break
            closest = min(closest, remaining)
            if self.may_lag:
                break
            weight, spread = (one[open_ones, None] for one in (backend.constants.weight, backend.constants.spread))
            delta = (q - target_poses)[far]
            lp[open_ones] -= pull * weight * delta[:, :3]
            lA[open_ones] -= (pull * weight * spread)[:, :, None] * delta[:, 3:].reshape(-1, 3, 3)
            pull = min(2.0 * pull, 1e4 * unit)
            backend.target_poses.set_pull(pull, lp, lA)
            backend.arcs.evaluate()
        names = tuple(self.model.bodies.names[b] for b in open_ones)
        if self.may_lag and not len(self.late):
            _log.warning("blocked on their way, and lagging behind their targets: %s", ", ".join(names))
        self.late = open_ones
        if not self.may_lag:
            return StepFailure(
                "blocked",
                f"kinematic bodies {', '.join(names)} are blocked {missing.max():.3g} m before their targets; "
                "give them room, or let them lag with solver.kinematic_block = 'lag'",
                bodies=names,
            )
        return None

    def nominal(self, time: OfBodies, h: float) -> np.ndarray:
        """(k,) distances between the targets for `time` and for `time` + h."""
        return _missing(self.target_poses(time + h), self.target_poses(time))

    def _close(self, backend, target_poses: np.ndarray, room: float) -> None:
        """Set bodies on their targets where the arc to them is free, and hold them there.

        A move that would leave less than a share `room` of a tight gap is left to the next rounds: a barrier squeezed by a
        body that is held has no way out.
        """
        far = self.bodies[_missing(target_poses, backend.target_poses.read_prescribed()) > 0.0]
        if len(far) and not self._move(backend, far, room) and len(far) > 1:
            for body in far:
                self._move(backend, body, room)
        # an arc ends within rounding of its goal
        missing = _missing(target_poses, backend.target_poses.read_prescribed())
        reached = missing <= 1e-14 * (1.0 + np.abs(target_poses).max(axis=1))
        held = self._marked(self.bodies[reached])
        backend.target_poses.snap_to_targets(held)
        backend.inactive.hold(held)
        backend.arcs.evaluate()

    def _marked(self, chosen: np.ndarray) -> np.ndarray:
        """(n,) bool, which bodies are chosen."""
        marks = np.zeros(len(self.stride), dtype=bool)
        marks[chosen] = True
        return marks

    def _move(self, backend, chosen: np.ndarray, room: float) -> bool:
        """Move the chosen bodies along their arcs to their target poses, if that leaves room; returns whether it did."""
        alpha = backend.arcs.follow_velocity(self._marked(chosen))
        if not (alpha == 1.0).all():
            return False
        roomy = room * min(_closest(backend), 1.0)
        backend.arcs.try_step(alpha)
        backend.arcs.accept()
        if _closest(backend) >= roomy:
            return True
        backend.arcs.accept()
        return False


def _closest(backend) -> float:
    """Smallest gap at the iterate, in activations."""
    return float(backend.touch.island_gaps().min(initial=np.inf))


def _missing(target_poses: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(k,) largest entry of the difference between states q and target poses (k, 12)."""
    return np.abs(q - target_poses).max(axis=1)
