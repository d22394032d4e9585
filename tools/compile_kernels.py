"""Compile all device code without a GPU: `python tools/compile_kernels.py [MODULE | FILE.cu]... [--registers FILE]`.

Sources are `cuda_kernels/raw/*.cu` and all Warp modules of `cuda_kernels` except those that only processors load. Warp contains
its compiler; raw sources need the package nvidia-cuda-nvrtc. The table contains time and size of each build, and the resources of
each raw kernel.

`--registers FILE` also compiles the Warp modules by NVRTC and writes a table of the resources of all kernels that GPUs launch.
A kernel of a step must not use more than `MAX_REGISTERS` registers nor spill: otherwise too few threads fit on a multiprocessor
to hide the latency of memory.

Exit status: 1 if a source does not compile or a kernel of a step exceeds the limits, else 0.
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
sys.path.insert(0, str(ROOT))  # the processes of the pool inherit it
RAW = ROOT / "cuda_kernels" / "raw"
ARCHITECTURES = (80, 90, 100)
NVRTC = "nvidia-cuda-nvrtc"
MAX_REGISTERS = 200
"""Largest number of registers per thread of a kernel of a step."""
EXEMPT = ("cuda_kernels.contact.pressing",)
"""Modules whose kernels run at most once in a step."""
WARP_OPTIONS = (
    "--device-as-default-execution-space",
    "--extra-device-vectorization",
    "--restrict",
    "--define-macro=NDEBUG",
    "--undefine-macro=WP_VERIFY_FP",
    "--fmad=true",
)
"""Options with which Warp compiles modules in its mode "release"."""


@dataclass(frozen=True)
class Usage:
    """Resources of a kernel: registers per thread, shared memory per block [bytes], stack and spills per thread [bytes]."""

    kernel: str
    registers: int
    shared: int
    stack: int
    spilled: int

    def __str__(self) -> str:
        return f"{self.kernel}: {self.registers} registers, {self.shared} bytes shared, {self.spilled} bytes spilled"


@dataclass(frozen=True)
class Build:
    """Result of compiling one source for one architecture.

    Attributes:
        seconds: compilation time [s]; size: of the machine code [bytes].
        message: of the compiler, if compilation failed.
        usage: resources of the kernels, if compiled by NVRTC.
    """

    source: str
    arch: int
    seconds: float = 0.0
    size: int = 0
    message: str = ""
    failed: bool = False
    usage: tuple[Usage, ...] = ()


def warp_modules() -> list[str]:
    """Return the names of the modules of `cuda_kernels` in alphabetical order."""
    folder = ROOT / "cuda_kernels"
    return [module.name for module in pkgutil.walk_packages([str(folder)], "cuda_kernels.") if not module.ispkg]


def compile_source(source: str, arch: int, registers: bool) -> Build:
    """Compile a Warp module, given by its Python name, or a .cu file; if `registers`, by NVRTC."""
    begin = perf_counter()
    with captured_stderr() as captured:
        try:
            size, usage = compile_raw(source, arch) if source.endswith(".cu") else compile_warp(source, arch, registers)
        except Exception as error:
            # any exception of a compiler means that this source failed; the others are still compiled
            return Build(source, arch, perf_counter() - begin, 0, f"{captured().strip()}\n{error}".strip(), failed=True)
    return Build(source, arch, perf_counter() - begin, size, usage=usage)


def compile_warp(name: str, arch: int, registers: bool) -> tuple[int, tuple[Usage, ...]]:
    """Return the size of a Warp module's machine code [bytes], 0 without kernels for GPUs, and the resources of its kernels."""
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    module = importlib.import_module(name)
    if not wp.get_module(name).kernels or "cpu" in getattr(module, "LOADED_FOR", ()):
        return 0, ()
    with tempfile.TemporaryDirectory() as folder:
        files = wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=registers)
        if not registers:
            return sum(file.stat().st_size for file in files), ()
        (source,) = Path(folder).glob("*.cu")
        include = Path(wp.__file__).parent / "native"
        return nvrtc(source.read_bytes(), source.name, arch, include, *WARP_OPTIONS)


def compile_raw(path: str, arch: int) -> tuple[int, tuple[Usage, ...]]:
    """Return the size of the machine code of a CUDA C++ file [bytes] and the resources of its kernels."""
    return nvrtc(Path(path).read_bytes(), path, arch, RAW)


