"""Motions of kinematic bodies set while a simulation runs: teleoperation, motion capture, co-simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.api.loads import jumps
from abd.by_bodies import of_body
from abd.model import Model, affine_state
from abd.rotations import polar, pose, rotation_vector, rotations
from abd.step.step import Stepper


@dataclass(frozen=True)
class Move:
    """Motion between two poses (4, 4) from time `begin` to `end` [s] at constant velocity and angular velocity.

    The body rests before and after.
    """

    begin: float
    end: float
    first: np.ndarray
    last: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        s = (t - self.begin) / (self.end - self.begin)
        if s >= 1.0:
            return self.last
        s = max(s, 0.0)
        R = rotations(s * self.turn[None])[0] @ self.first[:3, :3]
        return pose(R, (1.0 - s) * self.first[:3, 3] + s * self.last[:3, 3])

    @property
    def turn(self) -> np.ndarray:
        """(3,) rotation vector of the whole move [rad]."""
        return rotation_vector(self.last[:3, :3] @ self.first[:3, :3].T)


class Moves:
    """Moves of one simulation; they replace the scene's motions of their bodies."""

    def __init__(self, model: Model, stepper: Stepper):
        self._model, self._stepper, self._of_scene = model, stepper, dict(model.motions)

    def add(self, body: int, last: np.ndarray, duration: float) -> None:
        """Move a kinematic body from its current pose to the internal pose `last` (4, 4) within `duration` [s]."""
        stepper = self._stepper
        begin = float(of_body(stepper.time, body))
        q, qd = stepper.q[body], stepper.qd[body]
        move = Move(begin, begin + duration, pose(polar(q[3:].reshape(1, 3, 3))[0], q[:3]), last)
        self._model.motions[body] = move
        ahead = (affine_state(move(begin + 1e-3 * duration)) - affine_state(move.first)) / (1e-3 * duration)
        if jumps(qd[None], ahead[None])[0]:
            stepper.modes.jump([body], constraints=True)
        stepper.sleep.disturb()

    def remove(self, bodies: np.ndarray) -> None:
        """Restore the scene's motions of the bodies of a mask (n,)."""
        self._model.motions.update({body: own for body, own in self._of_scene.items() if bodies[body]})

    def saved(self) -> dict:
        """Return the moves by body name, each (26,): two times, then both poses without their last rows."""
        names, motions = self._model.bodies.names, self._model.motions
        return {
            names[body]: np.concatenate([[move.begin, move.end], move.first[:3].ravel(), move.last[:3].ravel()])
            for body, move in motions.items()
            if isinstance(move, Move)
        }

    def restore(self, saved: dict) -> None:
        """Replace all moves by those of a checkpoint; unknown bodies are ignored."""
        motions = self._model.motions
        motions.clear()
        motions.update(self._of_scene)
        for body, name in ((k, self._model.bodies.names[k]) for k in self._of_scene):
            if name in saved:
                numbers = np.asarray(saved[name], dtype=float)
                poses = np.tile(np.eye(4), (2, 1, 1))
                poses[:, :3] = numbers[2:].reshape(2, 3, 4)
                motions[body] = Move(float(numbers[0]), float(numbers[1]), *poses)
