"""`abd doctor`: list installed packages, devices, the device that `auto` selects, and what is missing for a GPU."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_PACKAGES = ("numpy", "scipy", "warp-lang", "h5py", "pydantic", "trimesh", "rich", "matplotlib")


def findings() -> list[tuple[str, str]]:
    """Return (topic, finding) pairs."""
    import warp as wp

    from abd.backends.device import cuda_support as cuda
    from abd.backends.device.launcher import threads_available
    from abd.backends.device.raw_kernels import raw_kernels
    from abd.version import __version__

    problem = cuda.cuda_problem()
    found = [("python", f"{platform.python_version()} on {platform.platform()}")]
    found.append(("abd", __version__))
    found += [(name, cuda.version_of(name) or "not installed") for name in _PACKAGES]
    for topic, packages in (("cupy", cuda.CUPY), ("NVRTC", cuda.NVRTC)):
        found.append((topic, ", ".join(cuda.installed(packages)) or "not installed"))
    found.append(("without cupy", cuda.cupy_problem()))
    found.append(("processors", f"{os.cpu_count()} in the machine, {threads_available()} used (set by ABD_THREADS)"))
    driver, toolkit = wp.get_cuda_driver_version(), wp.get_cuda_toolkit_version()
    found.append(("CUDA driver", f"supports CUDA up to {cuda.dotted(driver)}" if driver else "none"))
    found.append(("CUDA toolkit of Warp", cuda.dotted(toolkit) if toolkit else "none"))
    gpus = [] if problem else wp.get_cuda_devices()
    for gpu in gpus:
        free, total = gpu.free_memory / 2**30, gpu.total_memory / 2**30
        found.append((str(gpu), f"{gpu.name}, sm_{gpu.arch}, {total:.1f} GiB, {free:.1f} GiB free"))
    found.append(("graphs", cuda.graph_problem() or "loops and branches run on the device"))
    raw, reason = raw_kernels((gpus or [wp.get_device("cpu")])[0])
    found.append(("hand-written kernels", reason if raw is None else "on"))
    cache = Path(wp.config.kernel_cache_dir)
    size, files = _size(cache)
    found.append(("kernel cache", f"{cache}, {size / 2**20:.0f} MiB in {files} files"))
    found.append(("--device auto", f"cpu: {problem}" if problem else "cuda: a usable CUDA device is present"))
    found.append(("for a GPU", _advice(cuda.cuda_remedy(), cuda.cupy_problem())))
    return [(topic, what) for topic, what in found if what]


def text() -> str:
    """Format the findings, one per line."""
    found = findings()
    width = max(len(topic) for topic, _ in found)
    return "\n".join(f"{topic:<{width}}  {what}" for topic, what in found)


def _advice(remedy: str, lost: str) -> str:
    """Return what is missing for runs on a GPU."""
    from abd.backends.device.cuda_support import INSTALL

    steps = [remedy] if remedy else []
    if lost and INSTALL not in remedy:
        steps.append(INSTALL)
    return "; ".join(steps) or "all packages are installed"


def _size(folder: Path) -> tuple[int, int]:
    """Bytes and number of files in a folder."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return sum(sizes), len(sizes)
