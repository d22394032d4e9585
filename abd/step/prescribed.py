"""Kinematic bodies: motion along their arcs to their prescribed poses within a step, never through another body.

An augmented Lagrangian minimises the distance of bodies that contact has stopped, and sets each on its target once its arc is
collision-free. If an arc stays blocked, the step fails with ``blocked``, or the body lags behind if the settings allow it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import numpy as np

from abd.by_bodies import PerBody, of_body
from abd.errors import StepFailure
from abd.joint_list import JointList
from abd.joints.rows.sizes import reaches
from abd.model import Kind, Model, affine_state
from abd.step.joint_rows import speed_jumps

_log = logging.getLogger(__name__)

LARGEST_UPDATES = 40
"""Multiplier updates before a target counts as blocked."""
LEAST_PROGRESS = 0.9
"""Distance over the smallest one so far above which a pass has made no progress."""
LARGEST_STALLS = 6
"""Consecutive passes without progress after which a body counts as blocked; more would only compress the obstacle."""
GROWTH, STALLED_GROWTH = 2.0, 4.0
"""Growth of the penalty in a pass, and in one without progress: obstacles on a short lever have a large effective mass."""
LARGEST_PENALTY = 1e4
"""Largest penalty over that at the start of a step."""
REACHED_FRACTION = 1e-3
"""Largest missing fraction of a step's displacement if the arc to the target is blocked (as in rigid-ipc)."""
RATE_STEP = 1e-3
"""Step of the differences that determine velocities of motions, over the length of the substep."""
GAP_FRACTION = 0.5
"""Fraction of a small gap that must remain after a move to the target."""