def nvrtc(source: bytes, name: str, arch: int, include: Path, *options: str) -> tuple[int, tuple[Usage, ...]]:
    """Compile CUDA C++ by NVRTC; return the size of the machine code [bytes] and the resources of the kernels.

    Raises:
        RuntimeError: the source does not compile, or NVRTC is not installed.
    """
    try:
        files = importlib.metadata.files(NVRTC) or []
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"raw CUDA sources and --registers need NVRTC: pip install {NVRTC}") from None
    library = ctypes.CDLL(str(next(file.locate() for file in files if file.name.startswith("libnvrtc.so"))))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        if status != 0:
            raise RuntimeError(library.nvrtcGetErrorString(status).decode())

    check(library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None))
    options = (f"--gpu-architecture=sm_{arch}", "--std=c++17", f"--include-path={include}", "--ptxas-options=-v", *options)
    size = ctypes.c_size_t()
    try:
        status = library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        )
        check(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        check(library.nvrtcGetProgramLog(program, log))
        if status != 0:
            raise RuntimeError(log.value.decode())
        check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return size.value, usages(log.value.decode())


def usages(log: str) -> tuple[Usage, ...]:
    """Parse the log of ptxas; return the resources of the kernels in alphabetical order, without the suffixes of Warp."""
    found = []
    for part in log.split("Compiling entry function '")[1:]:
        name = re.sub(r"_[0-9a-f]{8}_cuda_kernel_forward$", "", part[: part.index("'")])
        # sums, since called functions have their own stack and spills
        registers, shared, stack, spilled = (
            [int(count) for count in re.findall(rf"(\d+) {unit}", part)]
            for unit in ("registers", "bytes smem", "bytes stack frame", "bytes spill stores")
        )
        found.append(Usage(name, max(registers, default=0), sum(shared), sum(stack), sum(spilled)))
    return tuple(sorted(found, key=lambda one: one.kernel))


def write_usage(builds: list[Build], path: Path) -> list[str]:
    """Write a table of the resources of all kernels; return descriptions of the kernels that exceed the limits."""
    kernels = [(build, one) for build in builds for one in build.usage]
    kernels.sort(key=lambda row: (-row[1].registers, -row[1].spilled, row[0].source, row[1].kernel, row[0].arch))
    lines = [
        f"Resources of the kernels that GPUs launch, by NVRTC {importlib.metadata.version(NVRTC)}: "
        "`python tools/compile_kernels.py --registers FILE`.",
        "",
        "| kernel | architecture | registers per thread | stack [bytes] | spilled [bytes] | shared [bytes] |",
        "|---|---|---|---|---|---|",
    ]
    excesses = []
    for build, one in kernels:
        name = f"{Path(build.source).name.removeprefix('cuda_kernels.')}.{one.kernel}"
        lines.append(f"| {name} | sm_{build.arch} | {one.registers} | {one.stack} | {one.spilled} | {one.shared} |")
        if (one.registers > MAX_REGISTERS or one.spilled) and build.source not in EXEMPT:
            excesses.append(f"{name} on sm_{build.arch}: {one.registers} registers, {one.spilled} bytes spilled")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return excesses


@contextmanager
def captured_stderr() -> Iterator[Callable[[], str]]:
    """Capture file descriptor 2, including output of native code; yield a function that returns the text."""
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def captured() -> str:
            sys.stderr.flush()
            return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")

        try:
            yield captured
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)


def main() -> int:
    """Compile all sources and print the table; return 1 if a check failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="Python module or .cu file [all]")
    parser.add_argument("--arch", type=int, nargs="+", default=ARCHITECTURES, help="compute capabilities [80 90 100]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes [one per processor]")
    parser.add_argument("--registers", type=Path, metavar="FILE", help="Markdown file for the resources of all kernels")
    options = parser.parse_args()
    sources = options.sources or [*warp_modules(), *map(str, sorted(RAW.glob("*.cu")))]
    tasks = [(source, arch, options.registers is not None) for source in sources for arch in options.arch]

    begin = perf_counter()
    builds = []
    width = max(len(source) for source in sources)
    print(f"{'module':<{width}}  arch   seconds     bytes")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(options.jobs, len(tasks)), context) as pool:
        for build in pool.map(compile_source, *zip(*tasks, strict=True)):
            builds.append(build)
            size = "FAILED" if build.failed else build.size or "no kernels"
            print(f"{build.source:<{width}}  sm_{build.arch}  {build.seconds:8.2f}  {size:>8}", flush=True)
            for one in build.usage:
                print(f"  {one}", flush=True)

    failed = [build for build in builds if build.failed]
    for build in failed:
        print(f"\n{build.source} for sm_{build.arch}:\n{build.message}", file=sys.stderr)
    excesses = write_usage(builds, options.registers) if options.registers else []
    for line in excesses:
        print(f"exceeds the limits: {line}", file=sys.stderr)
    print(f"{sum(build.size > 0 for build in builds)} builds, {len(failed)} failed, {perf_counter() - begin:.1f} s")
    return 1 if failed or excesses else 0


if __name__ == "__main__":
    sys.exit(main())
