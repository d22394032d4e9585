"""Device for arrays and kernels, the CPU or CUDA.

On the CPU a large launch is divided into slices, one per thread. Results do not depend on the division: every sum runs in a fixed
order within one item, and the only shared number (`cuda_kernels.contact.ccd.publish_impact`) is a hint.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from types import ModuleType
from typing import Protocol

import numpy as np
import warp as wp

from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.cuda_support import cuda_problem, cuda_remedy
from abd.backends.device.host_access import HostAccess
from abd.backends.device.launcher import Launcher, threads_available
from abd.backends.device.raw_kernels import raw_kernels
from abd.errors import DeviceError
from cuda_kernels.bodies.affine import vec12

ONE_THREAD = 1 << 62
"""Grain of a launch that must run on one CPU thread, because its atomic operations are not atomic on the CPU."""

EMULATED = "emulated"
"""Name of the device that runs the code path of CUDA on the CPU, for tests without a GPU. "emulated:SEED" runs
the items of a launch out of order, as a GPU may."""
_UNOBSERVED = nullcontext()
_TURNS: dict[str, RLock] = {}


def turn_of(warp: wp.Device) -> RLock:
    """Lock of a Warp device.

    Warp records launches of all threads, and all simulations share its stream. Therefore other threads wait before their next
    launch, copy, read or allocation while one records."""
    return _TURNS.setdefault(str(warp), RLock())


class Observer(Protocol):
    """Contexts that enclose the work of a device (used by `tools/gpu_shape.py`)."""

    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> AbstractContextManager:
        """Encloses the launch of a kernel on `count` items."""

    def replay(self) -> AbstractContextManager:
        """Encloses the replay of a graph."""

    def transfer(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        """Encloses a host transfer ("read", "write", "sort") of `count` entries, None for all."""


class Device:
    """Warp device: launches, copies, sorts and reads.

    Args:
        name: "cpu", "cuda", "cuda:N" or "emulated", which runs the CUDA code path on the CPU without its memory;
            "emulated:SEED" also runs launches in pieces in a random order.

    Attributes:
        observer: observer of launches and transfers, or None; commands: buffer that records launches, or None.
        is_cpu: whether the host can access the arrays.
        wide: whether launches are shaped for thousands of threads, one item each.
        records: whether `Graphs` records and replays on one thread; always if `wide`. Otherwise kernels are launched one by one
            on several threads. It may change between substeps (`abd.backends.warp.parts.conditions`).
        recording: whether launches are being recorded; reads are then impossible.
        rehearsing: whether a body runs for its allocations only, without launches.
        generation: counter of allocations and exchanges of arrays; older records are invalid.
        conditions_read: number of conditions read by the host outside of records.
        turn: lock for other uses of the Warp device (`turn_of`); no lock on the CPU, where threads record separately.
        raw: hand-written kernels that replace Warp kernels, or None; why_not_raw: the reason.

    Raises:
        DeviceError: the device does not exist.
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
        self.turn = turn_of(self.warp) if self.wide else nullcontext()
        self.threads = 1 if self.records else threads_available()
        self.generation, self.conditions_read = 0, 0
        self.recording = self.rehearsing = False
        self.observer: Observer | None = None
        self.commands: CommandBuffer | None = None
        self._launcher = Launcher(self.warp, self.threads, seed if emulated else "")
        self._host = HostAccess(self.warp, self.wide)
        self.raw, self.why_not_raw = raw_kernels(self.warp)
        self._views: dict[int, wp.array] = {}

    def lanes(self, threads: int) -> int:
        """Number of threads per item: `threads` on CUDA, one on the CPU."""
        return 1 if self.is_cpu else threads

    def load(self, package: ModuleType, *features: str) -> None:
        """Load all kernels of the imported modules of a package in parallel; compile missing ones and show the progress.

        Modules whose `LOADED_FOR` names other features or devices are loaded at their first launch.
        """
        known = {*features, "cuda" if self.wide else "cpu"}
        wanted = [
            wp.get_module(name)
            for name, module in sys.modules.items()
            if name.startswith(f"{package.__name__}.") and known.issuperset(getattr(module, "LOADED_FOR", ()))
        ]
        self._launcher.load(wanted, threads_available())

    def launch(self, kernel, count: int, *inputs, grain: int = 2048, begin: int = 0) -> None:
        """Run `kernel` on items begin .. begin + count - 1; its first argument is the index of the first item of the slice.

        `grain` is the minimum number of items per thread.
        """
        if count <= 0:
            return
        if self.rehearsing:
            # load now, because modules cannot be loaded while launches are recorded
            with self.turn:
                self._launcher.load([kernel.module])
            return
        with self.turn:
            if self.observer is None:
                self._run(kernel, begin, count, inputs, grain)
                return
            with self.observer.launch(kernel, count, inputs):
                self._run(kernel, begin, count, inputs, grain)

    def _run(self, kernel, begin: int, count: int, inputs: tuple, grain: int) -> None:
        if self.raw is None or not self.raw.launch(kernel, begin, count, inputs):
            self._launcher.run(kernel, begin, count, inputs, grain, self.commands)

    def _allocate(self) -> None:
        """Start a new generation: an allocation invalidates records."""
        self._refuse("allocated")
        self.generation += 1

    def _refuse(self, what: str) -> None:
        """Raise an error for a host operation within a record, which replays would not repeat."""
        if self.recording:
            raise RuntimeError(f"nothing can be {what} while launches are recorded")

    def _refuse_host(self, what: str) -> None:
        """Raise an error for a host transfer within a record or its rehearsal."""
        self._refuse(what)
        if self.rehearsing:
            raise RuntimeError(f"nothing can be {what} in launches to be recorded")

    @property
    def deferring(self) -> bool:
        """Whether launches are recorded or rehearsed, so that their results cannot be read."""
        return self.recording or self.rehearsing

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Context in which a body runs for its allocations, with all loops and branches once, without launches."""
        self.rehearsing = True
        try:
            yield
        finally:
            self.rehearsing = False

    def empty(self, shape, dtype, is_recorded: bool = True) -> wp.array:
        """Uninitialised array; records stay valid if they cannot contain it."""
        if is_recorded:
            self._allocate()
        with self.turn:
            return wp.empty(shape, dtype=dtype, device=self.warp)

    def zeros(self, shape, dtype) -> wp.array:
        """Array of zeros."""
        self._allocate()
        with self.turn:
            return wp.zeros(shape, dtype=dtype, device=self.warp)

    def upload(self, values, dtype) -> wp.array:
        """Copy of host values."""
        self._allocate()
        with self.turn:
            return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.warp, copy=True)

    def rows(self, values: wp.array) -> wp.array:
        """View of float64 blocks (k, 12, 12) or states (n, 12) as rows of `vec12`, without a copy.

        Views are cached, so that records stay valid; a view is valid as long as its array lives.
        """
        view = self._views.get(id(values))
        if view is None:
            shape = values.shape[:-1]
            view = wp.array(ptr=values.ptr, dtype=vec12, shape=shape, device=self.warp, copy=False)
            self._views[id(values)] = view
            weakref.finalize(values, self._views.pop, id(values), None)
        return view

    def extent(self, count: int, capacity: int) -> int:
        """Number of items that a launch covers: `capacity` if launches are recorded, because counts may change, else `count`."""
        return capacity if self.records else count

    def read(self, array: wp.array, count: int | None = None) -> np.ndarray:
        """Host copy of the first `count` entries."""
        self._refuse_host("read")
        if self.observer is None and (view := self._host.known(array)) is not None:
            return (view if count is None else view[:count]).copy()
        return self.read_all((array, count))[0]

    def read_all(self, *parts: tuple[wp.array, int | None]) -> list[np.ndarray]:
        """Host copies of the first entries of arrays, given as (array, count), with one wait for the device."""
        self._refuse_host("read")
        with self.turn, self._observed("read", *parts[0]):
            return self._host.read(list(parts))

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy host values into the first entries of an array."""
        self._refuse_host("written")
        with self.turn, self._observed("write", array, len(values)):
            self._host.write(array, values)

    def fill(self, array: wp.array, value: float = 0) -> None:
        """Set all entries of an array; can be recorded."""
        if self.rehearsing:
            return
        if self.commands is not None:
            self.commands.fill(array, value)
            return
        with self.turn:
            self._host.fill(array, value)

    def assign(self, array: wp.array, values: float | np.ndarray) -> None:
        """Set all entries of an array to a number, or the first ones to host values."""
        self.write(array, values) if isinstance(values, np.ndarray) else self.fill(array, values)

    def copy(self, out: wp.array, values: wp.array, count: int | None = None) -> None:
        """Copy the first `count` entries of an array, by default all, to another array; can be recorded."""
        if self.rehearsing:
            return
        count = len(values) if count is None else count
        if self.commands is not None:
            self.commands.copy(out, values, count)
        elif count:
            with self.turn:
                wp.copy(out, values, count=count * (values.size // len(values)))

    def repeat(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Repeat a body while condition[0] is not 0; the body changes it. In a record the device evaluates the condition."""
        if self.rehearsing:
            body()
            return
        if self.commands is not None:
            self.commands.repeat(condition, body)
            return

        def counted() -> None:
            self.conditions_read += not self.recording
            body()

        self.conditions_read += not self.recording
        with self.turn:
            wp.capture_while(condition, counted)

    def when(self, condition: wp.array, body: Callable[[], None]) -> None:
        """Run a body if condition[0] is not 0. In a record the device evaluates the condition."""
        if self.rehearsing:
            body()
            return
        if self.commands is not None:
            self.commands.when(condition, body)
            return
        self.conditions_read += not self.recording
        with self.turn:
            wp.capture_if(condition, body)

    def sort_pairs(self, keys: wp.array, values: wp.array, count: int) -> None:
        """Sort `values` by integer `keys`, stable; both arrays need a capacity of 2 count entries."""
        self._refuse_host("sorted")
        with self.turn, self._observed("sort", keys, count):
            if self.is_cpu:
                k, v = keys.numpy(), values.numpy()
                order = np.argsort(k[:count], kind="stable")
                k[:count], v[:count] = k[order], v[order]
                return
            with wp.ScopedDevice(self.warp):  # the sort runs on the current device
                wp.utils.radix_sort_pairs(keys, values, count)

    def _observed(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        return _UNOBSERVED if self.observer is None else self.observer.transfer(name, array, count)
