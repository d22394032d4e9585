"""Compile gate: `python tools/compile_kernels.py [MODULE | FILE.cu]... [--arch 80 90] [--jobs N]`.

Builds every Warp module of `cuda_kernels` and every `cuda_kernels/raw/*.cu` for NVIDIA GPUs, on a machine that has
none: Warp carries its compiler (NVRTC), raw sources need the package nvidia-cuda-nvrtc. Prints what was built, how long
it took and how large it is, and of raw kernels the registers of a thread, the shared memory of a block and what spills.
It shows that the device code compiles, not that it computes the right thing.

Exit status: 0 all compiled, 1 something did not, with the compiler's messages.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.metadata
import multiprocessing
import os
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "cuda_kernels" / "raw"
ARCHITECTURES = (80, 90)
NVRTC = "nvidia-cuda-nvrtc"


@dataclass(frozen=True)
class Build:
    """One source for one architecture: `size` of the machine code [bytes], `message` of the compiler if it failed, what
    every kernel of a raw source uses."""

    source: str
    arch: int
    seconds: float = 0.0
    size: int = 0
    message: str = ""
    failed: bool = False
    usage: tuple[str, ...] = ()


def warp_modules() -> list[str]:
    """Modules of `cuda_kernels` in alphabetical order."""
    folder = ROOT / "cuda_kernels"
    return [module.name for module in pkgutil.walk_packages([str(folder)], "cuda_kernels.") if not module.ispkg]


def search(path: list[str]) -> None:
    """Set where a fresh process looks for modules."""
    sys.path[:] = path


def compile_source(source: str, arch: int) -> Build:
    """Compile a Warp module, given by its Python name, or a .cu file."""
    begin = perf_counter()
    compiler = compile_raw if source.endswith(".cu") else compile_warp
    with captured_stderr() as said:
        try:
            size, usage = compiler(source, arch)
        except Exception as error:
            # Whatever a compiler raises is its verdict on this source; the table goes on with the next one.
            text = said().strip()
            return Build(source, arch, perf_counter() - begin, 0, f"{text}\n{error}".strip(), failed=True)
    return Build(source, arch, perf_counter() - begin, size, usage=usage)


def compile_warp(name: str, arch: int) -> tuple[int, tuple[str, ...]]:
    """Machine code of a Warp module [bytes]; 0 where it has functions only, which are compiled with their callers."""
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    module = importlib.import_module(name)
    if not wp.get_module(name).kernels:
        return 0, ()
    with tempfile.TemporaryDirectory() as folder:
        files = wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=False)
        return sum(file.stat().st_size for file in files), ()


def compile_raw(path: str, arch: int) -> tuple[int, tuple[str, ...]]:
    """Machine code of a CUDA C++ file [bytes] and what its kernels use, by NVRTC.

    Raises:
        RuntimeError: it does not compile, or NVRTC is missing.
    """
    try:
        files = importlib.metadata.files(NVRTC) or []
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"raw CUDA sources need NVRTC: pip install {NVRTC}") from None
    nvrtc = ctypes.CDLL(str(next(file.locate() for file in files if file.name.startswith("libnvrtc.so"))))
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        if status != 0:
            raise RuntimeError(nvrtc.nvrtcGetErrorString(status).decode())

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), Path(path).read_bytes(), path.encode(), 0, None, None))
    wanted = (f"--gpu-architecture=sm_{arch}", "--std=c++17", f"--include-path={RAW}", "--ptxas-options=-v")
    options = (ctypes.c_char_p * len(wanted))(*(option.encode() for option in wanted))
    size = ctypes.c_size_t()
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), options)
        check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetProgramLog(program, log))
        if status != 0:
            raise RuntimeError(log.value.decode())
        check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return size.value, resources(log.value.decode())


def resources(log: str) -> tuple[str, ...]:
    """What ptxas says of every kernel, a line each, in alphabetical order."""
    found = []
    for part in log.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]
        counts = (re.search(rf"(\d+) {what}", part) for what in ("registers", "bytes smem", "bytes spill stores"))
        registers, shared, spilled = (int(count[1]) if count else 0 for count in counts)
        found.append(f"{name}: {registers} registers, {shared} bytes shared, {spilled} bytes spilled")
    return tuple(sorted(found))


@contextmanager
def captured_stderr() -> Iterator[Callable[[], str]]:
    """Collect what this process writes to file descriptor 2, native code included; yields a reader of it."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)

        def said() -> str:
            sys.stderr.flush()
            return os.pread(aside.fileno(), os.fstat(aside.fileno()).st_size, 0).decode(errors="replace")

        try:
            yield said
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def main(argv: list[str] | None = None) -> int:
    """Compile everything and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="Python module or .cu file [all there are]")
    parser.add_argument("--arch", type=int, nargs="+", default=ARCHITECTURES, help="compute capabilities [80 90]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes [one per processor]")
    arguments = parser.parse_args(argv)
    raw = [str(path) for path in sorted(RAW.glob("*.cu"))]
    sources = arguments.sources or [*warp_modules(), *raw]
    tasks = [(source, arch) for source in sources for arch in arguments.arch]

    begin = perf_counter()
    builds = []
    width = max(len(source) for source in sources)
    print(f"{'module':<{width}}  arch   seconds     bytes")
    # Fresh processes: this one may have threads (a test runner), which a fork would not survive.
    context = multiprocessing.get_context("spawn")
    # The checkout comes first: its modules are meant, installed or not.
    path = [str(ROOT), *sys.path]
    with ProcessPoolExecutor(min(arguments.jobs, len(tasks)), context, initializer=search, initargs=(path,)) as pool:
        for build in pool.map(compile_source, *zip(*tasks, strict=True)):
            builds.append(build)
            what = "FAILED" if build.failed else build.size or "functions only"
            print(f"{build.source:<{width}}  sm_{build.arch}  {build.seconds:8.2f}  {what:>8}", flush=True)
            for line in build.usage:
                print(f"  {line}", flush=True)

    failed = [build for build in builds if build.failed]
    for build in failed:
        print(f"\n{build.source} for sm_{build.arch}:\n{build.message}", file=sys.stderr)
    raw_count = sum(source.endswith(".cu") for source in sources)
    print(
        f"{len(sources) - raw_count} Warp modules and {raw_count} raw sources for "
        f"{', '.join(f'sm_{arch}' for arch in arguments.arch)}: {sum(build.size > 0 for build in builds)} builds, "
        f"{len(failed)} failed, {perf_counter() - begin:.1f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
