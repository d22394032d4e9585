"""`DeviceState`: the state of a simulation in device memory, readable without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.backends.answers import OnHost
from abd.backends.protocol import Backend
from abd.model import Model
from abd.step.step import Stepper

if TYPE_CHECKING:
    from abd.backends.device.read_back import PendingCopy, ReadBack


class DeviceState:
    """Arrays of the current state on the device of the simulation: Warp arrays, or NumPy arrays on `numpy`.

    Zero-copy exchange: `numpy.from_dlpack`, `cupy.from_dlpack`, `torch.from_dlpack`, `jax.dlpack.from_dlpack`,
    `__cuda_array_interface__` or `__array_interface__`. An array is valid until the next step, restart or change of the
    state, which may overwrite its memory: read the property again, or copy the array. Do not write to the arrays; use
    `Simulation.set_velocities` and `Simulation.move_to`.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper):
        self._model, self._backend, self._stepper = model, backend, stepper
        self._read_back: ReadBack | None = None

    @property
    def q(self):
        """(n, 12): centre of mass [m] and the three rows of the affine map, in the bodies' internal frames."""
        return self._backend.states.device_positions()

    @property
    def qd(self):
        """(n, 12): time derivative of `q` [m/s, 1/s]."""
        return self._backend.states.velocity

    def to_host(self) -> PendingCopy | OnHost:
        """Start a copy of `q` and `qd` to the host; `wait()` of the result returns independent arrays.

        On CUDA the copy overlaps with the next step; two copies may be in flight.
        """
        if not self._backend.device.name.startswith("cuda"):
            return OnHost(self._stepper.q, self._stepper.qd)
        if self._read_back is None:
            from abd.backends.device.read_back import ReadBack

            self._read_back = ReadBack(self._backend.device)
        return self._read_back.begin(self.q, self.qd)

    @property
    def body_frame(self) -> np.ndarray:
        """(n, 4, 4) constant maps from the mesh frames to the internal frames, on the host."""
        return self._model.bodies.body_frame
