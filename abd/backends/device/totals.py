"""Sums and maxima over items on a device, in a fixed order, read back in one transfer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import capacity_for
from cuda_kernels.step import statistics


@dataclass(frozen=True)
class Section:
    """Quantities of one kind of items: the first `sums` of `quantities` are sums, the others maxima."""

    quantities: int
    sums: int


class Totals:
    """Sections of quantities.

    Partial results of chunks of `statistics.CHUNK` items are folded repeatedly, `CHUNK` at a time, until one is left. The
    order does not depend on the number of threads.

    Args:
        flags: number of flags that are read together with the quantities; numbers: number of additional numbers.

    Attributes:
        out: (quantities, 1) of all sections in order; undefined for sections without items.
        flags: (flags,) int32, in the same memory block; flagged: host copy from the last `read`.
        numbers: (numbers,) float64, likewise; numbered: host copy as a list.
        host: all values of the last `read`, the quantities first.
    """

    def __init__(self, device: Device, sections: dict[str, Section], flags: int = 0, numbers: int = 0):
        self.device, self.sections = device, sections
        starts = np.cumsum([0, *(section.quantities for section in sections.values())])
        self._row = dict(zip(sections, starts[:-1].tolist()))
        self._spans = [(name, int(k), int(end)) for name, k, end in zip(sections, starts, starts[1:])]
        self._rows = max(int(starts[-1]), 1)
        self._flags_end = self._rows + (flags + 1) // 2
        self._memory = device.zeros(self._flags_end + numbers, wp.float64)
        place = self._memory.ptr
        self.out = wp.array(ptr=place, dtype=wp.float64, shape=(self._rows, 1), device=device.warp, copy=False)
        place += 8 * self._rows
        self.flags = wp.array(ptr=place, dtype=wp.int32, shape=flags, device=device.warp, copy=False)
        self.flagged = np.zeros(flags, dtype=np.int32)
        place = self._memory.ptr + 8 * self._flags_end
        self.numbers = wp.array(ptr=place, dtype=wp.float64, shape=numbers, device=device.warp, copy=False)
        self.numbered: list[float] = []
        self.host = np.zeros(0)
        self._nothing = {
            name: [0.0] * section.sums + [-np.inf] * (section.quantities - section.sums)
            for name, section in sections.items()
        }
        self._partials: dict[tuple[str, int], wp.array] = {}
        self._empty: set[str] = set(sections)

    def launch(self, name: str, kernel, count: int, *inputs, grain: int = 64) -> None:
        """Run a kernel of `cuda_kernels.step.statistics` on `count` items and fold its partial results into a section.

        The kernel takes `inputs`, then count, across and the partial results (quantities, chunks).
        """
        if count == 0:
            self.leave_empty(name)
            return
        self.fill(name)
        chunks = -(-count // statistics.CHUNK)
        across = 1 if self.device.wide else statistics.CHUNK
        level = 0
        partial = self._partial(name, chunks, level)
        self.device.launch(kernel, chunks, *inputs, count, across, partial, grain=grain)
        section, row = self.sections[name], self._row[name]
        while True:
            last, left = partial, chunks
            chunks, level = -(-left // statistics.CHUNK), level + 1
            ends = chunks == 1
            partial = self.out if ends else self._partial(name, chunks, level)
            self.device.launch(
                statistics.fold, section.quantities * chunks, last, left, section.sums, chunks, row if ends else 0, partial
            )
            if ends:
                return

    def leave_empty(self, *names: str) -> None:
        """Mark sections as without items."""
        self._empty.update(names)

    def fill(self, *names: str) -> None:
        """Mark sections as with items; call it before a record of their launches is replayed."""
        self._empty.difference_update(names)

    def _partial(self, name: str, chunks: int, level: int) -> wp.array:
        """Array (quantities, at least chunks) of a section."""
        array = self._partials.get((name, level))
        if array is None or array.shape[1] < chunks:
            array = self.device.empty((self.sections[name].quantities, capacity_for(chunks)), wp.float64)
            self._partials[name, level] = array
        return array

    def read(self) -> dict[str, list[float]]:
        """Read the quantities of all sections; sums are 0 and maxima -infinity in sections without items."""
        host = self.device.read(self._memory)
        self.flagged = host[self._rows : self._flags_end].view(np.int32)[: len(self.flagged)]
        self.host, values = host, host.tolist()
        self.numbered = values[self._flags_end :]
        empty, nothing = self._empty, self._nothing
        return {name: nothing[name] if name in empty else values[k:end] for name, k, end in self._spans}
