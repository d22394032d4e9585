"""How a device spends its time without being held up by the watching: launches, replays of graphs, read-backs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import warp as wp

from abd.backends.device.device import Device


class Timeline:
    """Watches a device while the context lasts; unlike `abd.backends.device.watching.launches` it leaves graphs whole.

    Attributes:
        launches: kernels launched one by one; replays: graphs; transfers: name -> number of "read", "write", "sort".
        inside_graphs: False, see `abd.backends.device.watching.observer.Observer`.
    """

    inside_graphs = False

    def __init__(self, device: Device):
        self.device = device
        self.launches = self.replays = 0
        self.transfers: dict[str, int] = {}
        self._seconds = 0.0
        self._events: list[tuple[wp.Event, wp.Event]] = []

    def __enter__(self) -> Timeline:
        self.device.observer = self
        return self

    def __exit__(self, *_) -> None:
        self.device.observer = None

    @property
    def busy(self) -> float:
        """Time in which kernels and graphs ran [s]; on CUDA after everything has run."""
        if self._events:
            wp.synchronize_device(self.device.warp)
            self._seconds += sum(1e-3 * wp.get_event_elapsed_time(begin, end) for begin, end in self._events)
            self._events.clear()
        return self._seconds

    @contextmanager
    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> Iterator[None]:
        """A kernel; while a graph is recorded it is part of that."""
        if self.device.warp.is_capturing:
            yield
            return
        self.launches += 1
        with self._timed():
            yield

    @contextmanager
    def replay(self) -> Iterator[None]:
        """A graph that is replayed."""
        self.replays += 1
        with self._timed():
            yield

    @contextmanager
    def transfer(self, name: str, array: wp.array, count: int | None) -> Iterator[None]:
        """Something that the host takes part in: the device waits."""
        self.transfers[name] = self.transfers.get(name, 0) + 1
        yield

    @contextmanager
    def _timed(self) -> Iterator[None]:
        if self.device.is_cpu:
            begin = perf_counter()
            yield
            self._seconds += perf_counter() - begin
            return
        begin, end = (wp.Event(self.device.warp, enable_timing=True) for _ in range(2))
        wp.record_event(begin)
        yield
        wp.record_event(end)
        self._events.append((begin, end))
