"""Compile gate: `python tools/compile_kernels.py [MODULE | FILE.cu]... [--arch 80 90] [--jobs N] [--registers FILE]`.

Builds every Warp module of `cuda_kernels` and every `cuda_kernels/raw/*.cu` for NVIDIA GPUs, on a machine that has
none: Warp carries its compiler (NVRTC), raw sources need the package nvidia-cuda-nvrtc. Prints what was built, how long
it took and how large it is, and of raw kernels the registers of a thread, the shared memory of a block and what spills.
It shows that the device code compiles, not that it computes the right thing.

`--registers FILE` compiles the Warp modules by NVRTC too, whose assembler says what every kernel uses, and writes that as a
JSON file and a table next to it, the largest kernels first; modules that only processors load are left out. A kernel that a
step launches may use `MOST_REGISTERS` and spill nothing: more leave a multiprocessor too few threads to wait for memory with.

Exit status: 0 all compiled, 1 something did not, with the compiler's messages, or a kernel of a step uses more.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import pkgutil
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "cuda_kernels" / "raw"
ARCHITECTURES = (80, 90)
NVRTC = "nvidia-cuda-nvrtc"
MOST_REGISTERS = 200
"""Of a thread, in kernels that a step launches."""
ASIDE = ("cuda_kernels.contact.pressing",)
"""Modules of Warp kernels that no step launches."""
AS_WARP = (
    "--device-as-default-execution-space",
    "--extra-device-vectorization",
    "--restrict",
    "--define-macro=NDEBUG",
    "--undefine-macro=WP_VERIFY_FP",
    "--fmad=true",
)
"""What Warp's own compiler is asked for, of a module in its mode "release": without NDEBUG every look-up of an array calls
for an assertion, and the kernels are others."""


@dataclass(frozen=True)
class Usage:
    """What a kernel uses: registers of a thread, shared memory of a block, stack and what it spills to it [bytes]."""

    kernel: str
    registers: int
    shared: int
    stack: int
    spilled: int

    def __str__(self) -> str:
        return f"{self.kernel}: {self.registers} registers, {self.shared} bytes shared, {self.spilled} bytes spilled"


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
    usage: tuple[Usage, ...] = ()


def warp_modules() -> list[str]:
    """Modules of `cuda_kernels` in alphabetical order."""
    folder = ROOT / "cuda_kernels"
    return [module.name for module in pkgutil.walk_packages([str(folder)], "cuda_kernels.") if not module.ispkg]


def search(path: list[str]) -> None:
    """Set where a fresh process looks for modules."""
    sys.path[:] = path


def compile_source(source: str, arch: int, registers: bool) -> Build:
    """Compile a Warp module, given by its Python name, or a .cu file; with what every kernel uses where that is asked for."""
    begin = perf_counter()
    with captured_stderr() as said:
        try:
            size, usage = compile_raw(source, arch) if source.endswith(".cu") else compile_warp(source, arch, registers)
        except Exception as error:
            # Whatever a compiler raises is its verdict on this source; the table goes on with the next one.
            text = said().strip()
            return Build(source, arch, perf_counter() - begin, 0, f"{text}\n{error}".strip(), failed=True)
    return Build(source, arch, perf_counter() - begin, size, usage=usage)


def compile_warp(name: str, arch: int, registers: bool) -> tuple[int, tuple[Usage, ...]]:
    """Machine code of a Warp module [bytes]; 0 where it has functions only, which are compiled with their callers."""
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    module = importlib.import_module(name)
    if not wp.get_module(name).kernels:
        return 0, ()
    with tempfile.TemporaryDirectory() as folder:
        # where NVRTC assembles, Warp's own compiler need not
        files = wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=registers)
        if not registers:
            return sum(file.stat().st_size for file in files), ()
        (source,) = Path(folder).glob("*.cu")
        if "cpu" in getattr(module, "LOADED_FOR", ()):
            # processors alone launch its kernels
            return source.stat().st_size, ()
        include = Path(wp.__file__).parent / "native"
        return nvrtc(source.read_bytes(), source.name, arch, include, *AS_WARP)


def compile_raw(path: str, arch: int) -> tuple[int, tuple[Usage, ...]]:
    """Machine code of a CUDA C++ file [bytes] and what its kernels use."""
    return nvrtc(Path(path).read_bytes(), path, arch, RAW)


def nvrtc(source: bytes, name: str, arch: int, include: Path, *options: str) -> tuple[int, tuple[Usage, ...]]:
    """Machine code of CUDA C++ [bytes] and what its kernels use, by NVRTC.

    Raises:
        RuntimeError: it does not compile, or NVRTC is missing.
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
    wanted = (f"--gpu-architecture=sm_{arch}", "--std=c++17", f"--include-path={include}", "--ptxas-options=-v", *options)
    size = ctypes.c_size_t()
    try:
        status = library.nvrtcCompileProgram(
            program, len(wanted), (ctypes.c_char_p * len(wanted))(*(option.encode() for option in wanted))
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
    """What ptxas says of every kernel, in alphabetical order; names without what Warp adds to them."""
    found = []
    for part in log.split("Compiling entry function '")[1:]:
        name = re.sub(r"_[0-9a-f]{8}_cuda_kernel_forward$", "", part[: part.index("'")])
        # functions that are called have a stack and spills of their own
        registers, shared, stack, spilled = (
            [int(count) for count in re.findall(rf"(\d+) {what}", part)]
            for what in ("registers", "bytes smem", "bytes stack frame", "bytes spill stores")
        )
        found.append(Usage(name, max(registers, default=0), sum(shared), sum(stack), sum(spilled)))
    return tuple(sorted(found, key=lambda one: one.kernel))


def told(builds: list[Build], path: Path) -> list[str]:
    """Write what every kernel uses; returns those of a step that use too much."""
    rows = [
        {"source": Path(build.source).name, "arch": build.arch, **asdict(one)} for build in builds for one in build.usage
    ]
    rows.sort(key=lambda row: (-row["registers"], -row["spilled"], row["source"], row["kernel"], row["arch"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    lines = [
        "Registers of a thread, stack, spills and shared memory of a block, of the kernels that GPUs launch, as the assembler of",
        f"NVRTC {importlib.metadata.version(NVRTC)} says: `python tools/compile_kernels.py --registers FILE`.",
        "",
        "| kernel | sm | registers | stack B | spilled B | shared B |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['source'].removeprefix('cuda_kernels.')}.{row['kernel']} | {row['arch']} | {row['registers']} | {row['stack']} "
        f"| {row['spilled']} | {row['shared']} |"
        for row in rows
    ]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [
        f"{row['source']}.{row['kernel']} on sm_{row['arch']}: {row['registers']} registers, {row['spilled']} bytes spilled"
        for row in rows
        if (row["registers"] > MOST_REGISTERS or row["spilled"]) and row["source"] not in ASIDE
    ]


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
    parser.add_argument("--registers", type=Path, metavar="FILE", help="write what every kernel uses: FILE.json, FILE.md")
    arguments = parser.parse_args(argv)
    # The checkout comes first: its modules are meant, installed or not.
    path = [str(ROOT), *sys.path]
    search(path)
    raw = [str(path) for path in sorted(RAW.glob("*.cu"))]
    sources = arguments.sources or [*warp_modules(), *raw]
    tasks = [(source, arch, arguments.registers is not None) for source in sources for arch in arguments.arch]

    begin = perf_counter()
    builds = []
    width = max(len(source) for source in sources)
    print(f"{'module':<{width}}  arch   seconds     bytes")
    # Fresh processes: this one may have threads (a test runner), which a fork would not survive.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(arguments.jobs, len(tasks)), context, initializer=search, initargs=(path,)) as pool:
        for build in pool.map(compile_source, *zip(*tasks, strict=True)):
            builds.append(build)
            what = "FAILED" if build.failed else build.size or "functions only"
            print(f"{build.source:<{width}}  sm_{build.arch}  {build.seconds:8.2f}  {what:>8}", flush=True)
            for one in build.usage:
                print(f"  {one}", flush=True)

    failed = [build for build in builds if build.failed]
    for build in failed:
        print(f"\n{build.source} for sm_{build.arch}:\n{build.message}", file=sys.stderr)
    too_much = told(builds, arguments.registers) if arguments.registers else []
    for line in too_much:
        print(f"too much: {line}", file=sys.stderr)
    raw_count = sum(source.endswith(".cu") for source in sources)
    print(
        f"{len(sources) - raw_count} Warp modules and {raw_count} raw sources for "
        f"{', '.join(f'sm_{arch}' for arch in arguments.arch)}: {sum(build.size > 0 for build in builds)} builds, "
        f"{len(failed)} failed, {perf_counter() - begin:.1f} s"
    )
    return 1 if failed or too_much else 0


if __name__ == "__main__":
    sys.exit(main())
