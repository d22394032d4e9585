"""Runs the hand-written CUDA kernels on the processor: the same sources, compiled with `cuda_on_cpu.h` in CUDA's place."""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from abd.backends.device.raw_kernels import BLOCK, FOLDER, RawKernel, RawKernels

HERE = Path(__file__).resolve().parent
KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(BLOCK(?:, \d)?\)\s+(\w+)\(([^)]*)\)')
ENTRY = """
extern "C" const char* run_{name}(void** values, int count, int blocks, int threads, int order) {{
    return emulator::launch({name}, values, count, blocks, threads, order);
}}
"""
COMPILER = shutil.which("g++") or shutil.which("c++")
# products are not contracted with sums, so that where raw kernels add in the same order they give the same bits
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-w")


def kernels(source: Path) -> dict[str, str]:
    """Names of the kernels of a source, and their parameters."""
    return dict(KERNEL.findall(source.read_text()))


@functools.cache
def library(source: Path) -> ctypes.CDLL:
    """A source, compiled for this processor."""
    with tempfile.TemporaryDirectory() as folder:
        unit, built = Path(folder) / "unit.cpp", Path(folder) / "unit.so"
        entries = "".join(ENTRY.format(name=name) for name in kernels(source))
        unit.write_text(f'#include "cuda_on_cpu.h"\n#include "{source}"\n{entries}')
        command = [COMPILER, *FLAGS, f"-I{HERE}", f"-I{FOLDER}", str(unit), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(built))


def run(source: Path, name: str, arguments: Sequence[np.ndarray], blocks: int, threads: int, order: int = 0) -> str:
    """Run a kernel with its threads taking turns in an `order`; returns what it does that CUDA does not allow."""
    entry = getattr(library(source), f"run_{name}")
    entry.restype = ctypes.c_char_p
    values = (ctypes.c_void_p * len(arguments))(*(argument.ctypes.data for argument in arguments))
    return entry(values, len(arguments), blocks, threads, order).decode()


class Emulated(RawKernels):
    """Runs raw kernels on the processor, with threads taking turns in an `order`."""

    def __init__(self, order: int = 0):
        self.order = order

    def run(self, raw_kernel: RawKernel, count: int, arguments: Sequence[np.ndarray]) -> None:
        problem = run(FOLDER / f"{raw_kernel.source}.cu", raw_kernel.name, arguments, raw_kernel.blocks(count), BLOCK, self.order)
        assert problem == "", f"{raw_kernel.name}: {problem}"
