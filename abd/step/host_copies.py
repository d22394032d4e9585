"""Host copies of the device state, read on demand and cached until the next step."""

from __future__ import annotations

import numpy as np

from abd.backends.protocol import Backend
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory


class HostCopies:
    """Cached copies of a backend's state, of the state before it, and of its joint memory."""

    def __init__(self, backend: Backend):
        self.backend = backend
        self.forget()

    def forget(self) -> None:
        """Drop all copies because the state has changed."""
        self._state = self._previous = self._memory = self._applied = None
        self._memory_changed = False

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) after the last substep."""
        if self._state is None:
            self._state = self.backend.states.read_state()
        return self._state

    @property
    def previous(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) before the last substep."""
        if self._previous is None:
            self._previous = self.backend.states.read_previous()
        return self._previous

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Set the velocities (n, 12) after the last step."""
        self.backend.states.set_velocity(velocity)
        self._state = self.state[0], velocity

    def set_previous(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Set the positions and velocities (n, 12) before the last step."""
        self.backend.states.set_previous(q, qd)
        self._previous = None

    @property
    def memory(self) -> JointMemory:
        """Joint memory, from which the next step starts."""
        if self._memory is None:
            self._memory = self.backend.rows.joint_memory()
        return self._memory

    @memory.setter
    def memory(self, memory: JointMemory) -> None:
        self._memory, self._memory_changed = memory, True

    def give_memory(self) -> None:
        """Load a joint memory that the host has set into the backend."""
        if self._memory_changed:
            self.backend.rows.load(self.memory)
            self._memory_changed = False

    @property
    def applied(self) -> Applied:
        """Laws of the joint rows in the last substep."""
        if self._applied is None:
            self._applied = self.backend.rows.applied_laws(self.memory)
        return self._applied

    @applied.setter
    def applied(self, applied: Applied) -> None:
        self._applied = applied
