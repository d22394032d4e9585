"""Backends: where the step's arithmetic happens. This package alone imports `cuda_kernels`.

A backend holds the iterate and answers the Newton loop through a few coarse calls:

    begin, finish                    start a step from q_n; make the iterate the new state
    follow_velocity, follow_direction   set the arc; the largest collision-free fraction per island
    evaluate, try_step, accept       energies at the iterate; at a point of the arc; move there
    lag_friction, linearize, solve   freeze friction; gradient and blocks; Newton direction
    sleep, asleep, settle            islands that take no part in the step; in its iterations
    set_caution                      how much of the bounds of curvature the blocks hold (`abd.solver.caution`)
"""

from __future__ import annotations

from abd.errors import DeviceError


def create(model, device: str = "auto"):
    """Backend for a device name: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    `auto` takes CUDA where there is a usable device, the processor otherwise.

    Raises:
        DeviceError: unknown name, or a device that is not there.
    """
    if device == "numpy":
        from abd.backends.on_numpy import NumpyBackend

        return NumpyBackend(model)
    from abd.backends.on_warp import WarpBackend

    if device == "auto":
        from abd.backends.device import cuda_problem

        device = "cpu" if cuda_problem() else "cuda"
    if device != "cpu" and not device.startswith("cuda"):
        raise DeviceError(f"unknown device {device!r}: use auto, cpu, cuda, cuda:N or numpy")
    return WarpBackend(model, device)
