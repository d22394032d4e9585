"""List of commands that the CPU runs in one call, the CPU records of `abd.backends.device.graphs`.

Commands are packed launches, copies, fills, and jumps for loops and branches; `cuda_kernels.parallel.command_buffer` runs them.
They contain the current addresses and values, which the caller must keep valid.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.packed_launch import Packet, packed
from cuda_kernels.parallel import command_buffer as kernels

_FILLS = {wp.int32: "=ii", wp.float64: "=d"}
"""Format of a fill value in eight bytes, by type; a value of four bytes is repeated."""


class NotPlain(Exception):
    """A launch is not a single call of one function."""


class CommandBuffer:
    """Commands in the order of their calls; call `close` before the first run."""

    def __init__(self):
        self._words: list[tuple[int, int, int, int]] = []
        self._references: list[object] = []
        self._run: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._words)

    def launch(self, command: wp.Launch) -> None:
        """Add a launch with its current arguments.

        Raises:
            NotPlain: the launch is not a single call of one function.
        """
        packet = Packet.of(command)
        if packet is None:
            raise NotPlain
        # copy the bounds: the command may change its own
        bounds = type(packet.bounds).from_buffer_copy(packet.bounds)
        function = ctypes.cast(packet.run, ctypes.c_void_p).value
        self._references += [command.module_exec, packet, bounds]
        self._add(kernels.LAUNCH, function, ctypes.addressof(bounds), ctypes.addressof(packet.arguments))

    def copy(self, out: wp.array, values: wp.array, count: int) -> None:
        """Add a copy of the first `count` entries between contiguous arrays.

        Raises:
            ValueError: an array is too short, or the entry sizes differ.
        """
        plain = out.is_contiguous and values.is_contiguous and out.strides[0] == values.strides[0]
        if not plain or count > min(len(out), len(values)):
            raise ValueError(f"cannot copy {count} entries of {values.dtype} {values.shape} to {out.dtype} {out.shape}")
        self._add(kernels.COPY, out.ptr or 0, values.ptr or 0, count * values.strides[0])

    def fill(self, array: wp.array, value: float = 0) -> None:
        """Add a fill of a contiguous array; types other than int32 and float64 allow only 0.

        Raises:
            TypeError: the fill is not supported.
        """
        words, odd = divmod(array.size * wp.types.type_size_in_bytes(array.dtype), 4)
        if not array.is_contiguous or odd or (value != 0 and array.dtype not in _FILLS):
            raise TypeError(f"cannot record a fill of {array.dtype} with {value!r}")
        if value == 0:
            pattern = 0
        else:
            form, number = _FILLS[array.dtype], int(value) if array.dtype == wp.int32 else float(value)
            pattern = int.from_bytes(struct.pack(form, *[number] * (len(form) - 1)), "little")
        self._add(kernels.FILL, array.ptr or 0, pattern, words)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Add the commands of a body, which run if condition[0], an int32, is not 0."""
        at = self._branch(condition)
        body()
        self._land(at)

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Add the commands of a body, which repeat while condition[0], an int32, is not 0."""
        begin, at = len(self), self._branch(condition)
        body()
        self._add(kernels.JUMP, 0, begin, 0)
        self._land(at)

    def close(self, device: wp.Device) -> None:
        """Finish the list; afterwards calls of the object run it."""
        words = np.array(self._words, dtype=np.uint64).reshape(-1)
        inputs = 0, wp.array(words, dtype=wp.uint64, device=device), len(self)
        command = wp.launch(kernels.run, dim=1, inputs=inputs, device=device, record_cmd=True)
        self._run = packed(command)
        self._references += [inputs, command]

    def __call__(self) -> None:
        self._run()

    def _branch(self, condition: wp.array) -> int:
        self._references.append(condition)
        self._add(kernels.BRANCH, condition.ptr, 0, 0)
        return len(self) - 1

    def _land(self, at: int) -> None:
        """Set the target of the branch at index `at` to the next command."""
        code, condition, _, _ = self._words[at]
        self._words[at] = code, condition, len(self), 0

    def _add(self, *word: int) -> None:
        self._words.append(word)
