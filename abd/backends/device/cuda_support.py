"""CUDA support of the machine: availability, reasons for problems, and remedies."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import sys
import tempfile

import warp as wp

INSTALL = "pip install 'abd-solver[gpu]', or pip install -e '.[gpu]' in a checkout"
CONDITIONAL_NODES = (12, 4)
"""Minimum CUDA version of the driver and of Warp's toolkit for loops and branches in graphs."""
CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


@functools.cache
def start_warp() -> None:
    """Initialise Warp without its banner; its messages are printed only where CUDA is available.

    Its native code writes to file descriptor 2 directly, so the descriptor is redirected during the initialisation.
    """
    wp.config.log_level = wp.LOG_ERROR
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            wp.init()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        captured.seek(0)
        messages = " ".join(captured.read().decode(errors="replace").split())
    if messages and wp.is_cuda_available():
        print(messages, file=sys.stderr)


def cuda_problem() -> str:
    """Return the reason why CUDA is not available; empty if it is available."""
    start_warp()
    if wp.is_cuda_available():
        return ""
    return f"Warp finds no CUDA device: {_cause()}"


def cuda_remedy() -> str:
    """Return the remedy for `cuda_problem`; empty if CUDA is available."""
    start_warp()
    if wp.is_cuda_available():
        return ""
    if wp.get_cuda_toolkit_version() is None:
        return f"install a build of Warp with CUDA: {INSTALL}"
    if _driver_is_old():
        return f"update NVIDIA's driver to one that supports CUDA {wp.get_cuda_toolkit_version()[0]}.0"
    if wp.get_cuda_driver_version() is not None:
        return "check the GPUs that `nvidia-smi` lists, and CUDA_VISIBLE_DEVICES"
    return f"install NVIDIA's driver (its `nvidia-smi` must list the GPU), then {INSTALL}"


def _cause() -> str:
    toolkit, driver = wp.get_cuda_toolkit_version(), wp.get_cuda_driver_version()
    if toolkit is None:
        return "Warp was built without CUDA"
    if driver is None:
        return "there is no NVIDIA driver"
    if _driver_is_old():
        return (
            f"the driver supports CUDA up to {dotted(driver)}; Warp, built with CUDA {dotted(toolkit)}, "
            f"needs a driver for {toolkit[0]}.0 or later"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"the driver, for CUDA {dotted(driver)}, lists no GPU (CUDA_VISIBLE_DEVICES is {hidden!r})"
    return f"the driver, for CUDA {dotted(driver)}, lists no GPU"


def _driver_is_old() -> bool:
    """Whether the driver is older than the major CUDA version of Warp; minor versions are compatible."""
    toolkit, driver = wp.get_cuda_toolkit_version(), wp.get_cuda_driver_version()
    return toolkit is not None and driver is not None and driver < (toolkit[0], 0)


def graph_problem() -> str:
    """Return the reason why graphs cannot contain loops and branches, and the consequence; empty if they can."""
    start_warp()
    if wp.is_conditional_graph_supported():
        return ""
    toolkit, driver = wp.get_cuda_toolkit_version(), wp.get_cuda_driver_version()
    old = [
        f"{what} {dotted(version) if version else 'none'}"
        for what, version in (("driver", driver), ("Warp's toolkit", toolkit))
        if version is None or version < CONDITIONAL_NODES
    ]
    return (
        f"loops and branches in CUDA graphs need CUDA {dotted(CONDITIONAL_NODES)} ({', '.join(old)}): "
        "the host makes these decisions instead, more slowly, with the same results"
    )


def cupy_problem() -> str:
    """Return the consequence of a missing CuPy; empty if it is installed."""
    if installed(CUPY):
        return ""
    return (
        "hand-written kernels are not available; Warp's kernels are used, with the same results up to rounding, but are slower "
        "in some scenes"
    )


def installed(packages: tuple[str, ...]) -> list[str]:
    """Installed packages of a list, each as "name version"."""
    return [f"{name} {found}" for name in packages if (found := version_of(name))]


def version_of(package: str) -> str:
    """Version of an installed package, empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def dotted(version: tuple[int, ...]) -> str:
    """Format (12, 4) as "12.4"."""
    return ".".join(str(part) for part in version)
