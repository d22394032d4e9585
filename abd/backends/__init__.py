"""Backends: the arithmetic of a step. Only this package imports `cuda_kernels`.

A backend holds the iterate and answers the step (`abd.step`) and what users hold (`abd.api`) through the calls of
`abd.backends.protocol`. `warp` and `recorded` answer for devices, `reference` by the definitions.
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
    """Backend for a device name: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    "emulated", for tests, takes every branch of CUDA on the processor, "emulated:SEED" its items out of order
    (`abd.backends.device.device`).

    `auto` takes CUDA where there is a usable device with capacity for the scene and what is in it; otherwise the processor, and a
    log record says why.

    Raises:
        DeviceError: unknown name, or a device that is not there. OutOfMemory: the scene does not fit.
    """
    if device == "numpy":
        from abd.backends.reference.on_numpy import NumpyBackend

        return NumpyBackend(model)
    from abd.backends.device.cuda_support import cuda_problem, graph_problem
    from abd.backends.device.device import EMULATED
    from abd.backends.device.memory import memory_watched
    from abd.backends.recorded.small import is_small
    from abd.backends.warp.on_warp import WarpBackend

    if device.partition(":")[0] not in ("cuda", EMULATED) and device not in ("auto", "cpu"):
        raise DeviceError(f"unknown device {device!r}: use auto, cpu, cuda, cuda:N or numpy")

    def made(name: str) -> WarpBackend:
        with memory_watched(name):
            backend = WarpBackend(model, name, records=is_small(model))
        if name.startswith("cuda") and (lost := graph_problem()):
            _log.info("%s", lost)
        return backend

    if device != "auto":
        return made(device)
    problem = cuda_problem()
    if not problem:
        try:
            return made("cuda")
        except DeviceError as error:
            problem = str(error)
    _log.info("running on the processor: %s", problem)
    return made("cpu")
