"""Positions and velocities of the bodies on a device."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import OnHost
from abd.backends.device.graphs import Graphs
from abd.backends.device.read_back import PendingCopy, ReadBack
from abd.backends.device.upload import allocate_struct
from cuda_kernels.bodies import poses
from cuda_kernels.bodies.affine import Pose


class States:
    """Implementation of `abd.backends.protocol.States`.

    Attributes:
        now, before: poses after the last two steps; velocity, earlier: (n, 12) their rates; forces: (n, 12) force history.
        q: (n, 12) packed pose for the host and for users' kernels.
    """

    def __init__(self, backend):
        self.backend, self.at, self.scratch = backend, backend.at, backend.scratch
        device, n = backend.device, backend.n
        self.n, self.device = n, device
        self.now, self.before = allocate_struct(Pose, n, device), allocate_struct(Pose, n, device)
        self.velocity, self.earlier, self.forces, self.q = (device.zeros((n, 12), wp.float64) for _ in range(4))
        self._graphs, self._read_back = Graphs(device), ReadBack(device)

    def load_state(
        self, q: np.ndarray, qd: np.ndarray, previous_q: np.ndarray, previous_qd: np.ndarray,
        forces: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.device.write(self.q, q)
        self.device.write(self.scratch.vectors, previous_q)
        self._graphs.run("load", self._launch_load)
        self.device.write(self.velocity, qd)
        self.device.write(self.earlier, previous_qd)
        self.device.write(self.forces, np.zeros((self.n, 12)) if forces is None else forces)
        self.backend.touch.clear()

    def _launch_load(self) -> None:
        for values, pose in ((self.scratch.vectors, self.before), (self.q, self.now), (self.q, self.at.current)):
            self.device.launch(poses.unpack, self.n, values, pose)

    def abandon(self) -> None:
        self.device.launch(poses.copy_pose, self.n, self.now, self.at.current)
        self.backend.touch.clear()

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        return tuple(self.device.read_all((self.packed(self.now, self.q), None), (self.velocity, None)))

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        packed = self.packed(self.before, self.scratch.vectors)  # `q` must not change: users' kernels may read it
        return tuple(self.device.read_all((packed, None), (self.earlier, None)))

    def read_positions(self) -> np.ndarray:
        return self.device.read(self.device_positions())

    def copy_positions(self) -> PendingCopy | OnHost:
        return self._read_back.begin(self.device_positions())

    def read_forces(self) -> np.ndarray:
        return self.device.read(self.forces)

    def set_velocity(self, velocity: np.ndarray) -> None:
        self.device.write(self.velocity, velocity)

    def device_positions(self) -> wp.array:
        return self.packed(self.at.current, self.q)

    def packed(self, pose, out: wp.array) -> wp.array:
        """Pack a pose into `out` (n, 12)."""
        self.device.launch(poses.pack, self.n, pose, out)
        return out
