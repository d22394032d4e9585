"""The state of a simulation where it lives, for other programs to read without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abd.backends.device.read_back import Arriving, ReadBack


class OnHost:
    """Arrays that need no copy to be on the host; as `abd.backends.device.read_back.Arriving`."""

    def __init__(self, *arrays: np.ndarray):
        self._arrays = list(arrays)

    def wait(self) -> list[np.ndarray]:
        """The arrays."""
        return self._arrays


class DeviceState:
    """Arrays of a simulation's present state, on its device: Warp arrays, on `numpy` NumPy arrays.

    They exchange without a copy: `numpy.from_dlpack`, `cupy.from_dlpack`, `torch.from_dlpack`, `jax.dlpack.from_dlpack`,
    and `__cuda_array_interface__` or `__array_interface__`. Each is valid until the next step, restart or change of the
    state, which may write into the same memory: ask for it anew, or copy it. They are for reading; what is written into
    them is lost, or spoils a step: use `Simulation.set_velocities` and `Simulation.move_to`.
    """

    def __init__(self, simulation):
        self._simulation = simulation
        self._read_back: ReadBack | None = None

    @property
    def q(self):
        """(n, 12): centre of mass [m] and the three rows of the affine map, in the bodies' internal frames."""
        return self._simulation.backend.states.device_positions()

    @property
    def qd(self):
        """(n, 12): time derivative of `q` [m/s, 1/s]."""
        return self._simulation.backend.states.velocity

    def to_host(self) -> Arriving | OnHost:
        """Begin to copy `q` and `qd` to the host; `wait()` returns them, as arrays of their own.

        On CUDA the copy is made while the next step runs; two may be under way.
        """
        simulation = self._simulation
        if not simulation.device.startswith("cuda"):
            return OnHost(simulation.stepper.q, simulation.stepper.qd)
        if self._read_back is None:
            from abd.backends.device.read_back import ReadBack

            self._read_back = ReadBack(simulation.backend.device)
        return self._read_back.begin(self.q, self.qd)

    @property
    def body_frame(self) -> np.ndarray:
        """(n, 4, 4) maps from the user's mesh frames to the internal frames, on the host; they do not change."""
        return self._simulation.model.bodies.body_frame
