"""Islands: bodies that are connected through joints or may touch on the current path; and reductions over their bodies.

Islands are independent: each has its own step length, line search and convergence test. Bodies that do not move (static, or
held at their target) do not connect islands, although rows and contacts of several islands may act on them. Those without
energies of joints form an island of their own.

Sums run over chunks of at most `CHUNK` bodies, then over the chunks of an island. This order does not depend on the number of
threads. Arrays have their largest possible size, so that recorded launches stay valid when the islands change.

The device forms the islands (`launch_renumber`); the host reads them on demand. Before the first step all bodies are one island.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import NO_PAIRS
from abd.backends.device.device import ONE_THREAD, Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.scan import Scan
from abd.contact.pair_rows import distinct
from abd.joints.closure.link_graph import connected_labels
from abd.joints.rows.system import JointSystem
from abd.model import Kind
from cuda_kernels.parallel import islands as kernels
from cuda_kernels.parallel import sums

CHUNK = 256
WARP = 32
"""Threads per reduction on CUDA."""
WORKERS = 1 << 15
"""Maximum number of concurrent reductions on CUDA; workers loop over the others, which avoids idle threads."""


class Islands:
    """Islands of n bodies, numbered from 0 in the order of their first bodies.

    Attributes:
        ties: (k, 2) pairs of bodies that are always in one island; the first one is the owner of their energy.
        formed: number of times that islands were formed or their ties set.
        island: (n,) int32 device array, island of every body.
        counts: (2,) int32 device array, numbers of islands and of chunks.
        done: (n,) int32 device array, 1 for bodies of converged islands; kernels may skip them and keep their results.
        excluded: (n,) int32 device array, 1 for bodies that are excluded from the step.
        before: (n,) int32 device array, copy of `island` at the last `keep_numbering`.
        ones, each: (islands,) float64 device arrays, 1 and scratch; their capacity is the number of bodies.
    """

    def __init__(self, device: Device, bodies: int):
        self.device, self.n, self.ties, self.formed = device, bodies, NO_PAIRS, 0
        self.capacity = capacity = max(bodies, 1)
        self.island, self.before, self.done, self.excluded = (device.zeros(capacity, wp.int32) for _ in range(4))
        self._root, self._present, self._sizes = (device.zeros(capacity, wp.int32) for _ in range(3))
        # sorting needs twice the capacity
        self.order, self._sorted = device.zeros(2 * capacity, wp.int32), device.zeros(2 * capacity, wp.int32)
        self.chunk_start, self.island_start, self._start, self._number = (
            device.zeros(capacity + 1, wp.int32) for _ in range(4)
        )
        self.counts, self._stored = (device.zeros(k, wp.int32) for k in (2, 1))
        self._every = device.upload([bodies], wp.int32)
        self._scan, self._graphs = Scan(device), Graphs(device)
        self._scan.reserve(bodies)  # an allocation in a later step would drop all records
        self.ones, self.each = device.upload(np.ones(capacity), wp.float64), device.zeros(capacity, wp.float64)
        self._joined = device.upload(np.arange(capacity), wp.int32)
        self._mobile: np.ndarray | None = None
        self._partial = {kind: device.zeros(capacity, kind) for kind in (wp.float64, wp.vec2d, sums.vec13)}
        self._of_chunks = sums.Chunks()
        self._of_chunks.counts, self._of_chunks.starts, self._of_chunks.order = self.counts, self.chunk_start, self.order
        self._of_chunks.island, self._of_chunks.island_starts = self.island, self.island_start
        self._of_chunks.stored = device.zeros(capacity, wp.int32)
        self._lanes, self._workers = (device.lanes(WARP), WORKERS) if device.wide else (1, capacity)
        starts, write = np.arange(0, bodies, CHUNK), device.write
        write(self.order, np.arange(bodies))
        write(self.chunk_start, np.append(starts, bodies))
        write(self.island_start, np.array([0, len(starts)]))
        write(self.counts, np.array([1, len(starts)]))
        self._host: np.ndarray | None = None

    # numbering ---------------------------------------------------------------------------------------------------

    @property
    def host(self) -> np.ndarray:
        """(n,) island of every body, a new array whenever the islands change."""
        if self._host is None:
            self._host = self.device.read(self.island, self.n)
        return self._host

    @property
    def count(self) -> int:
        """Number of islands."""
        return int(self.host.max(initial=0)) + 1

    def tie(self, system: JointSystem) -> None:
        """Set the permanent pairs of bodies: the energy owner with the other bodies, per joint row."""
        linear, rows, table = system.linear, system.rows, system.table
        child, parent = table.child[rows.term_measure], table.parent[rows.term_measure]
        owner = child[rows.starts[:-1]][rows.term_row] if len(rows) else child
        ends = (linear.child, linear.parent), (owner, child), (owner, parent)
        ties = np.concatenate([np.stack(pair, axis=1) for pair in ends]).astype(np.int64)
        ties = ties[(ties[:, 1] >= 0) & (ties[:, 0] != ties[:, 1])]
        keys = distinct(ties[:, 0] * self.n + ties[:, 1])
        self.join(np.stack([keys // self.n, keys % self.n], axis=1))

    def join(self, ties: np.ndarray) -> None:
        """Set the permanent pairs of bodies (k, 2)."""
        self.ties, self._mobile = ties, None
        self.formed += 1

    def follow_joined(self, mobile: np.ndarray) -> None:
        """Update the islands by joints of mobile bodies (n,) bool; call it before `launch_renumber`.

        The host finds them, because on the device every update would walk along the whole of a long chain."""
        if self._mobile is not None and np.array_equal(mobile, self._mobile):
            return
        self._mobile = mobile.copy()
        labels = connected_labels(self.n, self.ties[mobile[self.ties[:, 1]]])
        # immobile bodies without energies of joints form one island
        inactive = ~mobile
        inactive[self.ties[:, 0]] = False
        labels[inactive] = labels[inactive][:1]
        _, first, part = np.unique(labels, return_index=True, return_inverse=True)
        self.device.write(self._joined, first[part].astype(np.int32))

    def whole(self, flags: np.ndarray) -> np.ndarray:
        """Return (count,) bool, whether all bodies of an island are flagged (n,)."""
        out = np.ones(self.count, dtype=bool)
        out[self.host[~flags]] = False
        return out

    def keep_numbering(self) -> None:
        """Copy the current islands to `before`."""
        self.device.copy(self.before, self.island)

    def launch_renumber(self, held: wp.array, *lists: tuple[wp.array, wp.array, int]) -> None:
        """Form the islands on the device from the components of the last `follow_joined`; launches only.

        `done` is a property of bodies and does not change.

        Args:
            held: (n,) int32, 1 for the bodies that are not mobile in `follow_joined`.
            lists: tuples of body pairs (capacity,) vec2i that may touch; an int32 array whose first entry is the number of
                pairs; the number of pairs that launches cover.
        """
        n = self.n
        if not n:
            return
        places = tuple((pairs.ptr, counts.ptr, capacity) for pairs, counts, capacity in lists)
        self._graphs.run(("number", held.ptr, places), lambda: self._launch_numbers(held, lists))
        self.device.sort_pairs(self._sorted, self.order, n)
        self._graphs.run("cut", self._launch_chunks)
        self._host = None
        self.formed += 1

    def _launch_numbers(self, held: wp.array, lists: tuple[tuple[wp.array, wp.array, int], ...]) -> None:
        n, launch, present, number = self.n, self.device.launch, self._present, self._number
        launch(kernels.begin, n, self._joined, self._root)
        for pairs, counts, capacity in lists:
            launch(kernels.unite, capacity, pairs, counts, held, self._root, grain=ONE_THREAD)
        launch(kernels.find_parts, n, self._root, present, grain=ONE_THREAD)
        self._scan.run(present, number, self._every, 0, n)
        launch(kernels.number_bodies, n, self._root, number, n, self.island, self._sorted, self.order, self.counts)

    def _launch_chunks(self) -> None:
        """Divide the sorted bodies of every island into chunks."""
        n, launch, sizes = self.n, self.device.launch, self._sizes
        launch(kernels.find_starts, n, self._sorted, n, self._start)
        launch(kernels.count_chunks, n, self.counts, self._start, CHUNK, sizes)
        self._scan.run(sizes, self.island_start, self.counts, 0, n)
        launch(
            kernels.start_chunks,
            n, self._sorted, self._start, n, CHUNK, self.island_start, self.chunk_start, self.counts,
        )  # fmt: skip

    # converged islands -------------------------------------------------------------------------------------------

    def launch_mark_done(self, converged: wp.array) -> None:
        """Mark excluded bodies and bodies of islands with `converged` (islands,) int32 = 1, and no others, as done."""
        self.device.launch(kernels.mark_done, self.n, self.island, converged, self.excluded, self.done)

    def clear_done(self) -> None:
        self.device.fill(self.done)

    # numbers per island ------------------------------------------------------------------------------------------

    def reduce(self, values: wp.array, operation: int, out: wp.array) -> wp.array:
        """Reduce body values (n,), float64 or vec13, to their sum, minimum or maximum per island, `out` (islands,)."""
        if self.n:
            self.launch_reduction(sums.island_reduce[values.dtype], values, operation, out)
        return out

    def launch_reduction(self, kernel: wp.Kernel, values: wp.array, *inputs) -> None:
        """Launch a kernel that reduces body values (n,) over the chunks and the islands."""
        workers, lanes = min(self.capacity, self._workers), self._lanes
        query = workers, lanes, self._of_chunks, values, self._partial[values.dtype]
        self.device.launch(kernel, workers * lanes, *query, *inputs, grain=ONE_THREAD)

    def fold(self, values: wp.array, operation: int, out: wp.array) -> wp.array:
        """Reduce the values of all islands (islands,) float64 to their sum, minimum or maximum, out[0]."""
        spans, lanes = -(-self.capacity // CHUNK), self._lanes
        query = spans, CHUNK, lanes, self.counts, values, self._partial[wp.float64], self._stored, operation, out
        self.device.launch(sums.span_reduce, spans * lanes, *query, grain=ONE_THREAD)
        return out


class InactiveBodies:
    """Implementation of `abd.backends.protocol.Inactive`, of which backends derive theirs.

    Attributes:
        immobile: (n,) bool, static bodies; held: (n,) int32 device array, 1 for bodies that are not mobile.
    """

    def __init__(self, backend):
        self.backend, self.device, self.islands = backend, backend.device, backend.islands
        self.immobile = backend.model.bodies.kind == Kind.STATIC
        self.mobile = ~self.immobile
        self.excluded, self.sleeping = (np.zeros(backend.n, dtype=bool) for _ in range(2))
        self.held = self.device.upload(self.immobile, wp.int32)

    def hold(self, held: np.ndarray) -> None:
        self.mobile = ~(self.immobile | self.excluded | held)
        self.device.write(self.held, ~self.mobile)

    def exclude(self, excluded: np.ndarray) -> None:
        self.excluded = excluded.copy()
        self.device.write(self.islands.excluded, excluded)

    def sleep(self, may_sleep: np.ndarray) -> None:
        self.sleeping = self.excluded.copy()
        if may_sleep.any():
            self.sleeping |= may_sleep & self.islands.whole(may_sleep | ~self.mobile)[self.islands.host]

    def asleep(self, moving: np.ndarray | None = None) -> np.ndarray:
        """Return (islands,) bool, whether all mobile bodies of an island are asleep or not `moving` (n,), by default all moving.

        No island wakes up while the candidate list lasts."""
        resting = self.sleeping if moving is None else self.sleeping | ~moving
        return self.islands.whole(resting | ~self.mobile) & resting.any()
