"""Positions and velocities of the bodies, on the host."""

from __future__ import annotations

import numpy as np

from abd.backends.answers import OnHost


class States:
    """Implementation of `abd.backends.protocol.States`.

    Attributes:
        now, before: (n, 12) states of the last two steps; velocity, earlier: their rates; forces: force history.
    """

    def __init__(self, backend):
        self.n, self.at, bodies = backend.n, backend.at, backend.model.bodies
        self.load_state(bodies.q, bodies.qd, bodies.q, bodies.qd)

    def load_state(
        self, q: np.ndarray, qd: np.ndarray, previous_q: np.ndarray, previous_qd: np.ndarray,
        forces: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.forces = np.zeros((self.n, 12)) if forces is None else forces.copy()
        self.now, self.before = q.copy(), previous_q.copy()
        self.velocity, self.earlier = qd.copy(), previous_qd.copy()
        self.abandon()

    def abandon(self) -> None:
        self.at.q, self.at.trial = self.now.copy(), self.now.copy()

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        return self.now.copy(), self.velocity.copy()

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        return self.before.copy(), self.earlier.copy()

    def read_positions(self) -> np.ndarray:
        return self.at.q.copy()

    def copy_positions(self) -> OnHost:
        return OnHost(self.read_positions())

    def read_forces(self) -> np.ndarray:
        return self.forces.copy()

    def set_velocity(self, velocity: np.ndarray) -> None:
        self.velocity = velocity.copy()

    def device_positions(self) -> np.ndarray:
        return self.at.q