class Prescribed:
    """The k kinematic bodies of a model.

    Attributes:
        bodies: (k,) indices.
        stride: (n,) largest distance prescribed for a step so far, part of the state.
    """

    def __init__(self, model: Model):
        self.model = model
        self.bodies = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)
        self.may_lag = model.settings.kinematic_block == "lag"
        self.stride = np.zeros(len(model.bodies))
        self._connected = _connected_bodies(model)
        self._weights = np.where(np.arange(12) < 3, 1.0, reaches(model)[:, None])
        self.late: np.ndarray = np.zeros(0, dtype=int)

    @property
    def any(self) -> bool:
        return bool(len(self.bodies))

    def jumping(self, stepper, h: PerBody) -> list[int]:
        """Return dynamic bodies at joints with prescribed bodies whose velocity jumps in a substep of h [s]."""
        found: list[int] = []
        for body, others in self._connected.items():
            motion, w = self.model.motions[body], self._weights[body]
            begin, length, last = (of_body(one, body) for one in (stepper.time, h, stepper.previous_h))
            q, qd, usual = w * stepper.q[body], w * stepper.qd[body], 0.0
            if last > 0.0:
                qd = (q - w * stepper.previous_q[body]) / last
                usual = float(np.linalg.norm(qd - w * stepper.previous_qd[body]))
            if speed_jumps(partial(_weighted_pose, motion, w), False, begin, length, last, (q, qd), usual):
                found += others
        return found

    def with_rates(self, qd: np.ndarray, time: PerBody, h: PerBody) -> np.ndarray:
        """Return velocities (n, 12) with those of the motions at `time` [s], the end of a substep of h [s]; scalars or (n,).

        Where a motion has a kink, its velocity is the one before. Bodies that lag behind keep their own."""
        if not self.any:
            return qd
        step = RATE_STEP * h
        now, before, earlier = (self.target_poses(time - k * step) for k in range(3))
        rates = (1.5 * now - 2.0 * before + 0.5 * earlier) / np.broadcast_to(step, len(qd))[self.bodies, None]
        on_time = ~np.isin(self.bodies, self.late)
        out = qd.copy()
        out[self.bodies[on_time]] = rates[on_time]
        return out

    def with_mean_rates(self, q: np.ndarray, qd: np.ndarray, previous_q: np.ndarray, h: PerBody) -> np.ndarray:
        """Return velocities (n, 12): of kinematic bodies the means over the last substep of h [s] from `previous_q` to q (n, 12),
        of others, and before the first substep (h = 0), the present ones qd (n, 12)."""
        length = np.broadcast_to(h, len(q))[:, None]
        moved = (length > 0.0) & self._mask(self.bodies)[:, None]
        return np.where(moved, (q - previous_q) / np.where(moved, length, 1.0), qd)

    def target_poses(self, time: PerBody) -> np.ndarray:
        """Return (k, 12) states prescribed for `time` [s], scalar or (n,)."""
        motions = self.model.motions
        return np.array([affine_state(motions[int(body)](of_body(time, body))) for body in self.bodies]).reshape(-1, 12)

    def minimise(
        self, backend, start: np.ndarray, target_poses: np.ndarray, time: PerBody, h: float, unit: float, minimise_step
    ) -> StepFailure | None:
        """Run `minimise_step` until every target is reached, as far as contacts allow.

        Args:
            start, target_poses: (k, 12) states at the beginning of the step of h [s] from `time` [s] and prescribed for its end.
            unit: penalty at the start of a step (`Scheme.penalty`).

        Returns:
            the failure of a minimisation, or ``blocked`` with the bodies and their missing distance [m].
        """
        n, bodies = len(self.stride), self.bodies
        lp, lA, penalty = np.zeros((n, 3)), np.zeros((n, 3, 3)), unit
        closest, stalls = np.inf, 0
        travel = np.maximum(_missing(target_poses, start), 1e-12)
        if self.may_lag:
            # the penalty of one nominal step for any distance limits the force
            nominal = _missing(self.target_poses(time + h), self.target_poses(time))
            stride, is_late = np.maximum(self.stride[bodies], nominal), travel > 1e-9
            self.stride = self.stride.copy()
            self.stride[bodies] = stride
            penalty = unit * float(np.clip(stride[is_late] / travel[is_late], 1e-2, 1.0).min(initial=1.0))
            backend.target_poses.set_penalty(penalty, lp, lA)
        allowed = np.maximum(REACHED_FRACTION * travel, np.broadcast_to(self.model.settings.tolerance * h, n)[bodies])
        for _ in range(LARGEST_UPDATES):
            self._snap(backend, target_poses)
            if (failure := minimise_step()) is not None:
                return failure
            q = backend.target_poses.read_prescribed()
            missing = _missing(target_poses, q)
            distant = missing > 0.0
            open_bodies = bodies[distant]
            if (missing[distant] <= allowed[distant]).all():
                self.late = open_bodies[:0]
                return None
            remaining = float(missing.max())
            stalls = stalls + 1 if remaining > LEAST_PROGRESS * closest else 0
            if stalls == LARGEST_STALLS:
                break
            closest = min(closest, remaining)
            if self.may_lag:
                break
            delta, weight = (q - target_poses)[distant], penalty * backend.constants.weight[open_bodies, None]
            lp[open_bodies] -= weight * delta[:, :3]
            lA[open_bodies] -= (weight * backend.constants.spread[open_bodies, None])[:, :, None] * delta[:, 3:].reshape(-1, 3, 3)
            penalty = min((STALLED_GROWTH if stalls else GROWTH) * penalty, LARGEST_PENALTY * unit)
            backend.target_poses.set_penalty(penalty, lp, lA)
            backend.iteration.evaluate()
        return self._report_blocked(open_bodies, float(missing.max()))

    def _report_blocked(self, bodies: np.ndarray, missing: float) -> StepFailure | None:
        """Warn that bodies (k,) lag behind their targets, or return the failure if they must not; missing: their distance [m]."""
        names = tuple(self.model.bodies.names[body] for body in bodies)
        if self.may_lag and not len(self.late):
            _log.warning("kinematic bodies are blocked and lag behind their targets: %s", ", ".join(names))
        self.late = bodies
        if self.may_lag:
            return None
        return StepFailure(
            "blocked",
            f"kinematic bodies {', '.join(names)} are blocked {missing:.3g} m before their targets; "
            "clear their path, or let them lag with solver.kinematic_block = 'lag'",
            bodies=names,
        )

    def _snap(self, backend, target_poses: np.ndarray) -> None:
        """Set bodies on their targets where the arc to them is collision-free, and hold them there.

        Moves that leave less than `GAP_FRACTION` of a small gap wait for later passes: a held body cannot relax.
        """
        distant = self.bodies[_missing(target_poses, backend.target_poses.read_prescribed()) > 0.0]
        if len(distant) and not self._move(backend, distant) and len(distant) > 1:
            for body in distant:
                self._move(backend, body)
        # an arc ends within rounding of its target
        missing = _missing(target_poses, backend.target_poses.read_prescribed())
        reached = missing <= 1e-14 * (1.0 + np.abs(target_poses).max(axis=1))
        held = self._mask(self.bodies[reached])
        backend.target_poses.snap_to_targets(held)
        backend.inactive.hold(held)
        backend.iteration.evaluate()

    def _mask(self, chosen: np.ndarray) -> np.ndarray:
        """Return the mask (n,) bool of chosen bodies."""
        marks = np.zeros(len(self.stride), dtype=bool)
        marks[chosen] = True
        return marks

    def _move(self, backend, chosen: np.ndarray) -> bool:
        """Move the chosen bodies along their arcs to their targets if that leaves a sufficient gap; return whether it did."""
        alpha = backend.arcs.aim_at_targets(self._mask(chosen))
        if not (alpha == 1.0).all():
            return False
        least_gap = GAP_FRACTION * min(_smallest_gap(backend), 1.0)
        backend.arcs.move(alpha)
        if _smallest_gap(backend) >= least_gap:
            return True
        backend.arcs.move_back()
        return False


def _connected_bodies(model: Model) -> dict[int, list[int]]:
    """Return the dynamic bodies that joints connect with each kinematic body that has any."""
    ends, kind = JointList.of(model.joints).bodies, np.append(model.bodies.kind, Kind.STATIC)  # the last entry is the world
    out: dict[int, list[int]] = {}
    for both in (ends, ends[:, ::-1]):
        for body, other in both[(kind[both] == (Kind.KINEMATIC, Kind.DYNAMIC)).all(axis=1)].tolist():
            out.setdefault(body, []).append(other)
    return out


def _weighted_pose(motion: Callable[[float], np.ndarray], weights: np.ndarray, time: float) -> np.ndarray:
    return weights * affine_state(motion(time))


def _smallest_gap(backend) -> float:
    """Return the smallest gap at the iterate [activations]."""
    return float(backend.touch.pair_gaps()[1].min(initial=np.inf))


def _missing(target_poses: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return (k,) largest entries of the differences between states q and target poses (k, 12)."""
    return np.abs(q - target_poses).max(axis=1)
