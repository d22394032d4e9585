"""Runs Warp's kernels with the lanes that they have on CUDA: the CUDA source that Warp generates, compiled for this processor
with `cuda_on_cpu.h`, which knows shuffles and masks. Warp's own processor code gives every item one lane."""

import ctypes
import functools
import importlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import warp as wp
from cuda_on_cpu import COMPILER, FLAGS, HERE

from abd.backends.device.device import EMULATED, Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.launcher import BLOCK, Launcher
from abd.backends.linear import factor_schedules

MODULES = tuple(
    f"cuda_kernels.{name}"
    for name in ("parallel.scans", "parallel.sums", "linear.residuals", "linear.factor_levels", "linear.level_solves")
)
"""Those whose kernels share an item among lanes."""
THREADS = 256
NATIVE = Path(wp.__file__).parent / "native"
PREFIX = """
#include "builtin.h"
#include "cuda_on_cpu.h"
template <class T> T shuffle_xor(int place, unsigned mask, T v, int d) {
    return emulator::shuffle(place, mask, v, emulator::lane() ^ d);
}
template <class T> T shuffle_up(int place, unsigned mask, T v, int d) {
    return emulator::shuffle(place, mask, v, emulator::lane() >= d ? emulator::lane() - d : emulator::lane());
}
#define __threadfence()
#define __shfl_xor_sync(mask, ...) shuffle_xor(__LINE__, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) shuffle_up(__LINE__, mask, __VA_ARGS__)
"""
CHANGES = (
    ("#if defined(__CUDA_ARCH__)\n", "#if 1\n"),
    ("#define WP_NO_CRT", ""),
    ('#include "deterministic.h"', ""),
    ('#include "builtin.h"', PREFIX),
)
"""In Warp's source."""
ENTRY = re.compile(r'extern "C" __global__ void ((\w+)_[0-9a-f]{8}_cuda_kernel_forward)\(')


@functools.cache
def kernels_of(module: str) -> dict[str, Callable[..., bytes]]:
    """The kernels of a module by name, compiled for the processor."""
    with tempfile.TemporaryDirectory() as folder:
        wp.compile_aot_module(importlib.import_module(module), arch=90, module_dir=folder, use_ptx=True)
        text = next(Path(folder).glob("*.cu")).read_text()
    for old, new in CHANGES:
        text = text.replace(old, new)
    entries = "".join(
        f'extern "C" const char* run_{key}(void** values, int count, int blocks, int threads, int order)'
        f"{{ return emulator::launch({name}, values, count, blocks, threads, order); }}\n"
        for name, key in ENTRY.findall(text)
    )
    with tempfile.TemporaryDirectory() as folder:
        unit, built = Path(folder) / "unit.cpp", Path(folder) / "unit.so"
        # Warp's words for its numbers would change those of C++
        unit.write_text(f"{text}\n#undef float\n#undef int\n{entries}")
        command = [COMPILER, *FLAGS, f"-I{NATIVE}", f"-I{HERE}", str(unit), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        library = ctypes.CDLL(str(built))
    found = {key: getattr(library, f"run_{key}") for _, key in ENTRY.findall(text)}
    for entry in found.values():
        entry.restype = ctypes.c_char_p
    return found


@contextmanager
def lanes(order: int = 0) -> Iterator[Device]:
    """A device whose kernels in `MODULES` have lanes, which take turns in an order; launches are not recorded meanwhile.

    Attributes of the device: `laned`, how many launches had lanes.

    Raises:
        AssertionError: by a launch that does what CUDA does not allow.
    """
    plain = Launcher.run

    def run(self: Launcher, kernel: wp.Kernel, begin: int, count: int, inputs: tuple, grain: int, *_) -> None:
        if kernel.module.name not in MODULES:
            plain(self, kernel, begin, count, inputs, grain)
            return
        packed = wp.launch(kernel, dim=count, inputs=(begin, *inputs), device=self.warp, record_cmd=True).params
        values = (ctypes.c_void_p * len(packed))(*map(ctypes.addressof, packed))
        entry = kernels_of(kernel.module.name)[kernel.key]
        said = entry(values, len(packed), -(-count // BLOCK), BLOCK, order)
        assert said == b"", f"{kernel.key}: {said.decode()}"
        device.laned += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Launcher, "run", run)
        patch.setattr(Device, "lanes", lambda self, threads: threads)
        patch.setattr(factor_schedules, "THREADS_EMULATED", THREADS)
        patch.setattr(Graphs, "run", lambda self, key, body: body())
        device = Device(EMULATED)
        device.laned = 0
        yield device
