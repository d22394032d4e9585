"""What a device runs, kernel by kernel: time, calls, items, bytes and operations, for `abd bench --profile`.

Bytes are measured from the arrays that a launch is given: each of them, those inside structs included, counts once, and
of arrays with more rows than the launch has items as many rows as items, unless its items walk through rows. That is
what a kernel has to move if every number travels once. Kernels that gather rows again and again move more, kernels that
leave early or find room that is not in use move less, and so bytes over time is an estimate of bandwidth, not a reading
of counters. Operations are counted where `abd.backends.device.watching.operations` knows how many a kernel needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.watching.operations import WALKING, operations


@dataclass
class Work:
    """All launches of one kernel, or all transfers of one kind.

    Attributes:
        name: module and kernel; "host: read" and its like for work that the host takes part in.
        calls, items: launches, and their items in all.
        seconds: wall time on the processor, time between two events on CUDA.
        bytes: moved at least, see above; flops: operations, None where they are not counted.
    """

    name: str
    calls: int = 0
    items: int = 0
    seconds: float = 0.0
    bytes: int = 0
    flops: float | None = None


class Launches:
    """Watches a device while the context lasts.

    Looking at arguments takes about as long as a small launch: the times of kernels are right, that of the step is not.
    What graphs hold is run launch by launch.
    """

    inside_graphs = True

    def __init__(self, device: Device):
        self.device = device
        self._works: dict[str, Work] = {}
        self._events: list[tuple[Work, wp.Event, wp.Event]] = []

    def __enter__(self) -> Launches:
        self.device.observer = self
        return self

    def __exit__(self, *_) -> None:
        self.device.observer = None

    def works(self) -> list[Work]:
        """What ran so far, the longest first; on CUDA after everything has run."""
        if self._events:
            wp.synchronize_device(self.device.warp)
            for work, begin, end in self._events:
                work.seconds += 1e-3 * wp.get_event_elapsed_time(begin, end)
            self._events.clear()
        return sorted(self._works.values(), key=lambda work: (-work.seconds, work.name))

    @contextmanager
    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> Iterator[None]:
        """A kernel on `count` items."""
        work = self._work(f"{kernel.module.name.rpartition('.')[2]}.{kernel.key}", count)
        work.bytes += moved(inputs, None if kernel.key in WALKING else count)
        flops = operations(kernel.key, count)
        if flops is not None:
            work.flops = (work.flops or 0.0) + flops
        with self._timed(work):
            yield

    @contextmanager
    def transfer(self, name: str, array: wp.array, count: int | None) -> Iterator[None]:
        """Something that the host takes part in."""
        rows = array.shape[0] if count is None else count
        work = self._work(f"host: {name}", rows)
        work.bytes += rows * row_bytes(array)
        with self._timed(work):
            yield

    def _work(self, name: str, items: int) -> Work:
        work = self._works.setdefault(name, Work(name))
        work.calls += 1
        work.items += items
        return work

    @contextmanager
    def _timed(self, work: Work) -> Iterator[None]:
        if self.device.is_cpu:
            begin = perf_counter()
            yield
            work.seconds += perf_counter() - begin
        elif self.device.warp.is_capturing:
            # what is put into a graph runs later, and as often as the graph: it has no time of its own
            yield
        else:
            begin, end = (wp.Event(self.device.warp, enable_timing=True) for _ in range(2))
            wp.record_event(begin)
            yield
            wp.record_event(end)
            self._events.append((work, begin, end))


def moved(inputs: Iterable, rows: int | None) -> int:
    """Bytes of at most as many rows of all arrays among the arguments of a launch; None for all rows."""
    arrays = {array.ptr: array for array in _arrays(inputs) if array.ptr}
    return sum(
        (array.shape[0] if rows is None else min(array.shape[0], rows)) * row_bytes(array) for array in arrays.values()
    )


def row_bytes(array: wp.array) -> int:
    """Bytes of one row (first index) of an array."""
    size = wp.types.type_size_in_bytes(array.dtype)
    for length in array.shape[1:]:
        size *= length
    return size


def _arrays(values: Iterable) -> Iterator[wp.array]:
    """Arrays among arguments and in their structs, and those that a table of addresses leads to."""
    for value in values:
        if isinstance(value, wp.array):
            yield value
            yield from getattr(value, "behind", ())
        elif members := getattr(value, "__dict__", None):
            yield from _arrays(members.values())
