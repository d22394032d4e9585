"""Kernel launches of a device: cached, and divided into slices for CPU threads or into pieces in random order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import warp as wp

from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.compiling import load_modules
from abd.backends.device.packed_launch import packed

POOL = "abd-launch"
"""Name of the worker threads."""
BLOCK = 64
"""Threads of a block on CUDA. Small blocks suit the kernels with 130 to 200 registers per thread: a multiprocessor with 65,536
registers runs several blocks of 64 threads, but only one of 256."""
PIECES = 4
"""Maximum number of pieces of a launch in random order."""
RECORDS = 2048
"""Maximum number of cached launches of a device; the cache is then cleared."""


def threads_available() -> int:
    """Number of CPUs available to this process, or ``ABD_THREADS``."""
    wanted = os.environ.get("ABD_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))


class Launcher:
    """Kernel launcher of a Warp device.

    Args:
        threads: number of CPU threads; seed: seed of a random order of the items, empty for the normal order.

    Attributes:
        block: threads of a block; Warp compiles each module per block size.
    """

    def __init__(self, warp: wp.Device, threads: int, seed: str):
        self.warp, self.is_cpu, self.threads = warp, warp.is_cpu, threads
        self.block = 1 if warp.is_cpu else BLOCK
        self._order = np.random.default_rng(int(seed)) if seed else None
        self._loaded: set[wp.Module] = set()
        self._recorded: dict[tuple, list] = {}
        self._pool = ThreadPoolExecutor(threads - 1, POOL) if threads > 1 else None

    def load(self, modules: Iterable[wp.Module], threads: int = 1) -> None:
        """Load the modules that have not been loaded; compilation that takes long shows its progress."""
        missing = set(modules) - self._loaded
        if missing:
            load_modules(self.warp, list(missing), threads, self.block)
            self._loaded |= missing

    def run(self, kernel, begin: int, count: int, inputs: tuple, grain: int, commands: CommandBuffer | None = None) -> None:
        """Run a kernel on items begin .. begin + count - 1, or add its launch to a buffer; `grain` is the minimum number of items
        per thread."""
        if self._order is not None:
            self._launch_out_of_order(kernel, begin, count, inputs)
            return
        slices = 1 if self._pool is None else min(self.threads, count // grain)
        if slices <= 1:
            self._command(kernel, 0, begin, count, inputs, commands)()
            return
        cuts = [begin + count * k // slices for k in range(slices + 1)]
        commands = [self._command(kernel, k, cuts[k], cuts[k + 1] - cuts[k], inputs) for k in range(slices)]
        waiting = [self._pool.submit(command) for command in commands[1:]]
        commands[0]()
        for job in waiting:
            job.result()

    def _launch_out_of_order(self, kernel, begin: int, count: int, inputs: tuple) -> None:
        """Run pieces of random lengths in a random order."""
        order, pieces = self._order, min(count, PIECES)
        cuts = [0, *sorted(order.choice(count - 1, pieces - 1, replace=False) + 1), count] if pieces > 1 else [0, count]
        for lane in order.permutation(pieces).tolist():
            first, end = int(cuts[lane]), int(cuts[lane + 1])
            self._command(kernel, lane, begin + first, end - first, inputs)()

    def _command(
        self, kernel, lane: int, first: int, count: int, inputs: tuple, commands: CommandBuffer | None = None
    ) -> Callable[[], None]:
        """Return the cached launch of a kernel, lane and arguments, because packing arguments costs more than a small kernel.

        Arguments are compared by identity, numbers by value. A struct is read when the launch runs, so that its members may
        change. The cache holds references to the arguments, so that their identities stay unique.
        """
        key = (kernel, lane, *inputs)
        record = self._recorded.get(key)
        if record is None:
            if len(self._recorded) >= RECORDS:
                self._recorded.clear()
            self.load([kernel.module])
            command = wp.launch(
                kernel, dim=count, inputs=(first, *inputs), device=self.warp, block_dim=self.block, record_cmd=True
            )
            record = self._recorded[key] = [command, first, count, None]
        command = record[0]
        if record[1] != first:
            command.set_param_at_index(0, first)
            record[1], record[3] = first, None
        if record[2] != count:
            command.set_dim(count)
            record[2], record[3] = count, None
        if commands is not None:
            return partial(commands.launch, command)
        if not self.is_cpu or self.warp.is_capturing:
            return command.launch
        if record[3] is None:
            record[3] = packed(command)
        return record[3]
