"""Compare the times of hand-written CUDA kernels and Warp's kernels: `python tools/bench/raw_kernels.py [--bodies N ...]`.

Each kernel with a hand-written version runs on the arguments that it has in a scene of N bodies: conjugate gradients and
contact sums of a cube of bodies in contact, and the factor of bodies without couplings. On a GPU, the launches of both
versions are recorded as graphs, which run alternately. The table contains median times, their ratio and the bandwidth.
The bandwidth counts each argument once; its fraction is relative to the measured bandwidth of a copy. Without a GPU or CuPy,
only Warp's kernels are timed.
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

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from block_systems import cube  # noqa: E402

import cuda_kernels  # noqa: E402
from abd.backends.device.cuda_support import cuda_problem  # noqa: E402
from abd.backends.device.device import Device  # noqa: E402
from abd.backends.device.raw_kernels import RawKernels, raw_kernel_of  # noqa: E402
from abd.backends.linear.cholesky import Addresses, Cholesky  # noqa: E402
from abd.backends.linear.elimination import Elimination  # noqa: E402
from abd.backends.warp.terms.joint_ends import lists_of  # noqa: E402
from abd.commands.bench import table  # noqa: E402
from cuda_kernels.bodies.affine import vec12  # noqa: E402
from cuda_kernels.contact import blocks  # noqa: E402
from cuda_kernels.linear import krylov  # noqa: E402
from cuda_kernels.linear.couplings import Coupling  # noqa: E402

REPEATS = 9
COPIED = 1 << 27
"""Bytes of the copy that measures the bandwidth, more than the size of the caches."""
BLOCK, ROW = 1152, 96
"""Bytes of a 12x12 block and of one of its rows."""
COLUMNS = (
    ("kernel", "{kernel}"), ("bodies", "{bodies}"), ("launches", "{launches}"), ("MB", "{mb}"),
    ("Warp us", "{warp_us}"), ("raw us", "{raw_us}"), ("Warp / raw", "{ratio}"), ("Warp GB/s", "{warp_gbs}"),
    ("raw GB/s", "{raw_gbs}"), ("of copy", "{fraction}"),
)  # fmt: skip


@dataclass
class Recorder:
    """Replaces the hand-written kernels of a device: it records their launches, which Warp then executes.

    `owners` keeps the arrays alive of which arguments are views.
    """

    launches: dict[str, list[tuple]] = field(default_factory=dict)
    owners: list = field(default_factory=list)

    def launch(self, kernel: wp.Kernel, first: int, count: int, inputs: tuple) -> bool:
        """Record a launch; return False, so that Warp executes it."""
        if raw_kernel_of(kernel) is not None:
            self.launches.setdefault(kernel.key, []).append((kernel, first, count, inputs))
        return False


class Arguments:
    """Random arguments on a device. Blocks repeat after 1,000."""

    def __init__(self, device: Device):
        self.device, self.rng = device, np.random.default_rng(0)

    def blocks(self, count: int, own: float = 0.0) -> wp.array:
        """Create (count, 12, 12) symmetric matrices, with `own` added to their diagonals."""
        some = 0.1 * self.rng.normal(size=(1000, 12, 12)) + own * np.eye(12)
        return self.device.upload(np.resize(some + some.transpose(0, 2, 1), (count, 12, 12)), wp.float64)

    def rows(self, count: int) -> wp.array:
        """Create (count,) rows."""
        return self.device.upload(self.rng.normal(size=(count, 12)), vec12)

    def integers(self, values) -> wp.array:
        return self.device.upload(values, wp.int32)

    def coupling(self, n: int, pairs: np.ndarray) -> Coupling:
        """Create blocks of pairs (k, 2) of n bodies."""
        c, codes = Coupling(), np.arange(len(pairs))
        owners = np.concatenate([pairs[:, 0], pairs[:, 1]])
        starts, entries = lists_of(owners, np.concatenate([2 * codes, 2 * codes + 1]), n)
        c.count, c.starts, c.entries = self.integers([len(pairs)]), self.integers(starts), self.integers(entries)
        c.row, c.column = self.integers(pairs[:, 0]), self.integers(pairs[:, 1])
        c.blocks = self.blocks(len(pairs))
        return c


def launch_iteration(device: Device, n: int) -> dict[str, int]:
    """Launch an iteration of conjugate gradients and the contact sums of a cube of at least n bodies.

    Returns:
        minimal number of bytes that each kernel reads and writes.
    """
    side = round(n ** (1 / 3) + 0.49)
    n, pairs = side**3, cube(side)
    numbers, k = Arguments(device), len(pairs)
    contacts, empty = numbers.coupling(n, pairs), numbers.coupling(n, pairs[:0])
    done, island = numbers.integers(np.zeros(n)), numbers.integers(np.zeros(n))
    rows = device.rows
    diagonal, inverse = numbers.blocks(n, own=20.0), numbers.blocks(n)
    x, r, z, w, p, q = (numbers.rows(n) for _ in range(6))
    products, one = device.zeros(n, wp.vec2d), device.upload([1e-3], wp.float64)
    addresses = Addresses(device)
    parts = numbers.rows(k)
    table = addresses.table([empty, contacts, empty], parts=[None, parts, None])
    device.launch(krylov.multiply_rows, n, done, rows(diagonal), 3, table, z, w)
    device.launch(krylov.add_columns, n, done, 3, table, z, r, w, products)
    device.launch(krylov.descend, n, done, island, one, one, z, w, p, q, x, r, rows(inverse), 1)
    sums = blocks.PairSums()
    sums.g_i, sums.g_j = numbers.rows(2 * k), numbers.rows(2 * k)
    matrices = [numbers.blocks(2 * k) for _ in range(3)]
    sums.H_ii, sums.H_ij, sums.H_jj = map(rows, matrices)
    rest = numbers.integers(np.arange(k + 1))
    device.launch(blocks.join_runs, 12 * k, numbers.integers([k, 2 * k]), rest, sums)
    gradient = device.zeros((n, 12), wp.float64)
    device.launch(blocks.gather_bodies, 12 * n, done, contacts.starts, contacts.entries, sums, gradient, rows(diagonal))
    device.raw.owners = [diagonal, inverse, matrices, contacts, empty, addresses, parts]
    return {
        "multiply_rows": (n + k) * BLOCK + (2 * n + k) * ROW,
        "add_columns": (4 * n + k) * ROW,
        "descend": n * (BLOCK + 11 * ROW),
        "join_runs": 3 * k * (3 * BLOCK + 2 * ROW),
        "gather_bodies": 2 * k * (BLOCK + ROW) + 2 * n * (BLOCK + ROW),
    }


def launch_factor(device: Device, n: int) -> dict[str, int]:
    """Launch the factor of n bodies without couplings, and its inverse; return bytes as `launch_iteration` does."""
    pairs = np.zeros((0, 2), dtype=int)
    numbers = Arguments(device)
    empty = numbers.coupling(n, pairs)
    diagonal, done = numbers.blocks(n, own=20.0), numbers.integers(np.zeros(n))
    cholesky = Cholesky(device, np.arange(n), n, 3)
    cholesky.set_elimination(Elimination(n, *pairs.T, in_ranges=False))
    cholesky.set_sources(diagonal, [(empty, 0)] * 3, done)
    cholesky.compute()
    factor, inverse = (device.zeros((n, 12, 12), wp.float64) for _ in range(2))
    cholesky.invert(factor, inverse)
    device.raw.owners = [diagonal, empty, cholesky, factor, inverse]
    return {"invert_pivots": 3 * n * BLOCK}


def player(device: Device, run: Callable[[], None]) -> Callable[[], float]:
    """Return a function that executes `run` and returns its time [s]; on a GPU, it replays a graph, timed by events."""
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
    """Return median times [s] of all launches of a kernel, of Warp's and the hand-written version, run alternately."""

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
    """Measure all kernels and return one row per kernel; `copy` is the bandwidth of a copy [B/s]."""
    rows = []
    for case in (launch_iteration, launch_factor):
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
            rows.append(row | {"fraction": round(size / best / copy, 2)})
    device.raw = None
    return rows


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu" if cuda_problem() else "cuda")
    parser.add_argument("--bodies", type=int, nargs="+", default=[1000, 30000], help="numbers of bodies [1000 30000]")
    options = parser.parse_args()
    device, raw, reason = Device(options.device), None, "the device is the processor"
    device.load(cuda_kernels)
    if not device.is_cpu:
        try:
            raw, reason = RawKernels(device.warp), ""
        except (ImportError, OSError, RuntimeError) as error:
            reason = str(error)
    copy = copy_bandwidth(device)
    rows = [row for n in options.bodies for row in measure_all(device, raw, n, copy)]
    print(table(rows, COLUMNS))
    print(f"copy: {1e-9 * copy:.0f} GB/s" + (f"; hand-written kernels are not available: {reason}" if reason else ""))
    return 0


def copy_bandwidth(device: Device) -> float:
    """Measure the bandwidth of a copy [B/s], reads and writes, as the maximum of five."""
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
