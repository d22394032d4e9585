"""Hand-written CUDA kernels (`cuda_kernels/raw/*.cu`) that replace Warp kernels, compiled and launched by CuPy.

A raw kernel takes the first item, the number of items and the arguments of its Warp kernel: array pointers, structs of pointers
by value, and numbers. Results are equal up to rounding, and bitwise reproducible. On CUDA raw kernels run if CuPy is installed;
``ABD_RAW=0`` disables them for comparison (`tools/bench/raw_kernels.py`). They run in Warp's stream, and so within Warp's graphs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp

import cuda_kernels
from abd.backends.device.cuda_support import INSTALL

_log = logging.getLogger(__name__)

SWITCH = "ABD_RAW"
CUPY = 14
"""Minimum major version of CuPy, which supports external streams."""
FOLDER = Path(cuda_kernels.__file__).parent / "raw"
BLOCK = 128
"""Threads of a block, as in `raw/tile.cuh`."""


@dataclass(frozen=True)
class RawKernel:
    """Kernel in one of the sources: `threads` threads process `items` items of its Warp kernel."""

    source: str
    name: str
    threads: int = 32
    items: int = 1

    def blocks(self, count: int) -> int:
        """Number of blocks of a launch on `count` items."""
        return -(-self.threads * (count // self.items) // BLOCK)


RAW_KERNELS = {
    "cuda_kernels.linear.krylov.multiply_rows": RawKernel("spmv", "multiply_rows"),
    "cuda_kernels.linear.krylov.add_columns": RawKernel("spmv", "add_columns"),
    "cuda_kernels.linear.krylov.descend": RawKernel("spmv", "descend"),
    "cuda_kernels.linear.factor.invert_pivots": RawKernel("factor", "invert_pivots", threads=16),
    "cuda_kernels.contact.blocks.join_runs": RawKernel("reduction", "join_runs", items=12),
    "cuda_kernels.contact.blocks.gather_bodies": RawKernel("reduction", "gather_bodies", items=12),
}
"""Raw kernels by module and name of the Warp kernel."""


def raw_kernel_of(kernel: wp.Kernel) -> RawKernel | None:
    """Raw kernel that replaces a Warp kernel, or None."""
    return RAW_KERNELS.get(f"{kernel.module.name}.{kernel.key}")


def pack(kernel: wp.Kernel, first: int, count: int, inputs: Sequence) -> list[np.ndarray]:
    """Pack the arguments of a raw kernel for a Warp kernel, each as an array of one entry that is passed by value.

    Raises:
        TypeError: an argument is neither an array, nor a number, nor a struct of these.
    """
    declared = kernel.adj.args[1:]
    values = [_packed(argument.type, value) for argument, value in zip(declared, inputs, strict=True)]
    return [np.array([first], dtype=np.int32), np.array([count], dtype=np.int32), *values]


def _packed(kind, value) -> np.ndarray:
    if isinstance(kind, wp.array) or not hasattr(kind, "vars"):
        return np.array([_plain(kind, value)], dtype=_layout(kind))
    members = kind.vars
    layout = np.dtype([(name, _layout(member.type)) for name, member in members.items()], align=True)
    return np.array([tuple(_plain(member.type, getattr(value, name)) for name, member in members.items())], layout)


def _layout(kind) -> np.dtype:
    """C++ layout of a member or argument."""
    if isinstance(kind, wp.array):
        return np.dtype(np.uintp)
    if kind in (wp.int32, wp.float64):
        return np.dtype(wp.dtype_to_numpy(kind))
    raise TypeError(f"raw kernels take arrays, int32 and float64, and structs of these, not {kind}")


def _plain(kind, value):
    if isinstance(kind, wp.array):
        return 0 if value is None or value.ptr is None else value.ptr
    return value


def options() -> tuple[str, ...]:
    """Compiler options. They contain a hash of the headers, because CuPy caches binaries by source and options."""
    headers = b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.cuh")))
    return "--std=c++17", f"--include-path={FOLDER}", f"-DHEADERS=0x{hashlib.sha256(headers).hexdigest()[:8]}"


class RawKernels:
    """Raw kernels of one CUDA device, compiled and loaded at once, because neither is possible while a graph is recorded.

    Raises:
        ImportError, OSError, RuntimeError: CuPy or its compiler is missing, or a source does not compile.
    """

    def __init__(self, device: wp.Device):
        import cupy

        if int(cupy.__version__.partition(".")[0]) < CUPY:
            raise ImportError(f"version {CUPY} or later is needed, this is {cupy.__version__}")
        self._cupy, self._device = cupy, device
        with cupy.cuda.Device(device.ordinal):
            modules = {
                source: cupy.RawModule(code=(FOLDER / f"{source}.cu").read_text(), options=options())
                for source in {raw_kernel.source for raw_kernel in RAW_KERNELS.values()}
            }
            try:
                self._functions = {one: modules[one.source].get_function(one.name) for one in RAW_KERNELS.values()}
            except cupy.cuda.compiler.CompileException as error:
                raise RuntimeError(str(error)) from error

    def launch(self, kernel: wp.Kernel, first: int, count: int, inputs: Sequence) -> bool:
        """Run the raw kernel on items first .. first + count - 1 in Warp's stream; False if there is none."""
        raw_kernel = raw_kernel_of(kernel)
        if raw_kernel is None:
            return False
        self.run(raw_kernel, count, pack(kernel, first, count, inputs))
        return True

    def run(self, raw_kernel: RawKernel, count: int, arguments: Sequence[np.ndarray]) -> None:
        """Run a raw kernel on `count` items with packed arguments."""
        cuda = self._cupy.cuda
        with cuda.Device(self._device.ordinal), cuda.Stream.from_external(wp.get_stream(self._device)):
            self._functions[raw_kernel]((raw_kernel.blocks(count),), (BLOCK,), tuple(arguments))


def raw_kernels(device: wp.Device) -> tuple[RawKernels | None, str]:
    """Raw kernels of a device, or None and the reason if they are unavailable or disabled."""
    if not device.is_cuda:
        return None, "hand-written kernels need a CUDA device"
    if os.environ.get(SWITCH) == "0":
        return None, f"hand-written kernels are disabled by {SWITCH}=0"
    try:
        return RawKernels(device), ""
    except ImportError as error:
        problem = f"CuPy cannot be imported ({error}); {INSTALL}"
    except (OSError, RuntimeError) as error:
        problem = f"CuPy cannot compile or load them: {str(error).strip().splitlines()[0]}"
    _log.warning("no hand-written kernels, Warp's are used: %s", problem)
    return None, problem
