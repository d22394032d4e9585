"""Hand-written CUDA kernels against Warp's: `python tools/bench/raw_kernels.py [--bodies N...] [--json FILE]`.

Every kernel with a raw_kernel runs on what conjugate gradients, the block factor and contact sums of N bodies give it: a cube
of bodies in contact with their neighbours, and the blocks of N bodies alone. On
a GPU the launches of a kernel are recorded as a graph, once for either kind, and the two graphs take turns. Prints the
median times, their ratio, and bytes over time against the measured copy of the device; bytes are those that have to
travel if every number does so once. Without a GPU there are Warp's times only, and the reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import warp as wp

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import cuda_kernels  # noqa: E402
from abd.backends.device.cuda_support import cuda_problem  # noqa: E402
from abd.backends.device.device import Device  # noqa: E402
from abd.backends.device.raw_kernels import RawKernels, raw_kernel_of  # noqa: E402
from abd.backends.linear.cholesky import Addresses, Cholesky  # noqa: E402
from abd.backends.linear.elimination import Elimination  # noqa: E402
from abd.backends.warp.terms.joint_ends import lists_of  # noqa: E402
from abd.commands.bench import table  # noqa: E402
from cuda_kernels.bodies.vector12 import vec12  # noqa: E402
from cuda_kernels.contact import blocks  # noqa: E402
from cuda_kernels.linear import krylov  # noqa: E402
from cuda_kernels.linear.couplings import Coupling  # noqa: E402

REPEATS = 9
COPIED = 1 << 27
"""Bytes that are copied to measure the bandwidth: more than caches hold."""
BLOCK, ROW = 1152, 96
"""Bytes of a 12x12 block and of a row of it."""
COLUMNS = (
    ("kernel", "{kernel}"), ("bodies", "{bodies}"), ("launches", "{launches}"), ("MB", "{mb}"),
    ("Warp us", "{warp_us}"), ("raw us", "{raw_us}"), ("Warp / raw", "{ratio}"), ("Warp GB/s", "{warp_gbs}"),
    ("raw GB/s", "{raw_gbs}"), ("best of copy", "{share}"),
)  # fmt: skip


@dataclass
class Recorder:
    """Stands where a device has its hand-written kernels, runs none, and keeps the launches of those with a raw_kernel.

    `kept` holds what the arguments are views of.
    """

    launches: dict[str, list[tuple]] = field(default_factory=dict)
    kept: list = field(default_factory=list)

    def launch(self, kernel: wp.Kernel, first: int, count: int, inputs: tuple) -> bool:
        """Keep a launch; Warp runs it."""
        if raw_kernel_of(kernel) is not None:
            self.launches.setdefault(kernel.key, []).append((kernel, first, count, inputs))
        return False


class Numbers:
    """Random arguments on a device. Blocks repeat after a thousand, and are small against the bodies' own."""

    def __init__(self, device: Device):
        self.device, self.rng = device, np.random.default_rng(0)

    def blocks(self, count: int, own: float = 0.0) -> wp.array:
        """(count, 12, 12) with `own` on the diagonal."""
        some = 0.1 * self.rng.normal(size=(1000, 12, 12)) + own * np.eye(12)
        return self.device.upload(np.resize(some + some.transpose(0, 2, 1), (count, 12, 12)), wp.float64)

    def rows(self, count: int) -> wp.array:
        """(count,) rows."""
        return self.device.upload(self.rng.normal(size=(count, 12)), vec12)

    def integers(self, values) -> wp.array:
        return self.device.upload(values, wp.int32)

    def coupling(self, n: int, pairs: np.ndarray) -> Coupling:
        """Blocks of n bodies' pairs (k, 2)."""
        c, codes = Coupling(), np.arange(len(pairs))
        owners = np.concatenate([pairs[:, 0], pairs[:, 1]])
        starts, entries = lists_of(owners, np.concatenate([2 * codes, 2 * codes + 1]), n)
        c.count, c.starts, c.entries = self.integers([len(pairs)]), self.integers(starts), self.integers(entries)
        c.row, c.column = self.integers(pairs[:, 0]), self.integers(pairs[:, 1])
        c.blocks = self.blocks(len(pairs))
        return c


def cube(n: int) -> tuple[int, np.ndarray]:
    """The next cube of bodies from n on, and the pairs of neighbours."""
    side = round(n ** (1 / 3) + 0.49)
    i = np.arange(side**3).reshape(side, side, side)
    ends = [(i[:-1], i[1:]), (i[:, :-1], i[:, 1:]), (i[:, :, :-1], i[:, :, 1:])]
    return side**3, np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])


def iterations(device: Device, n: int) -> dict[str, int]:
    """An iteration of conjugate gradients, and the contact sums, of a cube; least bytes of every kernel."""
    n, pairs = cube(n)
    numbers, k = Numbers(device), len(pairs)
    contacts, nothing = numbers.coupling(n, pairs), numbers.coupling(n, pairs[:0])
    done, island = numbers.integers(np.zeros(n)), numbers.integers(np.zeros(n))
    rows = device.rows
    diagonal, inverse = numbers.blocks(n, own=20.0), numbers.blocks(n)
    x, r, z, w, p, q = (numbers.rows(n) for _ in range(6))
    products, one = device.zeros(n, wp.vec2d), device.upload([1e-3], wp.float64)
    addresses = Addresses(device, 3)
    addresses.launch_write([nothing, contacts, nothing])
    device.launch(krylov.multiply, n, done, rows(diagonal), 3, addresses.table, z, r, w, products)
    device.launch(krylov.descend, n, done, island, one, one, z, w, p, q, x, r)
    device.launch(krylov.descend_and_divide, n, done, island, one, one, z, w, p, q, x, r, rows(inverse))
    sums = blocks.PairSums()
    sums.g_i, sums.g_j = numbers.rows(2 * k), numbers.rows(2 * k)
    kept = [numbers.blocks(2 * k) for _ in range(3)]
    sums.H_ii, sums.H_ij, sums.H_jj = (rows(matrices) for matrices in kept)
    rest = numbers.integers(np.arange(k + 1))
    device.launch(blocks.join_runs, 12 * k, numbers.integers([k, 2 * k]), rest, sums)
    gradient = device.zeros((n, 12), wp.float64)
    device.launch(blocks.gather_bodies, 12 * n, done, contacts.starts, contacts.entries, sums, gradient, rows(diagonal))
    device.raw.kept = [diagonal, inverse, kept, contacts, nothing, addresses]
    return {
        "multiply": (n + k) * BLOCK + 3 * n * ROW,
        "descend": 10 * n * ROW,
        "descend_and_divide": n * (BLOCK + 11 * ROW),
        "join_runs": 3 * k * (3 * BLOCK + 2 * ROW),
        "gather_bodies": 2 * k * (BLOCK + ROW) + 2 * n * (BLOCK + ROW),
    }


