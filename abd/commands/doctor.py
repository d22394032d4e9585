"""`abd doctor` and `abd warmup`: packages, devices and missing requirements of a GPU; compilation of all kernels."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import perf_counter

from abd.commands.arguments import device_argument
from abd.version import __version__

_PACKAGES = ("numpy", "scipy", "warp-lang", "h5py", "pydantic", "trimesh", "rich", "matplotlib")


def add(commands) -> None:
    parser = commands.add_parser(
        "warmup",
        help="compile all kernels, once per machine and version",
        description="Compile all kernels of the simulation and of `abd render` into Warp's cache; `abd doctor` prints its path. "
        "Without this command, the first run of a scene compiles the kernels that it needs.",
    )
    device_argument(parser)
    parser.set_defaults(command=warm_up)
    parser = commands.add_parser("doctor", help="list installed packages, devices and missing requirements of a GPU")
    parser.set_defaults(command=doctor)


def warm_up(arguments) -> int:
    """Compile and load all kernels for a device."""
    from abd.backends.device.compiling import every_module, load_modules
    from abd.backends.device.cuda_support import cuda_problem
    from abd.backends.device.device import Device
    from abd.backends.device.launcher import threads_available

    name = arguments.device
    if name == "auto":
        name = "cpu" if cuda_problem() else "cuda"
    begun, device = perf_counter(), Device(name)
    count = load_modules(device.warp, every_module(), threads_available())
    print(f"{count} modules compiled for {device.name} and loaded in {perf_counter() - begun:.1f} s")
    return 0


def doctor(_) -> int:
    """Print pairs of a topic and a finding, one per line."""
    import warp as wp

    from abd.backends.device import cuda_support as cuda
    from abd.backends.device.launcher import threads_available
    from abd.backends.device.raw_kernels import raw_kernels

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
    sizes = [path.stat().st_size for path in cache.rglob("*") if path.is_file()]
    found.append(("kernel cache", f"{cache}, {sum(sizes) / 2**20:.0f} MiB in {len(sizes)} files"))
    found.append(("--device auto", f"cpu: {problem}" if problem else "cuda: a usable CUDA device is present"))
    steps = [remedy] if (remedy := cuda.cuda_remedy()) else []
    steps += [cuda.INSTALL] if cuda.cupy_problem() and cuda.INSTALL not in remedy else []
    found.append(("for a GPU", "; ".join(steps) or "all packages are installed"))
    found = [(topic, what) for topic, what in found if what]
    width = max(len(topic) for topic, _ in found)
    for topic, what in found:
        print(f"{topic:<{width}}  {what}")
    return 0
