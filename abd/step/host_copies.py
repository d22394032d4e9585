"""Host copies of the device state, read on demand and cached until the next step."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from abd.backends.protocol import Backend
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory

States = tuple[np.ndarray, np.ndarray]


class HostCopies:
    """Cached copies of a backend's state, of the state before it, and of its joint memory.

    Attributes:
        present, previous: positions and velocities (n, 12) after and before the last substep.
        memory: joint memory, from which the next substep starts; applied: laws of the joint rows in the last substep.
    """

    def __init__(self, backend: Backend):
        self.backend = backend
        self.forget_copies()

    def forget_copies(self) -> None:
        """Drop all copies because the state has changed."""
        for name in ("present", "previous", "applied"):
            self.__dict__.pop(name, None)
        self._memory, self._memory_changed = None, False

    @cached_property
    def present(self) -> States:
        return self.backend.states.read_state()

    @cached_property
    def previous(self) -> States:
        return self.backend.states.read_previous()

    @cached_property
    def applied(self) -> Applied:
        return self.backend.rows.applied_laws(self.memory)

    @property
    def q(self) -> np.ndarray:
        return self.present[0]

    @property
    def qd(self) -> np.ndarray:
        return self.present[1]

    @property
    def previous_q(self) -> np.ndarray:
        return self.previous[0]

    @property
    def previous_qd(self) -> np.ndarray:
        return self.previous[1]

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Set the velocities (n, 12) after the last step."""
        self.backend.states.set_velocity(velocity)
        self.present = self.q, velocity

    @property
    def memory(self) -> JointMemory:
        if self._memory is None:
            self._memory = self.backend.rows.joint_memory()
        return self._memory

    @memory.setter
    def memory(self, memory: JointMemory) -> None:
        self._memory, self._memory_changed = memory, True

    def load_memory(self) -> None:
        """Load a joint memory that the host has set into the backend."""
        if self._memory_changed:
            self.backend.rows.load(self.memory)
            self._memory_changed = False
