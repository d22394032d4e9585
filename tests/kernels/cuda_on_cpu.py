"""Runs the hand-written CUDA kernels on the processor, and compares them with their Warp kernels, launch by launch.

They are the same sources, compiled with `cuda_on_cpu.h` in CUDA's place.
"""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.raw_kernels import BLOCK, FOLDER, RawKernel, RawKernels, pack, raw_kernel_of

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


GUARD = 4096
"""Bytes before and behind every array, which no kernel may write."""
FILL = {True: 0xC5, False: 0x00}
"""What guards of numbers and of integers are made of: huge numbers, and bodies that are not done, without an entry."""


class Held:
    """Takes the place of `RawKernels` in a device.

    Every launch of a kernel with a raw kernel runs both. The raw kernel runs several times on guarded copies of all arrays, its
    threads in different orders where they are emulated, with the same bits as result; and the Warp kernel on the arrays.

    Args:
        relative: largest difference to the Warp kernel, of the largest entry that it wrote to an array: the order of
            sums is another.
    """

    def __init__(self, device: Device, relative: float = 1e-12):
        self.device, self.relative = device, relative
        self.runners = [Emulated(order) for order in range(3)] if device.is_cpu else 2 * [RawKernels(device.warp)]
        self.launches: dict[str, int] = {}

    def launch(self, kernel: wp.Kernel, first: int, count: int, inputs: Sequence) -> bool:
        raw_kernel = raw_kernel_of(kernel)
        if raw_kernel is None:
            return False
        arrays = {array.ptr: array for array in _arrays(inputs) if array.ptr}
        results = []
        for runner in self.runners:
            copies = {ptr: _guarded(array) for ptr, array in arrays.items()}
            arguments = pack(kernel, first, count, inputs)
            for argument in arguments[2:]:
                _redirect(argument, {ptr: copy.ptr + GUARD for ptr, copy in copies.items()})
            runner.run(raw_kernel, count, arguments)
            results.append({ptr: _unguarded(raw_kernel.name, copy, arrays[ptr]) for ptr, copy in copies.items()})
        before = {ptr: array.numpy().reshape(-1).copy() for ptr, array in arrays.items()}
        wp.launch(kernel, dim=count, inputs=(first, *inputs), device=self.device.warp)
        for ptr, array in arrays.items():
            for other in results[1:]:
                np.testing.assert_array_equal(other[ptr], results[0][ptr], f"{raw_kernel.name} is not repeatable")
            expected = array.numpy().reshape(-1)
            _compare(raw_kernel.name, results[0][ptr].view(expected.dtype), expected, before[ptr], self.relative)
        self.launches[raw_kernel.name] = self.launches.get(raw_kernel.name, 0) + 1
        return True


def _arrays(values: Sequence) -> Iterator[wp.array]:
    """Arrays among arguments and in their structs, the longest of the same memory last."""
    found = []
    for value in values:
        found += [value] if isinstance(value, wp.array) else vars(value).values() if hasattr(value, "__dict__") else []
    yield from sorted((array for array in found if isinstance(array, wp.array)), key=_bytes)


def _bytes(array: wp.array) -> int:
    return array.size * wp.types.type_size_in_bytes(array.dtype)


def scalar(dtype):
    """What the entries of a vector or matrix are, and of anything else itself."""
    return getattr(dtype, "_wp_scalar_type_", dtype)


def _fill(array: wp.array) -> int:
    return FILL[scalar(array.dtype) is not wp.int32]


def _guarded(array: wp.array) -> wp.array:
    """Copy of an array between guards, as bytes."""
    copy = wp.empty(_bytes(array) + 2 * GUARD, dtype=wp.uint8, device=array.device)
    copy.fill_(_fill(array))
    source = wp.array(ptr=array.ptr, dtype=wp.uint8, shape=_bytes(array), device=array.device)
    wp.copy(copy, source, dest_offset=GUARD, count=_bytes(array))
    return copy


def _unguarded(name: str, copy: wp.array, array: wp.array) -> np.ndarray:
    """Bytes of the copy of an array, whose guards must be as they were."""
    values = copy.numpy()
    guards = np.concatenate([values[:GUARD], values[-GUARD:]])
    assert (guards == _fill(array)).all(), f"{name} writes beyond an array"
    return values[GUARD:-GUARD].copy()


def _redirect(argument: np.ndarray, places: dict[int, int]) -> None:
    """Let the pointers of a packed argument point at copies."""
    for field in [argument] if argument.dtype.names is None else [argument[name] for name in argument.dtype.names]:
        if field.dtype == np.uintp:
            field[0] = places.get(int(field[0]), 0)


def _compare(name: str, found: np.ndarray, expected: np.ndarray, before: np.ndarray, relative: float) -> None:
    """Equal up to the rounding of what was written; unused capacity may hold anything, and is as it was."""
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, name)
        return
    found, expected, before = (np.ascontiguousarray(values).view(np.uint64) for values in (found, expected, before))
    differs, written = found != expected, expected != before
    found, expected = found.view(np.float64), expected.view(np.float64)
    np.testing.assert_array_equal(np.isnan(found[differs]), np.isnan(expected[differs]), name)
    numbers = differs & np.isfinite(expected)
    scale = np.max(np.abs(expected[(written | differs) & np.isfinite(expected)]), initial=0.0)
    assert np.max(np.abs(found[numbers] - expected[numbers]), initial=0.0) <= relative * scale, name
    assert np.isfinite(expected[differs]).sum() + np.isnan(expected[differs]).sum() == differs.sum(), name
