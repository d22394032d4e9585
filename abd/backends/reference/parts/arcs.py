"""Paths along arcs: their collision-free lengths, trial energies on them, and the check of the swept paths of a step."""

from __future__ import annotations

import numpy as np

from abd.backends.answers import UnprovenPaths
from abd.backends.body_data import BodyData
from abd.backends.reference.dense_solver import DenseSolver
from abd.backends.reference.iterate import Islands
from abd.backends.reference.numpy_bodies import Boxes, maps, positions, state, turning
from abd.backends.reference.numpy_motion import HostScheme
from abd.backends.reference.parts.conditions import Inactive
from abd.backends.reference.parts.states import States
from abd.backends.reference.parts.touch import Touch
from abd.backends.reference.potential import Potential
from abd.contact.path import Path, between, direction_path
from abd.errors import StepFailure
from abd.joints.rows.system import LIMIT_CUTS
from abd.model import Kind
from abd.rotations import axial, rotation_vectors, rotations

STRAIN = 0.5
"""Largest strain |alpha S| of a step."""


class Arcs:
    """Implementation of `abd.backends.protocol.Arcs`; path: present path of the bodies."""

    def __init__(
        self, constants: BodyData, potential: Potential, scheme: HostScheme, inactive: Inactive, touch: Touch, boxes: Boxes
    ):
        self.constants, self.potential, self.scheme = constants, potential, scheme
        self.inactive, self.touch, self.boxes = inactive, touch, boxes
        self.at, self.islands, self.contacts = potential.at, potential.islands, potential.contacts
        self.all_bodies, self.turning = np.arange(potential.n), turning(constants)

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n along the predicted motion (`numpy_motion.Target`); return the largest alpha per island.

        Prescribed bodies move to their target poses, with strain if contact strained them. `moving` (n,): 0 no motion, 1 motion,
        2 in contact: motion without the force term, but with the forces of the last step.
        """
        data, step, target = self.constants, self.at.step, self.scheme.target
        p, A = positions(self.at.q), maps(self.at.q)
        inverse = np.linalg.inv(A)
        pushed = ((data.mass > 0.0) & (moving == 1))[:, None]
        push = target.load[:, None] * (step.gravity + data.force / np.where(pushed, data.mass[:, None], 1.0))
        touching = (moving == 2)[:, None]
        push = np.where(pushed, push, np.where(touching, target.push, 0.0))
        fall = data.translation * (target.dp + push)
        turn = target.w + np.where(touching, target.twist, 0.0)
        dynamic = (data.kind == Kind.DYNAMIC)[:, None]
        dp = np.where(dynamic, fall, step.pk - p)
        to_target = step.Ak @ inverse
        w = np.where(dynamic, turn, rotation_vectors(to_target))
        S = np.where(dynamic[:, :, None], 0.0, rotations(-w) @ to_target - np.eye(3))
        is_moving = ((moving != 0) & ~step.held)[:, None]
        moves = np.where(is_moving, dp, 0.0), np.where(is_moving, w, 0.0), np.where(is_moving[:, :, None], S, 0.0)
        path = Path(p, A, *moves, self.boxes.radii(self.at.q))
        return self._collision_free(path, np.ones(self.islands.count))

    def follow_direction(self, linear: DenseSolver) -> np.ndarray:
        """Set the path along the last direction of the solver, `linear`; return the largest safe alpha per island, at most 1.

        Bodies of settled islands do not move. The islands may change (`Numbering.host`); the result is for the new ones.
        """
        linear.direction = np.where(self.inactive.done[self.islands.host, None], 0.0, linear.direction)
        path = direction_path(self.at.q, linear.direction, self.turning, self.boxes.radii(self.at.q))
        strain = path.strain
        limits = np.where(strain > STRAIN, STRAIN / np.maximum(strain, STRAIN), 1.0)
        return self._collision_free(path, self.islands.minima(limits, self.all_bodies, np.ones(self.islands.count)))

    def _collision_free(self, path: Path, limit: np.ndarray) -> np.ndarray:
        self.path = path
        self.contacts.search(path)
        self.evaluate()
        before = self.islands.host
        if self.islands.renumber(self.inactive.mobile, self.touch.candidate_pairs()):
            limit = self.islands.carry(before, limit, np.minimum)
            self.inactive.done = self.islands.carry(before, self.inactive.done, np.logical_and)
        times = self.contacts.times_of_impact(path, limit[self.islands.host])
        return self._within_limits(self.islands.minima(times, self.contacts.owners, limit))

    def _within_limits(self, alpha: np.ndarray) -> np.ndarray:
        """Return the largest fractions per island that keep the gaps of all joint limits open, found by secants."""
        joints = self.potential.joints
        if not joints.system.has_barriers:
            return alpha
        before = joints.gaps(self.at.q)
        for _ in range(LIMIT_CUTS):
            fraction = joints.open_fractions(before, joints.gaps(self._along_path(alpha)))
            fractions = self.islands.minima(fraction, joints.owners, np.ones(self.islands.count))
            alpha = alpha * fractions
            if (fractions == 1.0).all():
                return alpha
        raise StepFailure("limits", f"no step satisfies the joint limits after {LIMIT_CUTS} reductions")

    def _along_path(self, alpha: np.ndarray) -> np.ndarray:
        """Return (n, 12) states at path(alpha)."""
        at = alpha[self.islands.host]
        return state(self.path.origins(self.all_bodies, at), self.path.maps(self.all_bodies, at))

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.at.trial = self._along_path(alpha)
        change, size = self.potential.changes()
        return self.islands.sums(change, self.potential.owners), self.islands.sums(size, self.potential.owners)

    def accept(self) -> None:
        at = self.at
        at.q, at.trial = at.trial, at.q
        self.evaluate()

    def evaluate(self) -> None:
        self.potential.evaluate()


class SweptPaths:
    """Implementation of `abd.backends.protocol.SweptPaths`."""

    def __init__(self, states: States, touch: Touch, inactive: Inactive, boxes: Boxes, islands: Islands):
        self.states, self.touch, self.inactive, self.boxes, self.islands = states, touch, inactive, boxes, islands

    def unproven(self, h: float | np.ndarray, converged: np.ndarray | None = None) -> UnprovenPaths:
        states = self.states
        begin, turned = states.now, np.reshape(h, (-1, 1)) * axial(maps(states.velocity) @ np.linalg.inv(maps(states.now)))
        if converged is not None:
            # a held body may have reached its target already; its swept path is still checked
            is_stationary = converged[self.islands.host] & self.inactive.mobile
            begin, turned = (
                np.where(is_stationary[:, None], stationary, one) for stationary, one in ((states.at.q, begin), (0.0, turned))
            )
        return self.touch.contacts.unproven(between(begin, states.at.q, turned, self.boxes.radii(begin)))
