"""Recorded work: launches that a device repeats without the host, with loops and branches that it decides itself.

A body of launches is rehearsed, which allocates what it needs and launches nothing, recorded, and replayed from then on.
Recorded are addresses, dimensions, numbers and structs by value: a record serves while the device's `generation` and the
caller's key stay the same. The processor runs records through a list of commands (`abd.backends.device.command_buffer`), on one
thread, a hundred times faster than launch by launch; since recording takes as long as some runs, the first of them are direct
there. A device that does not record (`Device.records`) runs the same bodies directly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial

import warp as wp

from abd.backends.device.command_buffer import CommandBuffer, NotPlain
from abd.backends.device.cuda_support import graph_problem
from abd.backends.device.device import Device
from abd.backends.device.launcher import POOL

MOST = 32
"""Records that are kept."""
PATIENCE = 8
"""Runs before a body is recorded on the processor, where that takes as long as some eight of them."""


def alone() -> bool:
    """Whether no other thread of the process may launch anything by itself: those that share launches do not."""
    here = threading.current_thread()
    return all(one is here or one.name.startswith(f"{POOL}_") for one in threading.enumerate())


class Graphs:
    """Records of one device. On the processor threads may record at once, each on a device of its own; on CUDA one after another,
    while the others wait (`Device.turn`).

    Attributes:
        recorded, replayed: how often, for reports; dropped: records that were thrown away.
        whole: whether loops and branches are recorded; without, the host decides them each time. CUDA may be unable to
            (`abd.backends.device.cuda_support.graph_problem`).
        patience: runs before a body is recorded on the processor.
        asks_host: whether functions of users have to be asked between the launches, so that nothing can be recorded.
    """

    def __init__(self, device: Device):
        self.device = device
        self.recorded = self.replayed = self.dropped = 0
        self.asks_host = False
        self.whole = device.is_cpu or not graph_problem()
        self._generation = -1
        self._kept: dict[Hashable, Callable[[], None] | int] = {}
        self._by_commands, self.patience = device.is_cpu and not device.wide, PATIENCE

    def run(self, key: Hashable, body: Callable[[], None]) -> None:
        """Run a body of launches; under the same key it has to make the same ones."""
        device = self.device
        observer = device.observer
        if not (device.records and self.whole) or self.asks_host:
            body()
            return
        self._follow_generation()
        kept = self._kept.get(key, 0)
        if isinstance(kept, int):
            if device.wide:
                with device.rehearsal():
                    body()
                self._follow_generation()
            elif kept < self.patience:
                body()
                # what it allocated on the way begins a new generation
                if device.generation == self._generation:
                    self._kept[key] = kept + 1
                return
            kept = self._record(body)
        # the one used last is the last to go
        self._kept.pop(key, None)
        self._kept[key] = kept
        self.replayed += 1
        with device.turn:
            if observer is None:
                kept()
                return
            with observer.replay():
                kept()

    def _follow_generation(self) -> None:
        """Throw away records of an earlier generation, and the one not used for longest where there are too many."""
        if self.device.generation != self._generation:
            self.dropped += sum(not isinstance(kept, int) for kept in self._kept.values())
            self._kept.clear()
            self._generation = self.device.generation
        elif len(self._kept) > MOST:
            self.dropped += not isinstance(self._kept.pop(next(iter(self._kept))), int)

    def _record(self, body: Callable[[], None]) -> Callable[[], None]:
        """Runs what the body launches."""
        self.recorded += 1
        if self._by_commands:
            try:
                return self._record_commands(body)
            except NotPlain:
                self._by_commands = False
            if not alone():
                return body  # Warp's capture is one of the whole process
        return partial(wp.capture_launch, self._capture(body))

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
        """The same as commands. Warp's capture finds what is none of them, and would be lost; it is one of the whole process, so
        that it looks only where no other thread could be caught in it."""
        device = self.device
        commands = device.commands = CommandBuffer()
        try:
            if alone():
                self._refuse_lost(self._capture(body))
            else:
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

    @staticmethod
    def _refuse_lost(graph: wp.Graph) -> None:
        capture = getattr(graph, "_apic_capture", None)  # Warp has no other way to count what it captured
        if capture is None:
            raise NotPlain
        if lost := capture.operation_count:
            raise RuntimeError(
                f"{lost} operations were not recorded; launch, copy and fill arrays by the methods of `Device`"
            )

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body as long as condition[0] is not 0; the body changes it."""
        self.device.repeat(condition, body)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body if condition[0] is not 0."""
        self.device.when(condition, body)
