"""The state of a simulation where it lives, for other programs to read without a copy."""

from __future__ import annotations

import numpy as np


class DeviceState:
    """Arrays of a simulation's present state, on its device: Warp arrays, on `numpy` NumPy arrays.

    They exchange without a copy: `numpy.from_dlpack`, `cupy.from_dlpack`, `torch.from_dlpack`, `jax.dlpack.from_dlpack`,
    and `__cuda_array_interface__` or `__array_interface__`. Each is valid until the next step, restart or change of the
    state, which may write into the same memory: ask for it anew, or copy it. They are for reading; what is written into
    them is lost, or spoils a step: use `Simulation.set_velocities` and `Simulation.move_to`.
    """

    def __init__(self, simulation):
        self._simulation = simulation

    @property
    def q(self):
        """(n, 12): centre of mass [m] and the three rows of the affine map, in the bodies' internal frames."""
        return self._simulation.backend.device_positions()

    @property
    def qd(self):
        """(n, 12): time derivative of `q` [m/s, 1/s]."""
        return self._simulation.backend.velocity

    @property
    def body_frame(self) -> np.ndarray:
        """(n, 4, 4) maps from the user's mesh frames to the internal frames, on the host; they do not change."""
        return self._simulation.model.bodies.body_frame
