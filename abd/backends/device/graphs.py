"""Recorded work: launches that a device repeats without the host, with loops and branches that it decides itself.

A body of launches runs directly at first, which allocates what it needs, is recorded when it has come up again, and is
replayed from then on. Recorded are addresses, dimensions, numbers and structs by value: a record serves while the device's
`generation` and the caller's key stay the same. Warp replays on the processor too, an order of magnitude faster than
launch by launch, but on one thread: a device that does not record (`Device.records`) runs the same bodies directly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext

import warp as wp

from abd.backends.device.cuda_support import graph_problem
from abd.backends.device.device import Device

MOST = 32
"""Records that are kept."""
PATIENCE = 20
"""Runs before a body is recorded on the processor, where that takes as long as some twenty of them; on CUDA it is one."""


class Graphs:
    """Records of one device.

    Attributes:
        recorded, replayed: how often, for reports.
        whole: whether loops and branches are recorded; without, the host decides them each time. CUDA may be unable to
            (`abd.backends.device.cuda_support.graph_problem`).
        asks_host: whether functions of users have to be asked between the launches, so that nothing can be recorded.
    """

    def __init__(self, device: Device):
        self.device = device
        self.recorded = self.replayed = 0
        self.asks_host = False
        self.whole = device.records and (device.is_cpu or not graph_problem())
        self._generation = -1
        self._patience = 1 if device.wide else PATIENCE
        self._kept: dict[Hashable, wp.Graph | int] = {}

    def run(self, key: Hashable, body: Callable[[], None]) -> None:
        """Run a body of launches; under the same key it has to make the same ones."""
        device = self.device
        observer = device.observer
        if not self.whole or self.asks_host or (observer is not None and observer.inside_graphs):
            body()
            return
        if device.generation != self._generation or len(self._kept) > MOST:
            self._kept.clear()
            self._generation = device.generation
        kept = self._kept.get(key, 0)
        if isinstance(kept, int) and kept < self._patience:
            body()
            # what it allocated on the way begins a new generation
            if device.generation == self._generation:
                self._kept[key] = kept + 1
            return
        graph = self._kept[key] = self._record(body) if isinstance(kept, int) else kept
        self.replayed += 1
        with nullcontext() if observer is None else observer.replay():
            wp.capture_launch(graph)

    def _record(self, body: Callable[[], None]) -> wp.Graph:
        self.recorded += 1
        device = self.device
        wp.capture_begin(device=device.warp)
        device.recording = True
        try:
            body()
        finally:
            device.recording = False
            graph = wp.capture_end(device=device.warp)
        return graph

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body as long as condition[0] is not 0; the body changes it."""
        wp.capture_while(condition, body)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body if condition[0] is not 0."""
        wp.capture_if(condition, body)
