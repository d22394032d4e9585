"""What a GPU is made of, as its driver says: numbers that stay the same from run to run, for choices that must not differ."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

import warp as wp

_CLOCK, _PROCESSORS, _MEMORY_CLOCK, _BUS_WIDTH, _SINGLES_PER_DOUBLE = 13, 16, 36, 37, 87
"""CUdevice_attribute of CUDA's driver; clocks in kHz, the width in bits."""
_FEW_LANES = ((6, 0), (7, 0), (7, 2), (7, 5), (8, 0))
"""Architectures of 64 single-precision lanes per multiprocessor; others have 128."""


@dataclass(frozen=True)
class Machine:
    """A device on which thousands of threads run at once.

    Attributes:
        multiprocessors: how many; clock: their rate [1/s].
        doubles: multiplications and additions in double precision that each does per cycle.
        bandwidth: of its memory [B/s].
    """

    multiprocessors: int
    clock: float
    doubles: float
    bandwidth: float

    @property
    def rate(self) -> float:
        """Multiplications and additions in double precision of all multiprocessors [1/s]."""
        return self.multiprocessors * self.clock * self.doubles


TYPICAL = Machine(multiprocessors=132, clock=1.98e9, doubles=64.0, bandwidth=4.8e12)
"""An H200 by its data sheet: what is reckoned with where there is no GPU, or where the driver does not say."""


def machine_of(device: wp.Device) -> Machine:
    """What a Warp device is made of; `TYPICAL` for the processor, which stands in for a GPU then."""
    if not device.is_cuda:
        return TYPICAL
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return TYPICAL

    def ask(attribute: int) -> int:
        found = ctypes.c_int(0)
        failed = driver.cuDeviceGetAttribute(ctypes.byref(found), attribute, device.ordinal)
        return 0 if failed else found.value

    asked = (ask(one) for one in (_PROCESSORS, _CLOCK, _SINGLES_PER_DOUBLE, _MEMORY_CLOCK, _BUS_WIDTH))
    return from_attributes((device.arch // 10, device.arch % 10), *asked)


def from_attributes(arch: tuple[int, int], processors: int, clock: int, ratio: int, memory_clock: int, width: int) -> Machine:
    """From what the driver says: clocks [kHz], single-precision lanes for each one of double precision, width of the memory's bus
    [bit], which is read twice in a cycle. What it does not say, 0, is as of `TYPICAL`."""
    lanes = 64 if arch in _FEW_LANES else 128
    return Machine(
        multiprocessors=processors or TYPICAL.multiprocessors,
        clock=1e3 * clock or TYPICAL.clock,
        doubles=lanes / ratio if ratio else TYPICAL.doubles,
        bandwidth=2.0 * 1e3 * memory_clock * width / 8 or TYPICAL.bandwidth,
    )
