"""`abd doctor`: what is installed, which devices there are, what `auto` takes, and what is missing for a GPU."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

_PACKAGES = ("abd", "numpy", "scipy", "warp-lang", "h5py", "pydantic", "trimesh", "rich", "matplotlib")
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


def findings() -> list[tuple[str, str]]:
    """Pairs of a topic and what was found."""
    import warp as wp

    from abd.backends.device import cuda_problem, threads_available

    problem = cuda_problem()
    found = [("python", f"{platform.python_version()} on {platform.platform()}")]
    found += [(name, _version(name) or "not installed") for name in _PACKAGES]
    cupy = [f"{name} {version}" for name in _CUPY if (version := _version(name))]
    found.append(("cupy", ", ".join(cupy) or "not installed"))
    found.append(("processors", f"{os.cpu_count()} of the machine, {threads_available()} used (ABD_THREADS sets it)"))
    driver = wp.get_cuda_driver_version()
    toolkit = wp.get_cuda_toolkit_version()
    found.append(("CUDA driver", _dotted(driver) if driver else "none"))
    found.append(("CUDA toolkit of Warp", _dotted(toolkit) if toolkit else "none"))
    for device in [] if problem else wp.get_cuda_devices():
        arch, memory = device.arch, device.total_memory / 2**30
        found.append((str(device), f"{device.name}, sm_{arch}, {memory:.1f} GiB"))
    cache = Path(wp.config.kernel_cache_dir)
    size, files = _size(cache)
    found.append(("kernel cache", f"{cache}, {size / 2**20:.0f} MiB in {files} files"))
    found.append(("--device auto", f"cpu: {problem}" if problem else "cuda: a usable CUDA device is there"))
    found.append(("for a GPU", _advice(driver is not None, bool(cupy), problem)))
    return found


def text() -> str:
    """The findings as lines."""
    found = findings()
    width = max(len(topic) for topic, _ in found)
    return "\n".join(f"{topic:<{width}}  {what}" for topic, what in found)


def _advice(driver: bool, cupy: bool, problem: str) -> str:
    """What to do next to run on a GPU."""
    steps = []
    if not driver:
        steps.append("install NVIDIA's driver (its `nvidia-smi` must list the GPU)")
    elif problem:
        steps.append("the driver is there, but no device can be used: look at `nvidia-smi` and CUDA_VISIBLE_DEVICES")
    if not cupy:
        steps.append("pip install -e '.[gpu]' in the checkout")
    return "; ".join(steps) or "everything is there"


def _version(package: str) -> str:
    """Installed version, empty where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _dotted(version) -> str:
    return ".".join(str(part) for part in version)


def _size(folder: Path) -> tuple[int, int]:
    """Bytes and number of files below a folder."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return sum(sizes), len(sizes)
