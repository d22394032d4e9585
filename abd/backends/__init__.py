"""Backends: the numerical operations of a step. Only this package imports kernels; other packages import only
`cuda_kernels.shared`.

A backend stores the iterate and implements `abd.backends.protocol` for the step (`abd.step`) and the API (`abd.api`). Newton's
method is one program, `recorded`; its stages are kernels in `warp` and `linear`, and the NumPy definitions in `reference`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from abd.errors import DeviceError

if TYPE_CHECKING:
    from abd.backends.protocol import Backend
    from abd.model import Model

_log = logging.getLogger(__name__)

def create(model: Model, device: str = "auto") -> Backend:
    """Create a backend on a device: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    For tests, "emulated" runs the code path of CUDA on the CPU, and "emulated:SEED" runs items in a random order
    (`abd.backends.device.device`). "auto" selects CUDA if a device is available and supports the scene; otherwise the CPU, and
    logs the reason.

    Raises:
        DeviceError: the name is unknown, or the device is not available. OutOfMemory: the scene does not fit.
    """
    if device == "numpy":
        from abd.backends.reference.on_numpy import NumpyBackend

        return NumpyBackend(model)
    from abd.backends.device.cuda_support import cuda_problem, graph_problem
    from abd.backends.device.device import EMULATED
    from abd.backends.device.memory import memory_watched
    from abd.backends.warp.on_warp import WarpBackend, is_small

    if device.partition(":")[0] not in ("cuda", EMULATED) and device not in ("auto", "cpu"):
        raise DeviceError(f"unknown device {device!r}: use auto, cpu, cuda, cuda:N or numpy")

    def made(name: str) -> WarpBackend:
        with memory_watched(name):
            backend = WarpBackend(model, name, records=is_small(model))
        if name.startswith("cuda") and (problem := graph_problem()):
            _log.info("%s", problem)
        return backend

    if device != "auto":
        return made(device)
    problem = cuda_problem()
    if not problem:
        try:
            return made("cuda")
        except DeviceError as error:
            problem = str(error)
    _log.info("running on the CPU: %s", problem)
    return made("cpu")
