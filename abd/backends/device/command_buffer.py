"""A list of commands that the processor runs in one call: what `abd.backends.device.graphs` records there.

Launches with their arguments packed, copies and fills, and jumps for loops and branches, run by
`cuda_kernels.parallel.command_buffer`. Recorded are addresses and values as they are then; whoever records sees to it that
they stay.
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
"""How eight bytes hold a value, by its type; one of four bytes is there twice."""


class NotPlain(Exception):
    """A launch that no call of one function carries out."""


class CommandBuffer:
    """Commands in the order in which they were given; to be closed before it runs."""

    def __init__(self):
        self._words: list[tuple[int, int, int, int]] = []
        self._kept: list[object] = []
        self._run: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._words)

    def launch(self, command: wp.Launch) -> None:
        """A launch as it is now.

        Raises:
            NotPlain: it is none that one call carries out.
        """
        packet = Packet.of(command)
        if packet is None:
            raise NotPlain
        # the bounds belong to the command, which may be given others
        bounds = type(packet.bounds).from_buffer_copy(packet.bounds)
        function = ctypes.cast(packet.run, ctypes.c_void_p).value
        self._kept += [command.module_exec, packet, bounds]
        self._add(kernels.LAUNCH, function, ctypes.addressof(bounds), ctypes.addressof(packet.arguments))

    def copy(self, out: wp.array, values: wp.array, count: int) -> None:
        """The first `count` entries of one contiguous array to another.

        Raises:
            ValueError: they do not fit, or are of different sizes.
        """
        plain = out.is_contiguous and values.is_contiguous and out.strides[0] == values.strides[0]
        if not plain or count > min(len(out), len(values)):
            raise ValueError(f"{count} entries of {values.dtype} {values.shape} are not copied to {out.dtype} {out.shape}")
        self._add(kernels.COPY, out.ptr or 0, values.ptr or 0, count * values.strides[0])

    def fill(self, array: wp.array, value: float = 0) -> None:
        """All entries of a contiguous array; of anything but int32 and float64 with 0 alone.

        Raises:
            TypeError: such a fill is not possible.
        """
        words, odd = divmod(array.size * wp.types.type_size_in_bytes(array.dtype), 4)
        if not array.is_contiguous or odd or (value != 0 and array.dtype not in _FILLS):
            raise TypeError(f"no array of {array.dtype} is filled with {value!r} while launches are recorded")
        if value == 0:
            pattern = 0
        else:
            form, number = _FILLS[array.dtype], int(value) if array.dtype == wp.int32 else float(value)
            pattern = int.from_bytes(struct.pack(form, *[number] * (len(form) - 1)), "little")
        self._add(kernels.FILL, array.ptr or 0, pattern, words)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """What a body gives is done if condition[0], an int32, is not 0."""
        at = self._branch(condition)
        body()
        self._land(at)

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """The same as long as it is not 0."""
        begin, at = len(self), self._branch(condition)
        body()
        self._add(kernels.JUMP, 0, begin, 0)
        self._land(at)

    def close(self, device: wp.Device) -> None:
        """Nothing more is given; afterwards a call runs it."""
        words = np.array(self._words, dtype=np.uint64).reshape(-1)
        inputs = 0, wp.array(words, dtype=wp.uint64, device=device), len(self)
        command = wp.launch(kernels.run, dim=1, inputs=inputs, device=device, record_cmd=True)
        self._run = packed(command)
        self._kept += [inputs, command]

    def __call__(self) -> None:
        self._run()

    def _branch(self, condition: wp.array) -> int:
        self._kept.append(condition)
        self._add(kernels.BRANCH, condition.ptr, 0, 0)
        return len(self) - 1

    def _land(self, at: int) -> None:
        """The branch at this place leads to what comes next."""
        code, condition, _, _ = self._words[at]
        self._words[at] = code, condition, len(self), 0

    def _add(self, *word: int) -> None:
        self._words.append(word)
