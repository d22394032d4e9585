"""Backends: where the step's arithmetic happens. This package alone imports `cuda_kernels`.

A backend holds the iterate and answers the step (`abd.step`) through a few coarse calls:

    begin, finish                    start a step from q_n; make the iterate the new state
    start.run                        lead the iterate to where Newton's method starts
    iteration.begin, run, restiffen, speeds   one Newton iteration after the other (`abd.backends.answers`)
    whole                            whole steps of bodies that touch nothing, where they are recorded
    lag_friction, friction_loads     freeze friction; what it carries
    follow_velocity, try_step, accept   set the arc of a prescribed motion; energies on it; move there
    free_way                         whether the arcs from the state to the iterate are free of collisions
    sleep, asleep                    islands that take no part in the step

`warp` and `recorded` answer for devices, `reference` by the definitions.
"""

from __future__ import annotations

import logging

from abd.errors import DeviceError

_log = logging.getLogger(__name__)

SMALL = 64
"""Bodies up to which the processor records and replays its work as CUDA does: of more, kernels take longer than what the
host does between them, and threads share them, which records have no part in."""


def create(model, device: str = "auto"):
    """Backend for a device name: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    "emulated", for tests, takes every branch of CUDA on the processor, "emulated:SEED" its items out of order
    (`abd.backends.device.device`).

    `auto` takes CUDA where there is a usable device with room for the scene and what is in it; otherwise the processor, and a
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
    from abd.backends.warp.on_warp import WarpBackend

    if device.partition(":")[0] not in ("cuda", EMULATED) and device not in ("auto", "cpu"):
        raise DeviceError(f"unknown device {device!r}: use auto, cpu, cuda, cuda:N or numpy")

    def made(name: str) -> WarpBackend:
        with memory_watched(name):
            backend = WarpBackend(model, name, records=len(model.bodies) <= SMALL)
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
