"""Where arrays live and kernels run: one class for the processor and for CUDA.

On the processor a large launch is cut into slices, one per thread; results do not depend on the cut, because every sum
runs in a fixed order inside one item, and the one number that items share (`cuda_kernels.contact.ccd.tell`) is a hint.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from types import ModuleType

import numpy as np
import warp as wp

from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.compiling import load_modules
from abd.backends.device.cuda_support import cuda_problem, cuda_remedy
from abd.backends.device.host_access import HostAccess
from abd.backends.device.launcher import Launcher, threads_available
from abd.backends.device.observer import Observer
from abd.backends.device.raw_kernels import raw_kernels
from abd.errors import DeviceError
from cuda_kernels.bodies.vector12 import vec12

ALONE = 1 << 62
"""Grain of a launch that one thread has to run on the processor, whose atomic operations are none."""


EMULATED = "emulated"
"""Name of the device that has the shape of CUDA on the processor, where it can be tested without a GPU. "emulated:SEED" runs
the items of a launch out of order, as a GPU may."""
_UNSEEN = nullcontext()
_TURNS: dict[str, RLock] = {}


def turn_of(warp: wp.Device) -> RLock:
    """The lock of a Warp device. Warp records what any thread launches there, and all simulations share its stream: one that
    records has the device to itself, and the others wait before their next launch, copy, read or allocation."""
    return _TURNS.setdefault(str(warp), RLock())


class Device:
    """A Warp device: launches, sorts and read-backs.

    Args:
        name: "cpu", "cuda", "cuda:N", or "emulated": everything as on CUDA, but for the memory, on the processor;
            "emulated:SEED": launches in pieces that run in a random order besides.

    Attributes:
        observer: is called for everything that runs, None without (`abd.backends.device.observer`).
        is_cpu: whether the host can look into the arrays.
        wide: whether launches have the shape that suits thousands of threads, an item each.
        records: whether what `Graphs` runs is recorded and replayed, by one thread; always where `wide`. Otherwise it is launched
            kernel by kernel, whose items threads share. It may change between two substeps (`abd.backends.warp.parts.inactive`).
        recording: whether launches are being recorded; nothing can be read then.
        rehearsing: whether launches are gone through without being made.
        generation: rises with every allocation and swap of arrays; what was recorded before is not to be replayed then.
        asked: conditions that the host has looked at, outside of records.
        turn: to be held by a thread while it uses the Warp device in another way than by these methods (`turn_of`); free on the
            processor, where threads do not share what they record.
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
        self.turn = turn_of(self.warp) if self.wide else nullcontext()
        self.threads = 1 if self.records else threads_available()
        self.generation, self.asked = 0, 0
        self.recording = self.rehearsing = False
        self.observer: Observer | None = None
        self._launcher = Launcher(self.warp, self.threads, seed if emulated else "")
        self._host = HostAccess(self.warp, self.wide)
        self.raw, self.why_not_raw = raw_kernels(self.warp)
        self._views: dict[int, wp.array] = {}

    def lanes(self, threads: int) -> int:
        """How many threads of a CUDA device share the work on an item: `threads`, or one on the processor."""
        return 1 if self.is_cpu else threads

    def load(self, package: ModuleType, *there: str) -> None:
        """Compile, where that was not done before, and load all kernels of a package's imported modules, but for those that
        are `LOADED_FOR` what is not there, on this device or by these words, which wait until somebody launches them.

        All at once and several at a time: compiling each at its first launch would stop the simulation again and again.
        Standard error shows the progress of the compilation.
        """
        known = {*there, "cuda" if self.wide else "cpu"}
        wanted = [
            wp.get_module(name)
            for name, module in sys.modules.items()
            if name.startswith(f"{package.__name__}.") and known.issuperset(getattr(module, "LOADED_FOR", ()))
        ]
        load_modules(self.warp, wanted, threads_available(), self._launcher.block)

    def launch(self, kernel, count: int, *inputs, grain: int = 2048, begin: int = 0) -> None:
        """Run `kernel` on items begin .. begin + count - 1; its first argument is the index of the slice's first item.

        `grain` is the smallest slice worth a thread.
        """
        if count <= 0:
            return
        if self.rehearsing:
            # loaded now, it need not be while launches are recorded
            with self.turn:
                kernel.module.load(self.warp, self._launcher.block)
            return
        with self.turn:
            if self.observer is None:
                self._run(kernel, begin, count, inputs, grain)
                return
            with self.observer.launch(kernel, count, inputs):
                self._run(kernel, begin, count, inputs, grain)

    def _run(self, kernel, begin: int, count: int, inputs: tuple, grain: int) -> None:
        if self.raw is None or not self.raw.launch(kernel, begin, count, inputs):
            self._launcher.run(kernel, begin, count, inputs, grain)

    @property
    def commands(self) -> CommandBuffer | None:
        """Where launches go instead of being run, None for Warp's own records."""
        return self._launcher.commands

    @commands.setter
    def commands(self, commands: CommandBuffer | None) -> None:
        self._launcher.commands = commands

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
        """Host values that are not used any more: on the processor the array itself."""
        with self.turn:
            return wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.warp, copy=not self.is_cpu)

    def extent(self, count: int, capacity: int) -> int:
        """Items that a launch covers on `count` of them, for which there is this much capacity: a record may meet more."""
        return capacity if self.records else count

    def read(self, array: wp.array, count: int | None = None) -> np.ndarray:
        """Host copy of the first `count` entries."""
        self._refuse_host("read")
        if self.observer is None and (view := self._host.known(array)) is not None:
            return (view if count is None else view[:count]).copy()
        with self.turn, self._seen("read", array, count):
            return self._host.read(array, count)

    def write(self, array: wp.array, values: np.ndarray) -> None:
        """Copy host values into the first entries of an array."""
        self._refuse_host("written")
        with self.turn, self._seen("write", array, len(values)):
            self._host.write(array, values)

    def fill(self, array: wp.array, value: float = 0) -> None:
        """Set all entries of an array; a launch like any other, which may be recorded."""
        if self.rehearsing:
            return
        if self.commands is not None:
            self.commands.fill(array, value)
            return
        with self.turn:
            array.fill_(value) if value else array.zero_()

    def copy(self, out: wp.array, values: wp.array, count: int | None = None) -> None:
        """Copy the first `count` entries of an array, all of them without, to another one; likewise."""
        if self.rehearsing:
            return
        count = len(values) if count is None else count
        if self.commands is not None:
            self.commands.copy(out, values, count)
        elif count:
            with self.turn:
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
        with self.turn:
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
        with self.turn:
            wp.capture_if(condition, body)

    def sort_pairs(self, keys: wp.array, values: wp.array, count: int) -> None:
        """Sort `values` by integer `keys`, stably; both arrays hold at least 2 count entries."""
        self._refuse_host("sorted")
        with self.turn, self._seen("sort", keys, count):
            if self.is_cpu:
                k, v = keys.numpy(), values.numpy()
                order = np.argsort(k[:count], kind="stable")
                k[:count], v[:count] = k[order], v[order]
                return
            with wp.ScopedDevice(self.warp):  # it takes the current one
                wp.utils.radix_sort_pairs(keys, values, count)

    def _seen(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        return _UNSEEN if self.observer is None else self.observer.transfer(name, array, count)
