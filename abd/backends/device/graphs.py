"""Recorded launches that a device replays, including loops and branches, without the host.

A body of launches is rehearsed, which allocates arrays and launches nothing, then recorded, and replayed afterwards. A record
contains addresses, dimensions, numbers and structs by value. It is valid while the device's `generation` and the caller's key are
unchanged. The CPU runs records as a list of commands (`abd.backends.device.command_buffer`) on one thread, much faster than
single launches; the first runs are direct, because recording is slow. A device that does not record (`Device.records`) runs
bodies directly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import warp as wp

from abd.backends.device.command_buffer import CommandBuffer, NotPlain
from abd.backends.device.cuda_support import graph_problem
from abd.backends.device.device import Device

MOST = 32
"""Maximum number of records."""
PATIENCE = 8
"""Number of direct runs on the CPU before a body is recorded; recording takes about as long as these runs."""


class Graphs:
    """Records of one device.

    On the CPU threads may record concurrently, each on its own device. On CUDA one thread records while others wait
    (`Device.turn`).

    Attributes:
        recorded, replayed, dropped: numbers of recordings, replays and discarded records, for reports.
        whole: whether the device supports loops and branches in records (`cuda_support.graph_problem`).
        needs_host: whether users' Python functions run between launches, which prevents recording.
    """

    def __init__(self, device: Device):
        self.device = device
        self.recorded = self.replayed = self.dropped = 0
        self.needs_host = False
        self.whole = device.is_cpu or not graph_problem()
        self._generation = -1
        self._records: dict[Hashable, Callable[[], None] | int] = {}

    def run(self, key: Hashable, body: Callable[[], None]) -> None:
        """Run a body of launches; calls with the same key must make the same launches."""
        device = self.device
        observer = device.observer
        if not (device.records and self.whole) or self.needs_host:
            body()
            return
        self._follow_generation()
        record = self._records.get(key, 0)
        if isinstance(record, int):
            if not device.wide and record < PATIENCE:
                body()
                # allocations in the body begin a new generation
                if device.generation == self._generation:
                    self._records[key] = record + 1
                return
            # branches that no run has taken yet allocate their arrays
            with device.rehearsal():
                body()
            self._follow_generation()
            record = self._record(body)
        # move the record to the end: the least recently used one is dropped first
        self._records.pop(key, None)
        self._records[key] = record
        self.replayed += 1
        with device.turn:
            if observer is None:
                record()
                return
            with observer.replay():
                record()

    def _follow_generation(self) -> None:
        """Drop records of an earlier generation, and the least recently used record if there are too many."""
        if self.device.generation != self._generation:
            self.dropped += sum(not isinstance(kept, int) for kept in self._records.values())
            self._records.clear()
            self._generation = self.device.generation
        elif len(self._records) > MOST:
            self.dropped += not isinstance(self._records.pop(next(iter(self._records))), int)

    def _record(self, body: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of a body; returns a function that replays them."""
        self.recorded += 1
        if self.device.wide:
            return partial(wp.capture_launch, self._capture(body))
        try:
            return self._record_commands(body)
        except NotPlain:
            return body

    def _capture(self, body: Callable[[], None]) -> wp.Graph:
        device = self.device
        with device.turn:
            wp.capture_begin(device=device.warp)
            try:
                self._gather(body)
            finally:
                graph = wp.capture_end(device=device.warp)
        return graph

    def _record_commands(self, body: Callable[[], None]) -> CommandBuffer:
        """Record as commands."""
        device = self.device
        commands = device.commands = CommandBuffer()
        try:
            self._gather(body)
        finally:
            device.commands = None
        commands.close(device.warp)
        return commands

    def _gather(self, body: Callable[[], None]) -> None:
        device = self.device
        device.recording = True
        try:
            body()
        finally:
            device.recording = False
