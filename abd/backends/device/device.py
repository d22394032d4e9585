"""Where arrays live and kernels run: one class for the processor and for CUDA.

On the processor a large launch is cut into slices, one per thread; results do not depend on the cut, because every sum
runs in a fixed order inside one item, and the one number that items share (`cuda_kernels.contact.ccd`) is a hint.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import Timer
from types import ModuleType
from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.cuda_support import cuda_problem, cuda_remedy
from abd.backends.device.packed_launch import packed
from abd.backends.device.raw_kernels import raw_kernels
from abd.backends.device.staging import Staging
from abd.errors import DeviceError
from cuda_kernels.bodies.vector12 import vec12

_log = logging.getLogger(__name__)
ALONE = 1 << 62
"""Grain of a launch that one thread has to run on the processor, whose atomic operations are none."""
_PATIENCE = 1.5
"""Loading that takes longer [s] is compiling: compiled kernels load in a tenth of a second."""


def threads_available() -> int:
    """Processors this process may use, or ``ABD_THREADS``."""
    wanted = os.environ.get("ABD_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))


EMULATED = "emulated"
"""Name of the device that has the shape of CUDA on the processor, where it can be tested without a GPU. "emulated:SEED" runs
the items of a launch out of order, as a GPU may."""
PIECES = 4
"""Into at most so many pieces such a launch is cut."""
LANDING = 4096
"""Bytes up to which an array is read through pinned memory that is kept for arrays of its shape."""
RECORDS = 2048
"""Recorded launches a device keeps before it starts anew."""
VARIANTS = 32
"""Those that differ in numbers only, before the oldest of them takes new numbers, which costs less than a new record."""
_UNSEEN = nullcontext()


class Observer(Protocol):
    """Who watches what a device does (`abd.backends.device.launches`, `.timeline`); the contexts enclose the work.

    Attributes:
        inside_graphs: whether to run what graphs hold launch by launch, so that every launch is seen.
    """

    inside_graphs: bool

    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> AbstractContextManager:
        """A kernel on `count` items."""

    def replay(self) -> AbstractContextManager:
        """A graph; only asked for without `inside_graphs`."""

    def transfer(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        """Something that the host takes part in ("read", "write", "sort") on `count` entries, None for all."""


class Device:
    """A Warp device: launches, sorts and read-backs.

    Args:
        name: "cpu", "cuda", "cuda:N", or "emulated": everything as on CUDA, but for the memory, on the processor;
            "emulated:SEED": launches in pieces that run in a random order besides.

    Attributes:
        observer: told of everything that runs, while there is one.
        is_cpu: whether the host can look into the arrays.
        wide: whether launches have the shape that suits thousands of threads, an item each.
        records: whether what `Graphs` runs is recorded and replayed, by one thread; always where `wide`. Otherwise it is launched
            kernel by kernel, whose items threads share.
        recording: whether launches are being recorded; nothing can be read then.
        rehearsing: whether launches are gone through without being made.
        commands: where they go instead of being run, None for Warp's own records.
        generation: rises with every allocation and swap of arrays; what was recorded before is not to be replayed then.
        asked: conditions that the host has looked at, outside of records.
        raw: hand-written kernels that take the place of Warp's, None where there are none; why_not_raw: the reason.

    Raises:
        DeviceError: the device is not there.
    """

    def __init__(self, name: str = "cpu", records: bool = False):
        kind, _, seed = name.partition(":")
        emulated = kind == EMULATED and (name == EMULATED or seed.isdigit())
        problem = cuda_problem()
        if name != "cpu" and not emulated and problem:
            raise DeviceError(f"no device {name!r}: {problem}; {cuda_remedy()}; `abd doctor` shows more")
        try:
            self.warp = wp.get_device("cpu" if emulated else name)
        except Exception as error:
            known = ", ".join(["cpu", *map(str, wp.get_cuda_devices())])
            raise DeviceError(f"no device {name!r}: {error}; there are {known}") from error
        self.name = name if emulated else str(self.warp)
        self.is_cpu = self.warp.is_cpu
        self.wide = emulated or not self.is_cpu
        self.records = records or self.wide
        self.threads = 1 if self.records else threads_available()
        self.generation, self.asked = 0, 0
        self.recording = self.rehearsing = False
        self.commands: CommandBuffer | None = None
        self.observer: Observer | None = None
        self._order = np.random.default_rng(int(seed)) if emulated and seed else None
        self.raw, self.why_not_raw = raw_kernels(self.warp)
        self._recorded: dict[tuple, list] = {}
        self._variants: dict[tuple, deque[tuple]] = {}
        self._views: dict[int, wp.array] = {}
        self._host_views: dict[int, np.ndarray] = {}
        self._staging = Staging(self.warp)
        self._landings: dict[tuple, wp.array] = {}
        self._pool = ThreadPoolExecutor(self.threads - 1, "abd") if self.threads > 1 else None

    def lanes(self, threads: int) -> int:
        """How many threads of a CUDA device share the work on an item: `threads`, or one on the processor."""
        return 1 if self.is_cpu else threads

    def load(self, package: ModuleType, *there: str) -> None:
        """Compile, where that was not done before, and load all kernels of a package's imported modules, but for those that
        are `LOADED_FOR` what is not there, on this device or by these words, which wait until somebody launches them.

        All at once and side by side: compiling each at its first launch would stop the simulation again and again.
        A log record at level INFO says so if it takes a while.
        """
        known = {*there, "cuda" if self.wide else "cpu"}
        wanted = [
            wp.get_module(name)
            for name, module in sys.modules.items()
            if name.startswith(f"{package.__name__}.") and known.issuperset(getattr(module, "LOADED_FOR", ()))
        ]
        notice = Timer(_PATIENCE, _log.info, ("compiling kernels, this once (a minute on two processors)",))
        notice.start()
        try:
            wp.force_load(self.warp, [one for one in wanted if one.kernels], max_workers=threads_available())
        finally:
            notice.cancel()

    def launch(self, kernel, count: int, *inputs, grain: int = 2048, begin: int = 0) -> None:
        """Run `kernel` on items begin .. begin + count - 1; its first argument is the index of the slice's first item.

        `grain` is the smallest slice worth a thread.
        """
        if count <= 0:
            return
        if self.rehearsing:
            # loaded now, it need not be while launches are recorded
            kernel.module.load(self.warp)
            return
        if self.observer is None:
            self._launch(kernel, begin, count, inputs, grain)
            return
        with self.observer.launch(kernel, count, inputs):
            self._launch(kernel, begin, count, inputs, grain)

    def _launch(self, kernel, begin: int, count: int, inputs: tuple, grain: int) -> None:
        if self.raw is not None and self.raw.launch(kernel, begin, count, inputs):
            return
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
        key = (kernel, lane, *(x if isinstance(x, int | float) else id(x) for x in inputs))
        record = self._recorded.get(key)
        if record is None:
            if len(self._recorded) >= RECORDS:
                self._recorded.clear()
                self._variants.clear()
            variant = (kernel, lane, *(None if isinstance(x, int | float) else id(x) for x in inputs))
            alike = self._variants.setdefault(variant, deque())
            if len(alike) < VARIANTS:
                command = wp.launch(kernel, dim=count, inputs=(first, *inputs), device=self.warp, record_cmd=True)
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

    def _allocate(self) -> None:
        """Something gets a new place: what was recorded is outdated."""
        self._refuse("allocated")
        self.generation += 1

    def _refuse(self, what: str) -> None:
        """What a record cannot hold: the host would do it once, when it is recorded, and never again."""
        if self.recording:
            raise RuntimeError(f"nothing can be {what} while launches are recorded")

    def _refuse_host(self, what: str) -> None:
        """Neither a record nor its rehearsal has anything to do with the host."""
        self._refuse(what)
        if self.rehearsing:
            raise RuntimeError(f"nothing can be {what} in what is to be recorded")

    @property
    def deferring(self) -> bool:
        """Whether launches are recorded, or rehearsed for that, so that nothing they find can be read."""
        return self.recording or self.rehearsing

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """A body is gone through, with all its loops and branches, for what it allocates; nothing is launched."""
        self.rehearsing = True
        try:
            yield
        finally:
            self.rehearsing = False

    def empty(self, shape, dtype) -> wp.array:
        """Uninitialised array."""
        self._allocate()
        return wp.empty(shape, dtype=dtype, device=self.warp)

    def zeros(self, shape, dtype) -> wp.array:
        """Array of zeros."""
        self._allocate()
        return wp.zeros(shape, dtype=dtype, device=self.warp)

    def upload(self, values, dtype) -> wp.array:
        """Copy of host values."""
        self._allocate()
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.warp, copy=True)

    def rows(self, values: wp.array) -> wp.array:
        """Float64 blocks (k, 12, 12) or states (n, 12) seen as rows of `vec12`, without a copy.

        The same array gives the same view, so that launches stay recorded; it is valid as long as the array lives.
        """
        view = self._views.get(id(values))
        if view is None:
            shape = values.shape[:-1]
            view = wp.array(ptr=values.ptr, dtype=vec12, shape=shape, device=self.warp, copy=False)
            self._views[id(values)] = view
            weakref.finalize(values, self._views.pop, id(values), None)
        return view

    def adopt(self, values: np.ndarray, dtype) -> wp.array:
        """Host values that nobody needs any more: on the processor the array itself."""
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.warp, copy=not self.is_cpu)

    def read(self, array: wp.array, count: int | None = None) -> np.ndarray:
        """Host copy of the first `count` entries."""
        self._refuse_host("read")
        if self.observer is None and not self.wide:
            view = self._host_views.get(id(array))
            if view is not None:
                return (view if count is None else view[:count]).copy()
        with self._seen("read", array, count):
            if not self.wide:
                view = self._seen_by_host(array)
                return (view if count is None else view[:count]).copy()
            # Warp takes no slice of an empty array
            view = array if count is None or count >= len(array) else array[:count]
            if self.is_cpu:
                return view.numpy().copy()
            return self._land(view) if 0 < view.size * view.strides[-1] <= LANDING else view.numpy()

    def _seen_by_host(self, array: wp.array) -> np.ndarray:
        """An array of the processor as numpy sees it, without a copy; made once, for that takes longer than to read a few
        numbers."""
        view = self._host_views.get(id(array))
        if view is None:
            like = array.numpy()
            if not like.nbytes or not array.is_contiguous:
                return like
            # what Warp gives numpy holds the array, which would live as long as its view
            memory = (ctypes.c_char * like.nbytes).from_address(array.ptr)
            view = np.ndarray(like.shape, like.dtype, memory)
            self._host_views[id(array)] = view
            weakref.finalize(array, self._host_views.pop, id(array), None)
        return view

    def _land(self, view: wp.array) -> np.ndarray:
        """Host copy of a small array through pinned memory, which waits for the device's stream alone."""
        key = view.dtype, view.shape
        landing = self._landings.get(key)
        if landing is None:
            landing = wp.empty(view.shape, dtype=view.dtype, device="cpu", pinned=True)
            self._landings[key] = landing
        wp.copy(landing, view)
        wp.synchronize_stream(self.warp.stream)
        return landing.numpy().copy()

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy host values into the first entries of an array."""
        self._refuse_host("written")
        with self._seen("write", array, len(values)):
            if not self.wide:
                self._seen_by_host(array)[: len(values)] = values
            elif len(values):
                kind = wp.dtype_to_numpy(getattr(array.dtype, "_wp_scalar_type_", array.dtype))
                numbers = np.ascontiguousarray(values, dtype=kind)
                width = wp.types.type_size_in_bytes(array.dtype) // np.dtype(kind).itemsize
                if numbers.size != len(values) * width * (array.size // len(array)):
                    raise ValueError(f"rows of {numbers.shape[1:]} are no rows of {array.dtype} {array.shape[1:]}")
                self._staging.write(array, numbers)

    def fill(self, array: wp.array, value: float = 0) -> None:
        """Set all entries of an array; a launch like any other, which may be recorded."""
        if self.rehearsing:
            return
        if self.commands is not None:
            self.commands.fill(array, value)
        elif value == 0:
            array.zero_()
        else:
            array.fill_(value)

    def copy(self, out: wp.array, values: wp.array, count: int | None = None) -> None:
        """Copy the first `count` entries of an array, all of them without, to another one; likewise."""
        if self.rehearsing:
            return
        count = len(values) if count is None else count
        if self.commands is not None:
            self.commands.copy(out, values, count)
        elif count:
            wp.copy(out, values, count=count * (values.size // len(values)))

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body as long as condition[0] is not 0; the body changes it. In a record the device decides that."""
        if self.rehearsing:
            body()
            return
        if self.commands is not None:
            self.commands.repeat(condition, body)
            return

        def turn() -> None:
            self.asked += not self.recording
            body()

        self.asked += not self.recording
        wp.capture_while(condition, turn)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body if condition[0] is not 0; likewise."""
        if self.rehearsing:
            body()
            return
        if self.commands is not None:
            self.commands.when(condition, body)
            return
        self.asked += not self.recording
        wp.capture_if(condition, body)

    def sort_pairs(self, keys: wp.array, values: wp.array, count: int) -> None:
        """Sort `values` by integer `keys`, stably; both arrays hold at least 2 count entries."""
        self._refuse_host("sorted")
        with self._seen("sort", keys, count):
            if self.is_cpu:
                k, v = keys.numpy(), values.numpy()
                order = np.argsort(k[:count], kind="stable")
                k[:count], v[:count] = k[order], v[order]
                return
            with wp.ScopedDevice(self.warp):  # it takes the current one
                wp.utils.radix_sort_pairs(keys, values, count)

    def _seen(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        return _UNSEEN if self.observer is None else self.observer.transfer(name, array, count)


GROWTH = 1.5
"""From one room to the next larger one, so that a slowly growing need rarely allocates."""
SMALLEST_ROOM = 16


def room_for(count: int) -> int:
    """The smallest of the rooms 16, 24, 36, 54, ... that holds so many."""
    room = SMALLEST_ROOM
    while room < count:
        room = int(GROWTH * room)
    return room


class Pool:
    """Named arrays that grow and keep their contents no longer than the next growth.

    Arrays that were last asked for with the same count have the same room, whatever was asked for before: the room of one is
    that of all.
    """

    def __init__(self, device: Device):
        self.device = device
        self._arrays: dict[str, wp.array] = {}

    def get(self, name: str, count: int, dtype, tail: tuple[int, ...] = ()) -> wp.array:
        """Array `name` with room for `count` leading entries."""
        array = self._arrays.get(name)
        if array is None or array.shape[0] < count:
            capacity = room_for(count)
            array = self.device.empty((capacity, *tail) if tail else capacity, dtype)
            self._arrays[name] = array
        return array

    def room(self, name: str) -> int:
        """Leading entries of a named array, 0 before its first use."""
        array = self._arrays.get(name)
        return 0 if array is None else array.shape[0]

    @property
    def bytes(self) -> int:
        """What the arrays take on the device."""
        return sum(array.capacity for array in self._arrays.values())
