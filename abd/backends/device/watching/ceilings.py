"""The measured ceilings of a device: copy bandwidth and float64 arithmetic, by kernels like all others."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import warp as wp

from abd.backends.device.device import Device
from cuda_kernels.parallel import ceilings as kernels

COPIED = 1 << 27
"""Bytes of each of the two arrays that are copied: more than the caches of most machines hold."""
ITEMS = {True: 1 << 14, False: 1 << 20}
"""Items of the arithmetic, on a processor and on a GPU."""
REPEATS = 5


@dataclass(frozen=True)
class Ceilings:
    """Bytes read and written per second by a copy; float64 operations per second."""

    copy: float
    flops: float


def measure_ceilings(device: Device) -> Ceilings:
    """The best of a few runs each; takes about a second, 256 MiB, and compiles three kernels once."""
    numbers, rows = COPIED // 8, COPIED // 96
    pair = [device.zeros(numbers, wp.float64) for _ in range(2)]
    wide = [wp.array(ptr=a.ptr, dtype=kernels.row12, shape=rows, device=device.warp) for a in pair]
    copied = min(
        _seconds(device, kernels.copy_numbers, numbers, *pair) / (16 * numbers),
        _seconds(device, kernels.copy_rows, rows, *wide) / (192 * rows),
    )
    items = min(ITEMS[device.is_cpu], rows)
    computed = _seconds(device, kernels.multiply_add, items, 0.5, wide[0]) / (kernels.FLOPS * items)
    return Ceilings(1.0 / copied, 1.0 / computed)


def _seconds(device: Device, kernel, count: int, *inputs) -> float:
    """Shortest time of a launch [s]; the first one, which may compile, is not counted."""
    found = []
    for _ in range(REPEATS + 1):
        wp.synchronize_device(device.warp)
        begin = perf_counter()
        device.launch(kernel, count, *inputs)
        wp.synchronize_device(device.warp)
        found.append(perf_counter() - begin)
    return min(found[1:])
