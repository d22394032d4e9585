"""Launches of a device: packed once, cut into slices for the threads of the processor, or into pieces out of order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import warp as wp

from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.packed_launch import packed

POOL = "abd-launch"
"""Name of threads that share launches."""
BLOCK = 64
"""Threads of a block on CUDA. Two dozen kernels have 130 to 200 registers, of which a multiprocessor has 65,536: of blocks of 256
threads it runs one, of such of 64 five to seven, which end one by one."""
PIECES = 4
"""Into at most so many pieces a launch out of order is cut."""
RECORDS = 2048
"""Recorded launches a device keeps before it starts anew."""
VARIANTS = 32
"""Those that differ in numbers only, before the oldest of them takes new numbers, which costs less than a new record."""


def threads_available() -> int:
    """Processors this process may use, or ``ABD_THREADS``."""
    wanted = os.environ.get("ABD_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))


class Launcher:
    """Runs kernels on a Warp device.

    Args:
        threads: among which items are shared; seed: of the order of the items, which is random then.

    Attributes:
        commands: where launches go instead of being run, None for Warp's own records.
        block: threads of a block; Warp compiles a module for each number of them.
    """

    def __init__(self, warp: wp.Device, threads: int, seed: str):
        self.warp, self.is_cpu, self.threads = warp, warp.is_cpu, threads
        self.commands: CommandBuffer | None = None
        self.block = 1 if warp.is_cpu else BLOCK
        self._order = np.random.default_rng(int(seed)) if seed else None
        self._recorded: dict[tuple, list] = {}
        self._variants: dict[tuple, deque[tuple]] = {}
        self._pool = ThreadPoolExecutor(threads - 1, POOL) if threads > 1 else None

    def forget(self) -> None:
        """Pack every launch anew."""
        self._recorded.clear()
        self._variants.clear()

    def run(self, kernel, begin: int, count: int, inputs: tuple, grain: int) -> None:
        """Run a kernel on items begin .. begin + count - 1; `grain` is the smallest slice worth a thread."""
        if self._order is not None:
            self._launch_out_of_order(kernel, begin, count, inputs)
            return
        slices = 1 if self._pool is None else min(self.threads, count // grain)
        if slices <= 1:
            self._command(kernel, 0, begin, count, inputs)()
            return
        cuts = [begin + count * k // slices for k in range(slices + 1)]
        commands = [self._command(kernel, k, cuts[k], cuts[k + 1] - cuts[k], inputs) for k in range(slices)]
        waiting = [self._pool.submit(command) for command in commands[1:]]
        commands[0]()
        for job in waiting:
            job.result()

    def _launch_out_of_order(self, kernel, begin: int, count: int, inputs: tuple) -> None:
        """Pieces of random lengths, one after the other in a random order."""
        order, pieces = self._order, min(count, PIECES)
        cuts = [0, *sorted(order.choice(count - 1, pieces - 1, replace=False) + 1), count] if pieces > 1 else [0, count]
        for lane in order.permutation(pieces).tolist():
            first, end = int(cuts[lane]), int(cuts[lane + 1])
            self._command(kernel, lane, begin + first, end - first, inputs)()

    def _command(self, kernel, lane: int, first: int, count: int, inputs: tuple) -> Callable[[], None]:
        """Runs a launch recorded per kernel, lane and arguments: packing them anew costs more than a small kernel. Where there
        are many that differ in numbers only, the oldest of them takes the new numbers.

        Arguments count as the same by identity, numbers by value; a struct is read when the launch runs, so its members
        may change meanwhile. The record keeps its arguments alive, so that no identity comes back as another object.
        """
        key = (kernel, lane, *inputs)
        record = self._recorded.get(key)
        if record is None:
            if len(self._recorded) >= RECORDS:
                self.forget()
            variant = (kernel, lane, *(None if isinstance(x, int | float) else id(x) for x in inputs))
            alike = self._variants.setdefault(variant, deque())
            if len(alike) < VARIANTS:
                command = wp.launch(
                    kernel, dim=count, inputs=(first, *inputs), device=self.warp, block_dim=self.block, record_cmd=True
                )
                record = [command, first, count, inputs, None]
            else:
                record = self._recorded.pop(alike.popleft())
                self._renumber(record, inputs)
            self._recorded[key] = record
            alike.append(key)
        command = record[0]
        if record[1] != first:
            command.set_param_at_index(0, first)
            record[1], record[4] = first, None
        if record[2] != count:
            command.set_dim(count)
            record[2], record[4] = count, None
        if self.commands is not None:
            return partial(self.commands.launch, command)
        if not self.is_cpu or self.warp.is_capturing:
            return command.launch
        if record[4] is None:
            record[4] = packed(command)
        return record[4]

    @staticmethod
    def _renumber(record: list, inputs: tuple) -> None:
        """Change a record to these arguments, which differ from its own in numbers only."""
        for index, (now, before) in enumerate(zip(inputs, record[3], strict=True), 1):
            if now is not before and now != before:
                record[0].set_param_at_index(index, now)
        record[3], record[4] = inputs, None