def factor(device: Device, n: int) -> dict[str, int]:
    """The factor of bodies alone, and its inverse; least bytes of every kernel."""
    pairs = np.zeros((0, 2), dtype=int)
    numbers = Numbers(device)
    nothing = numbers.coupling(n, pairs)
    diagonal, done = numbers.blocks(n, own=20.0), numbers.integers(np.zeros(n))
    cholesky = Cholesky(device, np.arange(n), n, 3)
    cholesky.set_elimination(Elimination(n, *pairs.T, in_ranges=False))
    cholesky.set_sources(diagonal, [(nothing, 0)] * 3, done)
    cholesky.compute()
    capacity, inverse = (device.zeros((n, 12, 12), wp.float64) for _ in range(2))
    cholesky.invert(capacity, inverse)
    device.raw.kept = [diagonal, nothing, cholesky, capacity, inverse]
    return {"invert_pivots": 3 * n * BLOCK}


def player(device: Device, run: Callable[[], None]) -> Callable[[], float]:
    """What runs once and returns the seconds that took: on a GPU a recorded graph, timed by events."""
    run()
    if device.is_cpu:

        def play() -> float:
            begin = perf_counter()
            run()
            return perf_counter() - begin

        return play
    with wp.ScopedCapture(device.warp) as capture:
        run()

    def replay() -> float:
        begin, end = (wp.Event(device.warp, enable_timing=True) for _ in range(2))
        wp.record_event(begin)
        wp.capture_launch(capture.graph)
        wp.record_event(end)
        return 1e-3 * wp.get_event_elapsed_time(begin, end)

    return replay


def measure(device: Device, raw: RawKernels | None, launches: list[tuple]) -> dict[str, float]:
    """Median seconds of all launches of a kernel, by Warp's and by its raw_kernel, which take turns."""

    def by_warp() -> None:
        for kernel, first, count, inputs in launches:
            wp.launch(kernel, dim=count, inputs=(first, *inputs), device=device.warp)

    def by_raw_kernels() -> None:
        for launch in launches:
            raw.launch(*launch)

    players = {"warp": player(device, by_warp)} | ({"raw": player(device, by_raw_kernels)} if raw else {})
    times = {name: [] for name in players}
    for _ in range(REPEATS):
        for name, play in players.items():
            times[name].append(play())
    return {name: median(found) for name, found in times.items()}


def measure_all(device: Device, raw: RawKernels | None, n: int, copy: float) -> list[dict]:
    """One row per kernel."""
    rows = []
    for case in (iterations, factor):
        device.raw = Recorder()
        for name, size in case(device, n).items():
            launches = device.raw.launches[name]
            seconds = measure(device, raw, launches)
            best = min(seconds.values())
            row = {"bodies": n, "kernel": name, "launches": len(launches), "mb": round(size * 1e-6, 2)}
            for kind, value in seconds.items():
                row |= {f"{kind}_us": round(1e6 * value, 1), f"{kind}_gbs": round(1e-9 * size / value, 1)}
            if "raw" in seconds:
                row["ratio"] = round(seconds["warp"] / seconds["raw"], 2)
            rows.append(row | {"share": round(size / best / copy, 2)})
    device.raw = None
    return rows


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu" if cuda_problem() else "cuda")
    parser.add_argument("--bodies", type=int, nargs="+", default=[1000, 30000])
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    device, raw, why = Device(options.device), None, "the device is the processor"
    device.load(cuda_kernels)
    if not device.is_cpu:
        try:
            raw, why = RawKernels(device.warp), ""
        except (ImportError, OSError, RuntimeError) as error:
            why = str(error)
    copy = copy_bandwidth(device)
    rows = [row for n in options.bodies for row in measure_all(device, raw, n, copy)]
    print(table(rows, COLUMNS))
    print(f"copy: {1e-9 * copy:.0f} GB/s" + (f"; no hand-written kernels: {why}" if why else ""))
    if options.json:
        write_results(options.json, options.device, rows, copy_gbs=round(1e-9 * copy, 1), no_raw=why)
    return 0


def copy_bandwidth(device: Device) -> float:
    """Bytes per second that a copy of 128 MiB reads and writes, the best of five."""
    source, target = (device.zeros(COPIED // 8, wp.float64) for _ in range(2))
    seconds = []
    for _ in range(6):
        wp.synchronize_device(device.warp)
        begin = perf_counter()
        wp.copy(target, source)
        wp.synchronize_device(device.warp)
        seconds.append(perf_counter() - begin)
    return 2 * COPIED / min(seconds[1:])


if __name__ == "__main__":
    raise SystemExit(main())
